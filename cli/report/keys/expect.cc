#include "cli/report/keys/expect.h"

#include <algorithm>

#include "cli/model/transfer.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

EstimatedKernel KernelOf(const LaunchKey& key, const Sums& sums) {
  const double launches = static_cast<double>(sums.launches);
  EstimatedKernel kernel{.op = key.kernel,
                         .signature = key.signature,
                         .bytes = sums.compulsory_bytes() / launches,
                         .gradient = key.phase == Phase::kBackward};
  kernel.flop = sums.flop();
  for (double& flop : kernel.flop) flop /= launches;
  return kernel;
}

std::optional<ExpectedTimes> ModelOf(const Run& run, const Calibration& calibration) {
  if (run.key.source != SourceKind::kEstimated) return std::nullopt;
  const Gpu* gpu = FindGpu(run.key.estimated_gpu);
  if (gpu == nullptr) return std::nullopt;
  return ExpectedTimes(*gpu, calibration);
}

void ApplyExpected(const LaunchKey& key, const ExpectedTimes& model, KeyQuantities& quantities) {
  Sums& sums = quantities.sums;
  if (sums.launches == 0) return;
  const double launches = static_cast<double>(sums.launches);
  const Transfer transfer = {.pcie_bytes = sums[Quantity::kPcieBytes] / launches,
                             .nvlink_bytes = sums[Quantity::kNvlinkBytes] / launches,
                             .collective = key.phase == Phase::kCommunication};
  ExpectedTime time = ExpectedTransfer(transfer, model.gpu());
  if (!(time.expected_s > 0)) time = ExpectedTimeOf(KernelOf(key, sums), model);
  if (!(time.expected_s > 0)) return;
  const double ns = 1e9 * launches;
  sums[Quantity::kIdealTime] = time.ideal_s * ns;
  if (time.dram_bytes > 0) sums[Quantity::kDramBytes] = time.dram_bytes * launches;
  sums[Quantity::kTime] = 0;  // the recorded one
  sums.AddExpected(Expectation::kTime, time.group, time.expected_s * ns, time.low_s * ns, time.high_s * ns);
  if (time.winograd) sums[Quantity::kWinogradTime] = sums.time_ns();
  if (time.calibrated != Calibrated::kGpu) sums[Quantity::kForeignTime] = sums.time_ns();
  if (quantities.least_launch_ns > 0) quantities.least_launch_ns = time.expected_s * 1e9;
}

std::optional<ExpectedTimes> UsualModelOf(const Run& run, std::string_view machine, const Calibration& calibration) {
  const auto knows_operator = [](const auto& launch) {
    return launch.second.metrics.contains(std::string(kMetricCallPart));
  };
  const bool measured = run.key.source == SourceKind::kMeasured;
  if (measured ? !std::ranges::any_of(run.launches, knows_operator) : run.key.source != SourceKind::kImported) {
    return std::nullopt;
  }
  const Gpu* gpu = FindGpu(machine);
  if (gpu == nullptr || !HasEstimates(*gpu)) return std::nullopt;
  return ExpectedTimes(*gpu, calibration);
}

std::optional<CallWork> CallWorkOf(const LaunchStats& stats) {
  const auto find = [&stats](std::string_view metric) -> const Stat* {
    const auto found = stats.metrics.find(std::string(metric));
    return found != stats.metrics.end() && found->second.n > 0 ? &found->second : nullptr;
  };
  const Stat* const bytes = find(kMetricCompulsoryBytes);
  if (bytes == nullptr) return std::nullopt;
  CallWork work;
  if (bytes->max == 0) return work;
  // All calls of a key have the same operands.
  const Stat* const part = find(kMetricCallPart);
  const double calls = part != nullptr && part->n == bytes->n && part->sum > 0
                           ? static_cast<double>(part->sum) / static_cast<double>(kWholeCall)
                           : static_cast<double>(bytes->sum) / static_cast<double>(bytes->max);
  work.bytes = static_cast<double>(bytes->sum) / calls;
  const bool observed = std::ranges::any_of(kMetricCallFlop, [&](std::string_view metric) { return find(metric); });
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    const Stat* const flop = find(observed ? kMetricCallFlop[i] : kMetricFlop[i]);
    if (flop != nullptr) work.flop[i] = static_cast<double>(flop->sum) / calls;
  }
  // Samples may be those of some launches.
  work.calls = calls * static_cast<double>(stats.launches) / static_cast<double>(bytes->n);
  return work;
}

namespace {

// Winograd's and Fourier's algorithm execute fewer FLOP than the definition of a convolution has, by which the model
// of expected times goes.
void RestoreConvolution(const LaunchKey& key, const LaunchStats& stats, double calls, EstimatedKernel* kernel) {
  const auto model = stats.metrics.find(std::string(kMetricModelFlop));
  if (key.op.find("convolution") == std::string::npos || model == stats.metrics.end()) return;
  const double defined = static_cast<double>(model->second.sum) / calls, executed = TotalFlop({.flop = kernel->flop});
  if (!(executed > 0) || executed >= defined) return;
  for (double& flop : kernel->flop) flop *= defined / executed;
}

// What all calls take, of which the key's launches are a part. Nothing where that is not known.
std::optional<ExpectedTime> ExpectedOfCalls(const LaunchKey& key, const LaunchStats& stats,
                                            const ExpectedTimes& model, const Sums& sums) {
  const std::optional<CallWork> work = CallWorkOf(stats);
  if (!work) return std::nullopt;
  ExpectedTime time;
  if (!(work->calls > 0)) return time;
  time = ExpectedTransfer({.pcie_bytes = sums[Quantity::kPcieBytes] / work->calls}, model.gpu());
  if (!(time.expected_s > 0)) {
    EstimatedKernel kernel{.op = key.op,
                           .signature = key.signature,
                           .flop = work->flop,
                           .bytes = work->bytes,
                           .gradient = key.phase == Phase::kBackward};
    RestoreConvolution(key, stats, work->calls, &kernel);
    time = ExpectedTimeOf(kernel, model);
  }
  if (!(time.expected_s > 0)) return std::nullopt;
  for (double* const seconds : {&time.ideal_s, &time.expected_s, &time.low_s, &time.high_s}) *seconds *= work->calls;
  return time;
}

void AddTo(Expectation interval, const ExpectedTime& time, Sums* sums) {
  sums->AddExpected(interval, time.group, time.expected_s * 1e9, time.low_s * 1e9, time.high_s * 1e9);
}

}  // namespace

void AddUsual(const LaunchKey& key, const LaunchStats& stats, const ExpectedTimes& model, Sums* sums) {
  const std::optional<ExpectedTime> usual = ExpectedOfCalls(key, stats, model, *sums);
  if (!usual) return;
  (*sums)[Quantity::kIdealTime] += usual->ideal_s * 1e9;
  AddTo(Expectation::kUsual, *usual, sums);
  (*sums)[Quantity::kTimeWithUsual] += sums->time_ns();
}

void AddOther(const LaunchKey& key, const LaunchStats& stats, const ExpectedTimes& other, Sums* sums) {
  const std::optional<ExpectedTime> time = ExpectedOfCalls(key, stats, other, *sums);
  if (!time) return;
  AddTo(Expectation::kOther, *time, sums);
}

}  // namespace rfinject::cli
