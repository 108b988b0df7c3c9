#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/import/torch/dialect.h"
#include "cli/import/torch/stages.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

class WindowCosts {
 public:
  WindowCosts(const TorchRecording& recording, const TorchWindow& window, const CallTree& tree,
              const CostedProgram& program, CostedTimes* times, RunBuilder* builder)
      : recording_(recording),
        window_(window),
        tree_(tree),
        program_(program),
        works_(recording, window, tree),
        times_(*times),
        builder_(*builder) {}

  void Add() {
    DivideWork();
    for (size_t i = 0; i < window_.activities.size() && builder_.fits(); ++i) AddActivity(i);
    AddCounters();
  }

 private:
  // Divides the work of each call of an operator among its kernels.
  void DivideWork() {
    std::vector<std::pair<uint32_t, uint32_t>> of_operators;  // the operator's span, and the kernel
    for (uint32_t i = 0; i < window_.activities.size(); ++i) {
      const uint32_t op = OperatorAt(tree_.places[i].span);
      const bool works = op != kNoSpan && window_.activities[i].kind == TorchActivity::Kind::kKernel;
      if (works && !IsCommunicationKernel(KernelName(i))) of_operators.emplace_back(op, i);
    }
    std::sort(of_operators.begin(), of_operators.end());
    std::vector<KernelOfCall> kernels;
    parts_.assign(window_.activities.size(), WorkPart());
    for (size_t first = 0, end = 0; first < of_operators.size(); first = end) {
      const uint32_t op = of_operators[first].first;
      while (end < of_operators.size() && of_operators[end].first == op) ++end;
      kernels.clear();
      for (size_t i = first; i < end; ++i) {
        const uint32_t activity = of_operators[i].second;
        kernels.push_back({KernelName(activity), static_cast<uint64_t>(window_.activities[activity].duration)});
      }
      const std::vector<WorkPart> parts = PartsOf(works_.Of(op).Shape(), kernels);
      for (size_t i = first; i < end; ++i) parts_[of_operators[i].second] = parts[i - first];
    }
  }

  // The operator that a span's kernels are of: the innermost whose work is known, else the outermost.
  uint32_t OperatorAt(uint32_t span) {
    if (span == kNoSpan) return kNoSpan;
    const uint32_t inner = tree_.spans[span].cost;
    for (uint32_t op = inner; op != kNoSpan; op = tree_.spans[op].outer_cost) {
      if (tree_.spans[op].outer_cost == kNoSpan || works_.Of(op).lacks.empty()) return op;
    }
    return inner;
  }

  const std::string& KernelName(size_t activity) const {
    return recording_.texts[recording_.launches[window_.activities[activity].launch].name];
  }

  Phase PhaseOf(size_t index) const {
    const TorchActivity& activity = window_.activities[index];
    const std::string& kernel = KernelName(index);
    if (activity.kind == TorchActivity::Kind::kKernel && IsCommunicationKernel(kernel)) return Phase::kCommunication;
    // Between host and GPU data is moved, whoever asked for it.
    if (activity.kind == TorchActivity::Kind::kCopy && CrossesBus(kernel)) return Phase::kData;
    const uint32_t span = tree_.places[index].span;
    return span == kNoSpan ? Phase::kOther : tree_.spans[span].phase;
  }

  LayerKey LayerOf(uint32_t span) const {
    if (!program_.has_modules) return {program_.model, ""};
    const RecordedLayer& layer = tree_.layers[span == kNoSpan ? 0 : tree_.spans[span].layer];
    return {layer.model, layer.path};
  }

  void AddActivity(size_t index) {
    const TorchActivity& activity = window_.activities[index];
    const TorchLaunch& launched = recording_.launches[activity.launch];
    const uint32_t op = OperatorAt(tree_.places[index].span);
    LaunchKey key;
    key.kernel = recording_.texts[launched.name];
    if (key.kernel.empty()) key.kernel = "(no name)";
    key.grid = launched.grid;
    key.block = launched.block;
    key.dynamic_shared_bytes = launched.shared_bytes;
    key.device = launched.device;
    key.phase = PhaseOf(index);
    key.layer = LayerOf(tree_.places[index].span);
    // A node of a CUDA graph knows the module that it was captured in.
    if (launched.module != 0 && !program_.has_modules)
      key.layer = {program_.model, recording_.texts[launched.module]};
    const OperatorWork* work = nullptr;
    if (op != kNoSpan) {
      work = &works_.Of(op);
      key.op = work->op;
      key.signature = work->signature;
    } else if (tree_.places[index].call != kNoSpan) {
      const std::string& call = recording_.texts[window_.calls[tree_.places[index].call].name];
      if (IsGraphLaunch(call)) key.op = call;
    } else if (recording_.all_calls.size() > 0 && activity.kind == TorchActivity::Kind::kKernel) {
      key.op = kLaunchNotInFile;
    }
    const auto ns = static_cast<uint64_t>(activity.duration);
    LaunchStats* const stats = builder_.AddLaunch(key);
    if (stats == nullptr) return;
    RunBuilder::TimesOf(stats).Add(ns);
    if (const uint32_t call = tree_.places[index].call;
        call != kNoSpan && activity.start < window_.calls[call].start) {
      ++times_.early;
      const auto apart = static_cast<uint64_t>(window_.calls[call].start) - static_cast<uint64_t>(activity.start);
      times_.early_ns = std::max(times_.early_ns, apart);
    }
    const size_t step = tree_.StepAt(tree_.places[index].launched);
    times_.steps_ns.resize(tree_.steps().size());
    if (step == tree_.steps().size()) {
      times_.outside_ns += tree_.steps().empty() ? 0 : ns;
    } else {
      times_.steps_ns[step] += ns;
      if (KeepsSteps(tree_)) AddToStep(step, ns, &stats->step_sums[std::string(kMetricTime)]);
    }
    times_.total_ns += ns;
    if (activity.kind != TorchActivity::Kind::kKernel) {
      times_.moved_ns += ns;
      return;
    }
    if (key.phase == Phase::kCommunication) {
      times_.communicated_ns += ns;
      return;
    }
    if (work == nullptr) {
      times_.without_operator_ns += ns;
      return;
    }
    if (!work->lacks.empty()) {
      times_.lacking.Add(*work, ns);
      return;
    }
    if (work->given) times_.given_ns += ns;
    AddWork(*work, parts_[index], {key.kernel, ns}, program_.gpu, stats);
  }

  static void AddToStep(size_t step, uint64_t ns, std::vector<StepSum>* sums) {
    const auto at = std::lower_bound(sums->begin(), sums->end(), step,
                                     [](const StepSum& sum, uint64_t wanted) { return sum.step < wanted; });
    if (at != sums->end() && at->step == step) {
      at->sum += ns;
    } else {
      sums->insert(at, {step, ns});
    }
  }

  // Counters are of kernels that the profiler ran one by one, whose times are not those of the program. An operator's
  // work stands at the kernel that did most.
  void AddCounters() {
    std::map<uint32_t, std::pair<double, size_t>> main;  // by operator: the sum of its counters, and which they are
    for (size_t i = 0; i < tree_.counted.size(); ++i) {
      double sum = 0;
      for (const auto& [metric, value] : recording_.counters[i].values) sum += value;
      const uint32_t op = CountedOperator(i);
      if (op != kNoSpan) main[op] = std::max(main[op], std::pair(sum, i));
    }
    for (size_t i = 0; i < recording_.counters.size(); ++i) {
      const TorchCounters& one = recording_.counters[i];
      const uint32_t op = CountedOperator(i);
      LaunchKey key;
      key.kernel = recording_.texts[one.name];
      const OperatorWork* work = nullptr;
      if (op == kNoSpan) {
        key.layer = LayerOf(kNoSpan);
      } else {
        work = &works_.Of(op);
        key.op = work->op;
        key.signature = work->signature;
        key.phase = tree_.spans[tree_.counted[i].span].phase;
        key.layer = LayerOf(tree_.counted[i].span);
      }
      LaunchStats* const stats = builder_.AddLaunch(key);
      if (stats == nullptr) return;
      for (const auto& [metric, value] : one.values) {
        const std::string& name = recording_.texts[metric];
        if (!(value >= 0) || value > 1e18) continue;
        stats->metrics[name].Add(static_cast<uint64_t>(value));
        DefineMetric(name, "", &builder_.result.profile);
      }
      if (work == nullptr || !work->lacks.empty()) continue;
      const bool is_main = main[op].second == i;
      stats->metrics[std::string(kMetricModelFlop)].Add(is_main ? work->flop.model : 0);
      stats->metrics[std::string(kMetricCompulsoryBytes)].Add(is_main ? work->bytes : 0);
    }
  }

  uint32_t CountedOperator(size_t index) {
    return index < tree_.counted.size() ? OperatorAt(tree_.counted[index].span) : kNoSpan;
  }

  const TorchRecording& recording_;
  const TorchWindow& window_;
  const CallTree& tree_;
  const CostedProgram& program_;
  WorkTable works_;
  std::vector<WorkPart> parts_;  // by activity
  CostedTimes& times_;
  RunBuilder& builder_;
};

}  // namespace

void AddCosts(const TorchRecording& recording, const TorchWindow& window, const CallTree& tree,
              const CostedProgram& program, CostedTimes* times, RunBuilder* builder) {
  WindowCosts(recording, window, tree, program, times, builder).Add();
}

}  // namespace rfinject::cli
