#include "cli/import/torch/call_tree.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cli/import/torch/dialect.h"
#include "cli/import/torch/names.h"
#include "cli/import/torch/operands.h"
#include "operators/op_table.h"

namespace rfinject::cli {
namespace {

class TreeMaker {
 public:
  TreeMaker(const TorchRecording& recording, const TorchWindow& window, CallTree* tree)
      : recording_(recording), window_(window), tree_(*tree) {}

  void Make() {
    tree_.spans.assign(window_.spans.size(), {});
    tree_.order.resize(window_.spans.size());
    if (!tree_.outline.has_modules) {
      tree_.layers.resize(1);  // those that names gave are the same ones in each window
      tree_.depths.resize(1);
    }
    std::iota(tree_.order.begin(), tree_.order.end(), 0u);
    std::sort(tree_.order.begin(), tree_.order.end(), [this](uint32_t a, uint32_t b) { return Rank(a) < Rank(b); });
    bits_.assign(recording_.texts.size(), kUnknown);
    phases_.assign(recording_.texts.size(), Phase::kOther);
    Nest();
    JoinActivities();
    JoinCounters();
  }

 private:
  const TorchSpan& Span(uint32_t index) const { return window_.spans[index]; }

  // An annotation is around a module, and that around an operator, where all begin at once.
  std::tuple<uint32_t, int64_t, int64_t, int, uint32_t> Rank(uint32_t index) const {
    const TorchSpan& span = Span(index);
    constexpr int kRanks[] = {2, 0, 1};
    return {span.thread, span.start, -span.end, kRanks[static_cast<size_t>(span.kind)], index};
  }

  // What a name means, found out once for each.
  enum NameBits : uint8_t { kAtomic = 1, kEngineNode = 2, kAutograd = 4, kCheckpoint = 8 };
  uint8_t BitsOf(uint32_t name) {
    uint8_t& bits = bits_[name];
    if (bits != kUnknown) return bits;
    const std::string& text = recording_.texts[name];
    bits = 0;
    const auto rule = estimate::FindOp(text);
    if (text.starts_with("aten::") && rule && rule->kind == OpKind::kAtomic) bits |= kAtomic;
    if (IsEngineSpan(text)) bits |= kEngineNode;
    if (IsAutogradNode(text)) bits |= kAutograd;
    if (IsCheckpoint(text)) bits |= kCheckpoint;
    phases_[name] = PhaseOfAnnotation(text);
    return bits;
  }

  // --- Which span is in which.
  void Nest() {
    std::vector<uint32_t> open;
    for (const uint32_t index : tree_.order) {
      const TorchSpan& span = Span(index);
      while (!open.empty() && (Span(open.back()).thread != span.thread || Span(open.back()).end <= span.start)) {
        open.pop_back();
      }
      SpanPlace& place = tree_.spans[index];
      if (!open.empty()) {
        place.parent = open.back();
        const SpanPlace& parent = tree_.spans[open.back()];
        place.op = parent.op;
        place.cost = parent.cost;
        place.outer_cost = parent.outer_cost;
        place.backward = parent.backward;
        place.layer = parent.layer;
        place.phase = parent.phase;
      } else if (tree_.outline.engine_threads[span.thread]) {
        place.phase = Phase::kBackward;
      }
      Place(index, span, &place);
      open.push_back(index);
    }
  }

  void Place(uint32_t index, const TorchSpan& span, SpanPlace* place) {
    const uint8_t bits = BitsOf(span.name);
    switch (span.kind) {
      case TorchSpan::Kind::kAnnotation:
        if (phases_[span.name] != Phase::kOther) place->phase = phases_[span.name];
        break;
      case TorchSpan::Kind::kModule:
        place->layer = LayerIn(place->layer, span.name);
        if (place->phase == Phase::kOther) place->phase = Phase::kForward;
        break;
      case TorchSpan::Kind::kOperator: {
        const bool node = (bits & (kEngineNode | kAutograd)) != 0;
        if ((bits & kEngineNode) != 0 || (node && place->backward == kNoSpan)) {
          place->backward = index;
          place->phase = Phase::kBackward;
        } else if (place->phase == Phase::kOther) {
          place->phase = Phase::kForward;
        } else if (place->parent != kNoSpan && (BitsOf(Span(place->parent).name) & kCheckpoint) != 0 && !node) {
          place->phase = Phase::kRecompute;
        }
        const bool inside = place->cost != kNoSpan && (BitsOf(Span(place->cost).name) & kAtomic) != 0;
        place->op = index;
        if (inside && !TakesOver(index, place->cost)) break;
        place->outer_cost = inside ? place->cost : kNoSpan;
        place->cost = index;
        break;
      }
    }
  }

  // Whether what an operator launches is its own work, and not that of the one around it: a copy inside of a product
  // is a copy. What only calls the same operation of a library (convolution, cudnn_convolution) is that operation,
  // unless it is a wrapper that was given no tensors, whose operands stand at what it calls.
  bool TakesOver(uint32_t inner, uint32_t outer) {
    const TorchSpan &in = Span(inner), &out = Span(outer);
    if ((BitsOf(in.name) & kAtomic) == 0 || !HasOperands(in)) return false;
    return !HasOperands(out) || FamilyOf(in.name) != FamilyOf(out.name);
  }

  bool HasOperands(const TorchSpan& span) {
    if (span.operands == 0) return false;
    if (has_operands_.size() <= span.operands) has_operands_.resize(recording_.operands.size(), kUnknown);
    uint8_t& known = has_operands_[span.operands];
    if (known == kUnknown) {
      const RecordedCall call("", recording_.operands[span.operands], DType::kFloat);
      known = call.HasFirst() ? 1 : 0;
    }
    return known != 0;
  }

  uint32_t FamilyOf(uint32_t name) {
    uint32_t& family = families_.try_emplace(name, 0).first->second;
    if (family == 0) family = family_names_.NumberOf(OperatorFamily(recording_.texts[name]));
    return family;
  }

  // Deeper modules are taken for part of the one around them: no network has such, and the paths of a file that is
  // made to nest a million take memory by the square.
  static constexpr uint32_t kMostNested = 64;

  uint32_t LayerIn(uint32_t parent, uint32_t name) {
    if (tree_.depths[parent] == kMostNested) return parent;
    const auto [known, is_new] =
        tree_.numbers_of_layers.try_emplace({parent, name}, static_cast<uint32_t>(tree_.layers.size()));
    if (!is_new) return known->second;
    const std::string& instance = recording_.texts[name];
    const RecordedLayer above = tree_.layers[parent];
    RecordedLayer layer;
    layer.class_name = ClassOfModule(instance);
    layer.parent = parent;
    if (parent == 0) {
      // The first of a class bears its name; further networks of that class are told apart.
      layer.model = IsFirstOfClass(instance) ? layer.class_name : instance;
    } else {
      layer.model = above.model;
      layer.path = above.path.empty() ? instance : above.path + "." + instance;
    }
    tree_.layers.push_back(std::move(layer));
    tree_.depths.push_back(tree_.depths[parent] + 1);
    return known->second;
  }

  // --- The GPU's work. A call of CUDA leads to the innermost span of its thread at its time; where the file has no
  // call for a launch, the profiler's own number of the operator does.
  void JoinActivities() {
    tree_.places.assign(window_.activities.size(), {});
    std::vector<uint32_t> by_correlation(window_.calls.size());
    std::iota(by_correlation.begin(), by_correlation.end(), 0u);
    std::sort(by_correlation.begin(), by_correlation.end(),
              [this](uint32_t a, uint32_t b) { return window_.calls[a].correlation < window_.calls[b].correlation; });
    const std::vector<uint32_t> span_of_call = SpansOfCalls();
    std::vector<std::pair<uint64_t, uint32_t>> by_external_id;
    for (uint32_t i = 0; i < window_.spans.size(); ++i) {
      const TorchSpan& span = Span(i);
      if (span.kind == TorchSpan::Kind::kOperator && span.external_id != 0)
        by_external_id.emplace_back(span.external_id, i);
    }
    std::sort(by_external_id.begin(), by_external_id.end());
    for (size_t i = 0; i < window_.activities.size(); ++i) {
      const TorchActivity& activity = window_.activities[i];
      ActivityPlace& place = tree_.places[i];
      place.launched = activity.start;
      const auto found = std::lower_bound(
          by_correlation.begin(), by_correlation.end(), activity.correlation,
          [this](uint32_t call, uint64_t wanted) { return window_.calls[call].correlation < wanted; });
      const auto first =
          std::lower_bound(by_external_id.begin(), by_external_id.end(), std::pair(activity.external_id, 0u));
      const uint32_t named =
          first == by_external_id.end() || first->first != activity.external_id ? kNoSpan : first->second;
      const bool has_call = activity.correlation != 0 && found != by_correlation.end() &&
                            window_.calls[*found].correlation == activity.correlation;
      if (has_call) {
        place.call = *found;
        place.launched = window_.calls[*found].start;
        if (IsGraphLaunch(recording_.texts[window_.calls[*found].name])) {
          ++tree_.of_graphs;
          continue;
        }
        place.span = span_of_call[*found];
        const uint32_t op = place.span == kNoSpan ? kNoSpan : tree_.spans[place.span].op;
        if (op != kNoSpan && named != op && tree_.outline.operator_ids.contains(activity.external_id)) {
          ++tree_.disagree;
        }
        if (op != kNoSpan) continue;
      } else {
        ++tree_.without_launch;
      }
      // A number is taken only of an operator that began before the work did, and not long after it had ended: some
      // dialects fill it with the launch's own number.
      if (named == kNoSpan || Span(named).start > place.launched) continue;
      if (has_call && Span(named).end < place.launched) continue;
      place.span = named;
    }
  }

  // The profiler counts each kernel that was launched, in that order, and says neither when nor from where: where
  // there are as many launches, the k-th is the k-th.
  void JoinCounters() {
    std::vector<uint32_t> launches;
    for (uint32_t i = 0; i < window_.calls.size(); ++i) {
      if (IsKernelLaunch(recording_.texts[window_.calls[i].name])) launches.push_back(i);
    }
    std::vector<uint32_t> ranges(recording_.counters.size());
    if (launches.size() != ranges.size() || ranges.empty()) return;
    std::iota(ranges.begin(), ranges.end(), 0u);
    std::sort(launches.begin(), launches.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(window_.calls[a].start, a) < std::pair(window_.calls[b].start, b);
    });
    std::sort(ranges.begin(), ranges.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(recording_.counters[a].start, a) < std::pair(recording_.counters[b].start, b);
    });
    const std::vector<uint32_t> span_of_call = SpansOfCalls();
    tree_.counted.resize(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      tree_.counted[ranges[i]] = {span_of_call[launches[i]], window_.calls[launches[i]].start, launches[i]};
    }
  }

  std::vector<uint32_t> SpansOfCalls() const {
    std::vector<uint32_t> result(window_.calls.size(), kNoSpan), calls(window_.calls.size());
    std::iota(calls.begin(), calls.end(), 0u);
    std::sort(calls.begin(), calls.end(), [this](uint32_t a, uint32_t b) {
      const TorchCall &x = window_.calls[a], &y = window_.calls[b];
      return std::tie(x.thread, x.start) < std::tie(y.thread, y.start);
    });
    std::vector<uint32_t> open;
    size_t next = 0;
    for (const uint32_t index : calls) {
      const TorchCall& call = window_.calls[index];
      for (; next < tree_.order.size(); ++next) {
        const TorchSpan& span = Span(tree_.order[next]);
        if (std::tie(span.thread, span.start) > std::tie(call.thread, call.start)) break;
        while (!open.empty() && (Span(open.back()).thread != span.thread || Span(open.back()).end <= span.start)) {
          open.pop_back();
        }
        open.push_back(tree_.order[next]);
      }
      // Whole microseconds: a call can begin in the one in which its operator ends.
      while (!open.empty() && (Span(open.back()).thread != call.thread || Span(open.back()).end < call.start)) {
        open.pop_back();
      }
      if (!open.empty()) result[index] = open.back();
    }
    return result;
  }

  static constexpr uint8_t kUnknown = 0xFF;
  const TorchRecording& recording_;
  const TorchWindow& window_;
  CallTree& tree_;
  std::vector<uint8_t> bits_;
  std::vector<uint8_t> has_operands_;                 // by TorchSpan::operands
  absl::flat_hash_map<uint32_t, uint32_t> families_;  // of operators' names, in family_names_
  TextTable family_names_;
  std::vector<Phase> phases_;
};

// A node of the backward has the sequence number of the forward operator that made it, and so its layer.
void JoinBackward(const TorchWindow& window, CallTree* tree) {
  std::vector<std::tuple<int64_t, int64_t, uint32_t>>& forwards = tree->forwards;
  const auto known = static_cast<ptrdiff_t>(forwards.size());
  for (const uint32_t index : tree->order) {
    const TorchSpan& span = window.spans[index];
    const SpanPlace& place = tree->spans[index];
    if (span.sequence == TorchSpan::kNone || place.backward != kNoSpan || tree->layers.size() == 1) continue;
    const bool outer = place.parent == kNoSpan || window.spans[place.parent].sequence != span.sequence;
    if (outer) forwards.emplace_back(span.sequence, span.start, place.layer);
  }
  const auto by_number = [](const auto& a, const auto& b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  };
  std::stable_sort(forwards.begin() + known, forwards.end(), by_number);
  std::inplace_merge(forwards.begin(), forwards.begin() + known, forwards.end(), by_number);
  for (const uint32_t index : tree->order) {
    SpanPlace& place = tree->spans[index];
    if (place.backward == kNoSpan) continue;
    if (place.backward != index) {
      // A module that a recomputation calls has its own name.
      if (window.spans[index].kind != TorchSpan::Kind::kModule) place.layer = tree->spans[place.parent].layer;
      continue;
    }
    const TorchSpan& span = window.spans[index];
    place.layer = 0;
    if (span.sequence == TorchSpan::kNone) continue;
    // After a recomputation a number repeats: the last one before the node ran is meant.
    const auto behind =
        std::upper_bound(forwards.begin(), forwards.end(), std::tuple(span.sequence, span.start, 0u), by_number);
    if (behind == forwards.begin() || std::get<0>(*std::prev(behind)) != span.sequence) continue;
    place.layer = std::get<2>(*std::prev(behind));
  }
}

}  // namespace

CallTree MakeCallTree(const TorchRecording& recording, const TorchWindow& window) {
  CallTree tree{.outline = OutlineOf(recording, window)};
  MakeTreeOfWindow(recording, window, &tree);
  return tree;
}

void MakeTreeOfWindow(const TorchRecording& recording, const TorchWindow& window, CallTree* tree) {
  TreeMaker(recording, window, tree).Make();
}

void PlaceLayers(const TorchRecording& recording, const TorchWindow& window, const Profile* names, CallTree* tree) {
  if (names != nullptr) tree->named = RunWithNames(*names, tree->trains());
  if (tree->named != nullptr) AlignNames(recording, window, *tree->named, tree);
  JoinBackward(window, tree);
}

}  // namespace rfinject::cli
