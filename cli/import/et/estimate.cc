#include "cli/import/et/estimate.h"

#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/et/execution_trace.h"
#include "cli/import/nvtx_ranges.h"
#include "cli/import/run_builder.h"
#include "cli/import/torch/add_work.h"
#include "cli/import/torch/byte_stream.h"
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
  Estimator(const std::string& file, const ExecutionTrace& trace, const Gpu& gpu, const ImportOptions& options)
      : trace_(trace), gpu_(gpu), builder_(file, kExecutionTraceCollector) {
    builder_.SetModel(options.model.empty() ? options.likely_model : options.model);
  }

  absl::StatusOr<Imported> Run() {
    places_.resize(trace_.calls.size());
    for (uint32_t i = 0; i < trace_.calls.size(); ++i) Place(i);
    // What is inside comes behind: from the last to the first, each knows what its children became.
    for (auto i = static_cast<uint32_t>(trace_.calls.size()); i-- > 0;) Cost(i);
    if (builder_.result.kernels == 0) return builder_.Fail("no operator in it does work on a GPU");
    AddFacts();
    return builder_.Finish();
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
    ++builder_.result.kernels;
    if (!cost.known && estimate::IsFloating(estimate::ResultType(call))) ++unknown_[name];
    LaunchKey key;
    key.layer = {builder_.run.key.models[0], ""};
    key.phase = cost.pcie_bytes != 0 ? Phase::kData : places_[index].phase;
    key.op = key.kernel = name;
    std::array<char, estimate::kMaxSignature> buffer;
    key.signature = estimate::FormatSignature(call, buffer);
    Add(key, cost, 1);
    for (const estimate::RepeatedCost& repeated : cost.repeated) {
      if (repeated.launches == 0) continue;
      LaunchKey more = key;
      absl::StrAppend(&more.kernel, std::string(repeated.kernel));
      estimate::Cost each{.model_flop = repeated.flop,
                          .product_flop = repeated.product ? repeated.flop : 0,
                          .dram_bytes = repeated.bytes,
                          .time_ns = repeated.time_ns};
      each.executed_flop[static_cast<size_t>(repeated.precision)] = repeated.flop;
      Add(more, each, repeated.launches);
    }
    return true;
  }

  void Add(const LaunchKey& key, const estimate::Cost& cost, uint64_t launches) {
    LaunchStats& stats = builder_.run.launches[key];
    wire::SaturatingAdd(&stats.launches, launches);
    const auto add = [&](std::string_view metric, uint64_t value) {
      stats.metrics[std::string(metric)].Add(value, launches);
    };
    add(kMetricTime, cost.time_ns);
    add(kMetricModelFlop, cost.model_flop);
    add(kMetricDramBytes, cost.dram_bytes);
    add(kMetricCompulsoryBytes, cost.dram_bytes);
    if (cost.product_flop != 0) add(kMetricProductFlop, cost.product_flop);
    if (cost.hidden_flop != 0) add(kMetricHiddenFlop, cost.hidden_flop);
    if (cost.pcie_bytes != 0) add(kMetricPcieBytes, cost.pcie_bytes);
    for (size_t p = 0; p < kPrecisionCount; ++p) {
      if (cost.executed_flop[p] != 0) add(kMetricFlop[p], cost.executed_flop[p]);
    }
  }

  void AddFacts() {
    DefineWork(&builder_.result.profile);
    DefineMetric(kMetricPcieBytes, "byte", &builder_.result.profile);
    cli::Run& run = builder_.run;
    run.key.source = SourceKind::kEstimated;
    run.key.estimated_gpu = run.key.gpu = gpu_.name;
    run.key.training = trains_;
    run.layers[{run.key.models[0], ""}].order = 1;
    run.tier = kTierNamesOnly;
    DeviceInfo& device = run.devices.emplace_back();
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
      builder_.Say({.id = "work-not-known", .text = std::move(text)});
    }
    builder_.result.rows = trace_.calls.size();
  }

  const ExecutionTrace& trace_;
  const Gpu& gpu_;
  std::vector<At> places_;
  bool trains_ = false;
  std::map<std::string, uint64_t> unknown_;
  RunBuilder builder_;
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
  return Estimator(name, *trace, *gpu, options).Run();
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
