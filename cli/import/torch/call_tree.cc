#include "cli/import/torch/call_tree.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "cli/import/nvtx_ranges.h"
#include "cli/import/torch/names.h"
#include "cli/import/torch/words.h"
#include "operators/op_table.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kEngine = "autograd::engine::evaluate_function";

// "CudnnConvolutionBackward", "ReluBackward1", "torch::autograd::AccumulateGrad": autograd's nodes, which older
// dialects have without the engine's span around them.
bool IsAutogradNode(std::string_view name) {
  if (name.starts_with("torch::autograd::")) return true;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.remove_suffix(1);
  return name.ends_with("Backward") && !Contains(name, "aten::");
}

bool IsCheckpoint(std::string_view name) { return Contains(name, "CheckpointFunctionBackward"); }

// "Conv2d_12" is of class Conv2d.
std::string_view ClassOf(std::string_view instance) {
  const size_t end = instance.rfind('_');
  return end == std::string_view::npos ? instance : instance.substr(0, end);
}

class Maker {
 public:
  explicit Maker(const TorchRecording& recording) : recording_(recording) {}

  CallTree Make() {
    tree_.spans.resize(recording_.spans.size());
    tree_.order.resize(recording_.spans.size());
    std::iota(tree_.order.begin(), tree_.order.end(), 0u);
    std::sort(tree_.order.begin(), tree_.order.end(), [this](uint32_t a, uint32_t b) { return Rank(a) < Rank(b); });
    ClassifyNames();
    Nest();
    FindSteps();
    JoinActivities();
    JoinCounters();
    return std::move(tree_);
  }

 private:
  const TorchSpan& Span(uint32_t index) const { return recording_.spans[index]; }
  const std::string& Name(uint32_t index) const { return recording_.texts[Span(index).name]; }

  // An annotation is around a module, and that around an operator, where all begin at once.
  std::tuple<uint32_t, int64_t, int64_t, int, uint32_t> Rank(uint32_t index) const {
    const TorchSpan& span = Span(index);
    constexpr int kRanks[] = {2, 0, 1};
    return {span.thread, span.start, -span.end, kRanks[static_cast<size_t>(span.kind)], index};
  }

  // What a name means, found out once for each.
  enum NameBits : uint8_t { kAtomic = 1, kEngineNode = 2, kAutograd = 4, kCheckpoint = 8 };
  void ClassifyNames() {
    bits_.assign(recording_.texts.size(), kUnknown);
    phases_.assign(recording_.texts.size(), Phase::kOther);
  }
  uint8_t BitsOf(uint32_t name) {
    uint8_t& bits = bits_[name];
    if (bits != kUnknown) return bits;
    const std::string& text = recording_.texts[name];
    bits = 0;
    const auto rule = estimate::FindOp(text);
    if (text.starts_with("aten::") && rule && rule->kind == OpKind::kAtomic) bits |= kAtomic;
    if (text.starts_with(kEngine)) bits |= kEngineNode;
    if (IsAutogradNode(text)) bits |= kAutograd;
    if (IsCheckpoint(text)) bits |= kCheckpoint;
    phases_[name] = text.starts_with("Optimizer.") ? Phase::kOptimizer
                    : IsLoaderName(text)           ? Phase::kData
                                                   : PhaseOfRange(text);
    return bits;
  }

  // --- Which span is in which.
  void Nest() {
    FindEngineThreads();
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
        place.backward = parent.backward;
        place.layer = parent.layer;
        place.phase = parent.phase;
      } else if (engine_threads_[span.thread]) {
        place.phase = Phase::kBackward;
      }
      Place(index, span, &place);
      open.push_back(index);
    }
  }

  // Threads that do nothing but run autograd's nodes: what stands between two of them adds gradients up.
  void FindEngineThreads() {
    std::vector<uint8_t> nodes(recording_.threads.size(), 0), others(recording_.threads.size(), 0);
    for (const TorchSpan& span : recording_.spans) {
      if (span.kind != TorchSpan::Kind::kOperator) others[span.thread] = 1;
      if ((BitsOf(span.name) & (kEngineNode | kAutograd)) != 0) nodes[span.thread] = 1;
    }
    engine_threads_.resize(recording_.threads.size());
    for (size_t i = 0; i < nodes.size(); ++i) engine_threads_[i] = nodes[i] != 0 && others[i] == 0;
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
          tree_.trains = true;
        } else if (place->phase == Phase::kOther) {
          place->phase = Phase::kForward;
        } else if (place->parent != kNoSpan && (BitsOf(Span(place->parent).name) & kCheckpoint) != 0 && !node) {
          place->phase = Phase::kRecompute;
        }
        const bool inside = place->cost != kNoSpan && (BitsOf(Span(place->cost).name) & kAtomic) != 0;
        place->op = index;
        if (!inside) place->cost = index;
        break;
      }
    }
  }

  // Deeper modules are taken for part of the one around them: no network has such, and the paths of a file that is
  // made to nest a million take memory by the square.
  static constexpr uint32_t kMostNested = 64;

  uint32_t LayerIn(uint32_t parent, uint32_t name) {
    if (depths_[parent] == kMostNested) return parent;
    const auto [known, is_new] = layers_.try_emplace({parent, name}, static_cast<uint32_t>(tree_.layers.size()));
    if (!is_new) return known->second;
    const std::string& instance = recording_.texts[name];
    const RecordedLayer above = tree_.layers[parent];
    RecordedLayer layer;
    layer.class_name = ClassOf(instance);
    layer.parent = parent;
    if (parent == 0) {
      // The first of a class bears its name; further networks of that class are told apart.
      layer.model = instance.ends_with("_0") ? layer.class_name : instance;
    } else {
      layer.model = above.model;
      layer.path = above.path.empty() ? instance : above.path + "." + instance;
    }
    tree_.layers.push_back(std::move(layer));
    depths_.push_back(depths_[parent] + 1);
    return known->second;
  }

  // --- Steps: the spans that the profiler's own step() made, else from one optimizer's step to the next.
  void FindSteps() {
    std::map<uint32_t, std::vector<StepRange>> marked, optimized;
    for (const uint32_t index : tree_.order) {
      const TorchSpan& span = Span(index);
      if (span.kind != TorchSpan::Kind::kAnnotation) continue;
      if (Name(index).starts_with("ProfilerStep#")) marked[span.thread].push_back({span.start, span.end});
      if (Name(index).starts_with("Optimizer.step#")) optimized[span.thread].push_back({span.start, span.end});
    }
    tree_.steps_marked = !marked.empty();
    auto& chosen = tree_.steps_marked ? marked : optimized;
    const auto most = std::max_element(
        chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (most == chosen.end()) return;
    tree_.step_thread = most->first;
    for (const StepRange& range : most->second) {
      StepRange step = range;
      if (!tree_.steps.empty()) {
        if (range.start < tree_.steps.back().end) continue;  // one inside of another
        if (!tree_.steps_marked) step.start = tree_.steps.back().end;
      } else if (!tree_.steps_marked) {
        step.start = INT64_MIN;  // what came before the first optimizer's step belongs to it
      }
      tree_.steps.push_back(step);
    }
  }

  // --- The GPU's work. A call of CUDA leads to the innermost span of its thread at its time; where the file has no
  // call for a launch, the profiler's own number of the operator does.
  void JoinActivities() {
    tree_.places.resize(recording_.activities.size());
    std::vector<uint32_t> by_correlation(recording_.calls.size());
    std::iota(by_correlation.begin(), by_correlation.end(), 0u);
    std::sort(by_correlation.begin(), by_correlation.end(), [this](uint32_t a, uint32_t b) {
      return recording_.calls[a].correlation < recording_.calls[b].correlation;
    });
    const std::vector<uint32_t> span_of_call = SpansOfCalls();
    std::map<uint64_t, uint32_t> by_external_id;
    for (uint32_t i = 0; i < recording_.spans.size(); ++i) {
      const TorchSpan& span = Span(i);
      if (span.kind == TorchSpan::Kind::kOperator && span.external_id != 0)
        by_external_id.emplace(span.external_id, i);
    }
    for (size_t i = 0; i < recording_.activities.size(); ++i) {
      const TorchActivity& activity = recording_.activities[i];
      ActivityPlace& place = tree_.places[i];
      place.launched = activity.start;
      const auto found = std::lower_bound(
          by_correlation.begin(), by_correlation.end(), activity.correlation,
          [this](uint32_t call, uint64_t wanted) { return recording_.calls[call].correlation < wanted; });
      const auto named = by_external_id.find(activity.external_id);
      const bool has_call = activity.correlation != 0 && found != by_correlation.end() &&
                            recording_.calls[*found].correlation == activity.correlation;
      if (has_call) {
        place.call = *found;
        place.launched = recording_.calls[*found].start;
        if (IsGraphLaunch(recording_.texts[recording_.calls[*found].name])) {
          ++tree_.of_graphs;
          continue;
        }
        place.span = span_of_call[*found];
        const uint32_t op = place.span == kNoSpan ? kNoSpan : tree_.spans[place.span].op;
        if (op != kNoSpan) ++tree_.by_call;
        if (op != kNoSpan && named != by_external_id.end() && named->second != op) ++tree_.disagree;
        if (op != kNoSpan) continue;
      } else {
        ++tree_.without_launch;
      }
      // A number is taken only of an operator that began before the work did, and not long after it had ended: some
      // dialects fill it with the launch's own number.
      if (named == by_external_id.end() || Span(named->second).start > place.launched) continue;
      if (has_call && Span(named->second).end < place.launched) continue;
      place.span = named->second;
      ++tree_.by_external_id;
    }
  }

  // The profiler counts each kernel that was launched, in that order, and says neither when nor from where: where
  // there are as many launches, the k-th is the k-th.
  void JoinCounters() {
    std::vector<uint32_t> launches;
    for (uint32_t i = 0; i < recording_.calls.size(); ++i) {
      if (Contains(recording_.texts[recording_.calls[i].name], "LaunchKernel")) launches.push_back(i);
    }
    std::vector<uint32_t> ranges(recording_.counters.size());
    if (launches.size() != ranges.size() || ranges.empty()) return;
    std::iota(ranges.begin(), ranges.end(), 0u);
    std::sort(launches.begin(), launches.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(recording_.calls[a].start, a) < std::pair(recording_.calls[b].start, b);
    });
    std::sort(ranges.begin(), ranges.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(recording_.counters[a].start, a) < std::pair(recording_.counters[b].start, b);
    });
    const std::vector<uint32_t> span_of_call = SpansOfCalls();
    tree_.counted.resize(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      tree_.counted[ranges[i]] = {span_of_call[launches[i]], recording_.calls[launches[i]].start, launches[i]};
    }
  }

  std::vector<uint32_t> SpansOfCalls() const {
    std::vector<uint32_t> result(recording_.calls.size(), kNoSpan), calls(recording_.calls.size());
    std::iota(calls.begin(), calls.end(), 0u);
    std::sort(calls.begin(), calls.end(), [this](uint32_t a, uint32_t b) {
      const TorchCall &x = recording_.calls[a], &y = recording_.calls[b];
      return std::tie(x.thread, x.start) < std::tie(y.thread, y.start);
    });
    std::vector<uint32_t> open;
    size_t next = 0;
    for (const uint32_t index : calls) {
      const TorchCall& call = recording_.calls[index];
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
  CallTree tree_;
  std::vector<uint8_t> bits_;
  std::vector<Phase> phases_;
  std::vector<bool> engine_threads_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> layers_;
  std::vector<uint32_t> depths_ = {0};  // of tree_.layers
};

// A node of the backward has the sequence number of the forward operator that made it, and so its layer.
void JoinBackward(const TorchRecording& recording, CallTree* tree) {
  struct Forward {
    int64_t sequence = 0, start = 0;
    uint32_t span = 0;
    bool operator<(const Forward& other) const {
      return std::tie(sequence, start) < std::tie(other.sequence, other.start);
    }
  };
  std::vector<Forward> forwards;
  for (const uint32_t index : tree->order) {
    const TorchSpan& span = recording.spans[index];
    const SpanPlace& place = tree->spans[index];
    if (span.sequence == TorchSpan::kNone || place.backward != kNoSpan) continue;
    const bool outer = place.parent == kNoSpan || recording.spans[place.parent].sequence != span.sequence;
    if (outer) forwards.push_back({span.sequence, span.start, index});
  }
  std::sort(forwards.begin(), forwards.end());
  for (const uint32_t index : tree->order) {
    SpanPlace& place = tree->spans[index];
    if (place.backward == kNoSpan) continue;
    if (place.backward != index) {
      // A module that a recomputation calls has its own name.
      if (recording.spans[index].kind != TorchSpan::Kind::kModule) place.layer = tree->spans[place.parent].layer;
      continue;
    }
    const TorchSpan& span = recording.spans[index];
    place.layer = 0;
    if (span.sequence == TorchSpan::kNone) continue;
    // After a recomputation a number repeats: the last one before the node ran is meant.
    const auto behind = std::upper_bound(forwards.begin(), forwards.end(), Forward{span.sequence, span.start, 0});
    if (behind == forwards.begin() || std::prev(behind)->sequence != span.sequence) continue;
    place.layer = tree->spans[std::prev(behind)->span].layer;
  }
}

}  // namespace

size_t CallTree::StepAt(int64_t time) const {
  const auto behind = std::upper_bound(steps.begin(), steps.end(), time,
                                       [](int64_t at, const StepRange& step) { return at < step.start; });
  if (behind == steps.begin() || time >= std::prev(behind)->end) return steps.size();
  return static_cast<size_t>(std::prev(behind) - steps.begin());
}

bool IsGraphLaunch(std::string_view name) {
  return name.starts_with("cudaGraphLaunch") || name.starts_with("cuGraphLaunch") ||
         name.starts_with("hipGraphLaunch");
}

CallTree MakeCallTree(const TorchRecording& recording) { return Maker(recording).Make(); }

void PlaceLayers(const TorchRecording& recording, const Profile* names, CallTree* tree) {
  if (names != nullptr) tree->named = RunWithNames(*names, tree->trains);
  if (tree->named != nullptr) AlignNames(recording, *tree->named, tree);
  JoinBackward(recording, tree);
}

}  // namespace rfinject::cli
