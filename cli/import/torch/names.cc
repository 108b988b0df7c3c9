#include "cli/import/torch/names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/import/torch/operands.h"
#include "cli/import/torch/words.h"
#include "operators/signature.h"

namespace rfinject::cli {
namespace {

bool IsForward(Phase phase) { return phase == Phase::kForward || phase == Phase::kEval; }

// "[32,3,224,224] [64,3,7,7]" of "f32[32,3,224,224] f32[64,3,7,7]": the two programs may compute in other types. With
// `any_batch` the first dimension of each is left out, for they may have other batches, too.
std::string ShapesOf(std::string_view signature, bool any_batch) {
  std::string shapes;
  while (true) {
    const size_t begin = signature.find_first_of("[{");
    if (begin == std::string_view::npos) return shapes;
    const size_t end = std::min(signature.find_first_of("]}", begin), signature.size() - 1);
    std::string_view shape = signature.substr(begin, end - begin + 1);
    signature.remove_prefix(end + 1);
    if (any_batch) shape.remove_prefix(std::min(shape.find(','), shape.size()));
    shapes.append(shape).append(" ");
  }
}

// From what must be alike to what may: shapes, shapes but for the batch, the operator alone.
enum Level : uint8_t { kShapes, kShapesOfAnyBatch, kName };
constexpr std::array kLevels = {kShapes, kShapesOfAnyBatch, kName};

std::string KindAt(Level level, const std::string& family, std::string_view signature) {
  if (level == kName) return family;
  const std::string shapes = ShapesOf(signature, level == kShapesOfAnyBatch);
  return shapes.empty() ? std::string() : family + " " + shapes;
}

// One call of an operator, by its kinds.
struct Call {
  std::array<uint32_t, kLevels.size()> kinds{};  // 0: not known
  uint32_t of = 0;                               // a layer, or a span
  bool used = false;
};

class Aligner {
 public:
  Aligner(const TorchRecording& recording, const TorchWindow& window, const Run& named, CallTree* tree)
      : recording_(recording), window_(window), named_(named), tree_(*tree) {}

  void Align() {
    AddLayers();
    std::vector<uint8_t> has_work(tree_.spans.size(), 0);
    for (const std::vector<ActivityPlace>* places : {&tree_.places, &tree_.counted}) {
      for (const ActivityPlace& place : *places) {
        if (place.span != kNoSpan && tree_.spans[place.span].cost != kNoSpan)
          has_work[tree_.spans[place.span].cost] = 1;
      }
    }
    std::map<size_t, std::vector<Call>> groups;
    for (const uint32_t index : tree_.order) {
      const SpanPlace& place = tree_.spans[index];
      if (has_work[index] == 0 || place.backward != kNoSpan || !IsForward(place.phase)) continue;
      // What one operator calls of another's is in its layer, and the other trace does not have it.
      if (IsPartOfAnother(index)) continue;
      groups[tree_.StepAt(window_.spans[index].start)].push_back(RecordedCallOf(index));
    }
    const std::vector<Call> wanted = NamedCalls();
    for (auto& [step, calls] : groups) AlignGroup(wanted, &calls);
    if (repeats_.size() == 1) tree_.named_repeats = *repeats_.begin();
    Spread();
  }

 private:
  Call MakeCall(const std::string& name, std::string_view signature, uint32_t of) {
    Call call{.of = of};
    const std::string family = OperatorFamily(name);
    for (const Level level : kLevels) call.kinds[level] = kinds_.NumberOf(KindAt(level, family, signature));
    return call;
  }

  void AddLayers() {
    for (const auto& [key, info] : named_.layers) {
      numbers_[key] = static_cast<uint32_t>(tree_.layers.size());
      tree_.layers.push_back({.model = key.model, .path = key.path, .class_name = info.class_name});
    }
    for (const auto& [key, info] : named_.layers) {
      const auto parent = numbers_.find({key.model, info.parent_path});
      if (!key.path.empty() && parent != numbers_.end()) tree_.layers[numbers_[key]].parent = parent->second;
    }
  }

  // The calls of a step, by the order in which their layers are called first.
  std::vector<Call> NamedCalls() {
    std::vector<std::pair<uint64_t, Call>> calls;
    const uint64_t steps = std::max<uint64_t>(named_.steps.steps, 1);
    for (const auto& [key, stats] : named_.launches) {
      const auto layer = numbers_.find(key.layer);
      if (layer == numbers_.end() || !IsForward(key.phase) || stats.launches % steps != 0) continue;
      const uint64_t order = named_.layers.at(key.layer).order;
      const Call call = MakeCall(key.op, key.signature, layer->second);
      constexpr uint64_t kMost = 1 << 16;
      for (uint64_t i = 0; i < std::min(stats.launches / steps, kMost); ++i) calls.emplace_back(order, call);
    }
    std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Call> in_order;
    for (const auto& [order, call] : calls) in_order.push_back(call);
    return in_order;
  }

  Call RecordedCallOf(uint32_t index) {
    const TorchSpan& span = window_.spans[index];
    const auto [known, is_new] = calls_.try_emplace({span.name, span.operands});
    if (is_new) {
      const std::string& name = recording_.texts[span.name];
      const RecordedCall call(name, recording_.operands[span.operands], DType::kFloat);
      std::array<char, estimate::kMaxSignature> buffer;
      known->second = MakeCall(name, estimate::FormatSignature(call.call(), buffer), 0);
    }
    Call call = known->second;
    call.of = index;
    return call;
  }

  void AlignGroup(std::vector<Call> wanted, std::vector<Call>* calls) {
    for (const Level level : kLevels) {
      std::map<uint32_t, std::pair<std::vector<Call*>, std::vector<Call*>>> kinds;
      for (Call& call : wanted) {
        if (!call.used && call.kinds[level] != 0) kinds[call.kinds[level]].first.push_back(&call);
      }
      for (Call& call : *calls) {
        if (!call.used && call.kinds[level] != 0) kinds[call.kinds[level]].second.push_back(&call);
      }
      for (auto& [kind, both] : kinds) {
        auto& [there, here] = both;
        // As often as there, or again and again, as where gradients are accumulated.
        if (there.empty() || here.empty() || here.size() % there.size() != 0) continue;
        for (size_t i = 0; i < here.size(); ++i) {
          tree_.spans[here[i]->of].layer = there[i % there.size()]->of;
          here[i]->used = true;
        }
        for (Call* call : there) call->used = true;
        repeats_.insert(here.size() / there.size());
        (level == kName ? tree_.named_by_order : tree_.named_by_shape) += here.size();
      }
    }
    for (const Call& call : *calls) tree_.not_named += call.used ? 0 : 1;
  }

  bool IsPartOfAnother(uint32_t index) const {
    const uint32_t outer = tree_.spans[index].outer_cost;
    return outer != kNoSpan && OperatorFamily(recording_.texts[window_.spans[index].name]) !=
                                   OperatorFamily(recording_.texts[window_.spans[outer].name]);
  }

  // What runs inside of an operator is in its layer, and so is what is around it: an operator that does nothing but
  // call it.
  void Spread() {
    for (const uint32_t index : tree_.order) {
      SpanPlace& place = tree_.spans[index];
      if (place.cost != kNoSpan && place.cost != index && place.layer == 0 && place.backward == kNoSpan) {
        place.layer = tree_.spans[place.cost].layer;
      }
      if (place.cost == index && place.layer == 0 && place.outer_cost != kNoSpan && place.backward == kNoSpan) {
        place.layer = tree_.spans[place.outer_cost].layer;
      }
      if (place.layer == 0 || place.cost != index) continue;
      for (uint32_t up = place.parent; up != kNoSpan; up = tree_.spans[up].parent) {
        if (window_.spans[up].kind != TorchSpan::Kind::kOperator || tree_.spans[up].layer != 0) break;
        tree_.spans[up].layer = place.layer;
      }
    }
  }

  const TorchRecording& recording_;
  const TorchWindow& window_;
  const Run& named_;
  CallTree& tree_;
  TextTable kinds_;
  std::map<LayerKey, uint32_t> numbers_;
  std::map<std::pair<uint32_t, uint32_t>, Call> calls_;  // by name and operands
  std::set<uint64_t> repeats_;  // how often each kind of operator is called for one of the trace
};

// Names the modules of a recording: below two that are the same, the k-th that is called of a class is the k-th of
// that class, where there are equally many.
void AlignModules(const Run& named_run, CallTree* tree) {
  std::map<std::pair<LayerKey, std::string>, std::vector<std::pair<uint64_t, LayerKey>>> there;
  for (const auto& [key, info] : named_run.layers) {
    const LayerKey parent = key.path.empty() ? LayerKey{} : LayerKey{key.model, info.parent_path};
    there[{parent, info.class_name}].emplace_back(info.order, key);
  }
  for (auto& [kind, list] : there) std::sort(list.begin(), list.end());
  std::map<std::pair<uint32_t, std::string>, std::vector<uint32_t>> here;
  for (uint32_t i = 1; i < tree->layers.size(); ++i) {
    here[{tree->layers[i].parent, tree->layers[i].class_name}].push_back(i);
  }
  std::vector<LayerKey> names(tree->layers.size());
  for (uint32_t i = 1; i < tree->layers.size(); ++i) {  // a parent has a smaller number than what is in it
    const RecordedLayer& layer = tree->layers[i];
    const bool known = layer.parent == 0 || !names[layer.parent].model.empty();
    const std::vector<uint32_t>& alike = here[{layer.parent, layer.class_name}];
    const auto found = there.find({names[layer.parent], layer.class_name});
    if (!known || found == there.end() || found->second.size() != alike.size()) continue;
    const auto place = std::find(alike.begin(), alike.end(), i) - alike.begin();
    names[i] = found->second[static_cast<size_t>(place)].second;
  }
  for (uint32_t i = 1; i < tree->layers.size(); ++i) {
    RecordedLayer& layer = tree->layers[i];
    const bool named = !names[i].model.empty();
    ++(named ? tree->named_modules : tree->not_named);
    if (!named && layer.parent == 0) continue;
    const RecordedLayer& above = tree->layers[layer.parent];
    const std::string own = layer.path.substr(layer.path.rfind('.') + 1);
    layer.model = named ? names[i].model : above.model;
    layer.path = named ? names[i].path : above.path.empty() ? own : above.path + "." + own;
  }
}

}  // namespace

std::string OperatorFamily(std::string_view name) {
  const size_t space = name.rfind("::");
  if (space != std::string_view::npos) name.remove_prefix(space + 2);
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  if (Contains(name, "backward")) {
    for (const std::string_view of : {"batch_norm", "attention"}) {
      if (Contains(name, of)) return absl::StrCat(std::string(of), "_backward");
    }
    return std::string(name);
  }
  static constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"batch_norm", "batch_norm"},
      {"conv_depthwise", "depthwise_convolution"},
      {"conv", "convolution"},
      {"scaled_dot_product", "attention"},
      {"attention_forward", "attention"},
      {"dropout", "dropout"},
      {"layer_norm", "layer_norm"},
      {"clamp_min", "relu"}};
  for (const auto& [part, family] : kParts) {
    if (Contains(name, part)) return std::string(family);
  }
  for (const std::string_view product : {"linear", "addmm", "mm", "matmul"}) {
    if (name == product) return "product";
  }
  for (const std::string_view prefix : {"cudnn_", "miopen_", "native_"}) ConsumePrefix(&name, prefix);
  return std::string(name);
}

const Run* RunWithNames(const Profile& names, bool trains) {
  const Run* best = nullptr;
  for (const auto& [key, run] : names.runs) {
    if (run.layers.size() < 2) continue;
    const auto rank = [trains](const Run& one) { return std::pair(one.key.training == trains, one.layers.size()); };
    if (best == nullptr || rank(run) > rank(*best)) best = &run;
  }
  return best;
}

void AlignNames(const TorchRecording& recording, const TorchWindow& window, const Run& named, CallTree* tree) {
  if (tree->layers.size() > 1) {
    AlignModules(named, tree);
  } else {
    Aligner(recording, window, named, tree).Align();
  }
}

}  // namespace rfinject::cli
