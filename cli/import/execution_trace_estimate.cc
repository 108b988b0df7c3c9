#include "cli/import/execution_trace_estimate.h"

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/nvtx_ranges.h"
#include "cli/import/torch/add_work.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/execution_trace.h"
#include "cli/import/torch/operands.h"
#include "cli/import/torch/words.h"
#include "gpus/gpus.h"
#include "operators/cost.h"
#include "operators/flop.h"
#include "operators/signature.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kMetricPcieBytes = "rf.pcie_bytes";

class Estimator {
 public:
  Estimator(const ExecutionTrace& trace, const Gpu& gpu, const ImportOptions& options) : trace_(trace), gpu_(gpu) {
    model_ = options.model.empty() ? options.likely_model : options.model;
    if (model_.empty()) model_ = "program";
  }

  Imported Run() {
    places_.resize(trace_.calls.size());
    for (uint32_t i = 0; i < trace_.calls.size(); ++i) Place(i);
    // What is inside comes behind: from the last to the first, each knows what its children became.
    for (auto i = static_cast<uint32_t>(trace_.calls.size()); i-- > 0;) Cost(i);
    Finish();
    return std::move(result_);
  }

 private:
  struct At {
    Phase phase = Phase::kForward;
    bool inside = false;   // of an operator that is one kernel, or free
    bool counted = false;  // some operator in it became a kernel
  };

  void Place(uint32_t index) {
    const ExecutedCall& call = trace_.calls[index];
    const std::string& name = trace_.texts[call.name];
    At& at = places_[index];
    if (call.parent != ExecutedCall::kNone) {
      const ExecutedCall& above = trace_.calls[call.parent];
      at.phase = places_[call.parent].phase;
      const bool whole = above.is_operator && ClassifyOp(trace_.texts[above.name]) != OpKind::kLeafIfChildless;
      at.inside = places_[call.parent].inside || whole;
    }
    if (call.is_operator) {
      if (name.starts_with("autograd::engine::evaluate_function")) at.phase = Phase::kBackward;
      trains_ = trains_ || at.phase == Phase::kBackward;
    } else if (name.starts_with("Optimizer.")) {
      at.phase = Phase::kOptimizer;
    } else if (const Phase phase = PhaseOfRange(name); phase != Phase::kOther) {
      at.phase = phase;
    }
  }

  void Cost(uint32_t index) {
    const ExecutedCall& call = trace_.calls[index];
    const At& at = places_[index];
    bool counted = at.counted;
    if (call.is_operator && !at.inside && !(trace_.uses_gpu && call.on_host)) counted = AddKernel(index) || counted;
    if (call.parent == ExecutedCall::kNone) return;
    At& above = places_[call.parent];
    above.counted = above.counted || counted;
  }

  bool AddKernel(uint32_t index) {
    const ExecutedCall& executed = trace_.calls[index];
    const std::string& name = trace_.texts[executed.name];
    const RecordedCall recorded(name, trace_.operands[executed.operands], DType::kFloat);
    OpCall call = recorded.call();
    call.crosses_devices = executed.crosses_devices;
    call.children_counted = places_[index].counted;
    const estimate::Cost cost = estimate::EstimateCost(call, gpu_, {});
    if (!cost.kernel) return false;
    ++result_.kernels;
    if (!cost.known && estimate::IsFloating(estimate::ResultType(call))) ++unknown_[name];
    LaunchKey key;
    key.layer = {model_, ""};
    key.phase = cost.pcie_bytes != 0 ? Phase::kData : places_[index].phase;
    key.op = key.kernel = name;
    std::array<char, estimate::kMaxSignature> buffer;
    key.signature = estimate::FormatSignature(call, buffer);
    Add(key, cost.time_ns, cost.model_flop, cost.dram_bytes, cost.executed_flop, cost.pcie_bytes, 1);
    for (const estimate::RepeatedCost& repeated : cost.repeated) {
      if (repeated.launches == 0) continue;
      LaunchKey more = key;
      absl::StrAppend(&more.kernel, std::string(repeated.kernel));
      std::array<uint64_t, kPrecisionCount> flop{};
      flop[static_cast<size_t>(repeated.precision)] = repeated.flop;
      Add(more, repeated.time_ns, repeated.flop, repeated.bytes, flop, 0, repeated.launches);
    }
    return true;
  }

  void Add(const LaunchKey& key, uint64_t ns, uint64_t model_flop, uint64_t bytes,
           const std::array<uint64_t, kPrecisionCount>& flop, uint64_t pcie_bytes, uint64_t launches) {
    LaunchStats& stats = run_.launches[key];
    wire::SaturatingAdd(&stats.launches, launches);
    const auto add = [&](std::string_view metric, uint64_t value) {
      stats.metrics[std::string(metric)].Add(value, launches);
    };
    add(kMetricTime, ns);
    add(kMetricModelFlop, model_flop);
    add(kMetricDramBytes, bytes);
    add(kMetricCompulsoryBytes, bytes);
    if (pcie_bytes != 0) add(kMetricPcieBytes, pcie_bytes);
    for (size_t p = 0; p < kPrecisionCount; ++p) {
      if (flop[p] != 0) add(kMetricFlop[p], flop[p]);
    }
  }

  void Finish() {
    DefineWork(&result_.profile);
    DefineMetric(kMetricPcieBytes, "byte", &result_.profile);
    run_.key.source = SourceKind::kEstimated;
    run_.key.estimated_gpu = run_.key.gpu = gpu_.name;
    run_.key.collector = kExecutionTraceCollector;
    run_.key.models = {model_};
    run_.key.training = trains_;
    run_.models[model_] = ModelInfo{.class_name = model_};
    run_.layers[{model_, ""}].order = 1;
    run_.processes = 1;
    run_.tier = kTierNamesOnly;
    run_.steps.steps = 1;
    run_.devices.emplace_back();
    DeviceInfo& device = run_.devices.back();
    device.name = gpu_.name;
    device.chip = gpu_.chip;
    device.cc_major = static_cast<uint32_t>(gpu_.cc_major);
    device.cc_minor = static_cast<uint32_t>(gpu_.cc_minor);
    device.sm_count = static_cast<uint32_t>(gpu_.sm_count);
    device.memory_bytes = gpu_.memory_bytes;
    if (!unknown_.empty()) {
      std::string text = absl::StrCat("of some operators, which have no rule, only bytes are known, and no FLOP: ",
                                      unknown_.begin()->first);
      if (unknown_.size() > 1) absl::StrAppend(&text, " and ", unknown_.size() - 1, " more");
      run_.kept.diagnostic.Add({.id = "work-not-known", .text = std::move(text)});
    }
    result_.rows = trace_.calls.size();
    result_.profile.runs[run_.key] = std::move(run_);
  }

  const ExecutionTrace& trace_;
  const Gpu& gpu_;
  std::string model_;
  std::vector<At> places_;
  bool trains_ = false;
  std::map<std::string, uint64_t> unknown_;
  cli::Run run_;
  Imported result_;
};

absl::StatusOr<Imported> Import(absl::StatusOr<std::unique_ptr<ByteStream>> bytes, const std::string& name,
                                const ImportOptions& options) {
  if (!bytes.ok()) return FailureOf(name, bytes.status());
  const Gpu* gpu = FindGpu(options.estimate);
  if (gpu == nullptr || !HasEstimates(*gpu)) {
    return FailureOf(
        name, absl::InvalidArgumentError(
                  "an execution trace has no times: rfinject import et FILE --estimate GPU -o TRACE estimates them"));
  }
  const absl::StatusOr<ExecutionTrace> trace = ReadExecutionTrace(**bytes);
  if (!trace.ok()) return FailureOf(name, trace.status());
  Imported imported = Estimator(*trace, *gpu, options).Run();
  if (imported.kernels == 0) {
    return FailureOf(name, absl::InvalidArgumentError("no operator in it does work on a GPU"));
  }
  return imported;
}

}  // namespace

absl::StatusOr<Imported> ImportExecutionTrace(const std::string& path, const ImportOptions& options) {
  return Import(ByteStream::Open(path), path, options);
}

absl::StatusOr<Imported> ImportExecutionTraceBytes(std::string_view bytes, const std::string& name,
                                                   const ImportOptions& options) {
  return Import(ByteStream::OfBytes(bytes), name, options);
}

}  // namespace rfinject::cli
