#include "cli/report/keys/expect.h"

#include "cli/model/transfer.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

EstimatedKernel KernelOf(const LaunchKey& key, const Sums& sums) {
  const double launches = static_cast<double>(sums.launches);
  EstimatedKernel kernel{.op = key.kernel, .signature = key.signature, .bytes = sums.compulsory_bytes() / launches};
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
  sums[Quantity::kTime] = time.expected_s * ns;
  sums[Quantity::kTimeLow] = time.low_s * ns;
  sums[Quantity::kTimeHigh] = time.high_s * ns;
  if (time.winograd) sums[Quantity::kWinogradTime] = sums.time_ns();
  if (time.calibrated != Calibrated::kGpu) sums[Quantity::kForeignTime] = sums.time_ns();
  if (quantities.least_launch_ns > 0) quantities.least_launch_ns = time.expected_s * 1e9;
}

std::optional<ExpectedTimes> UsualModelOf(const Run& run, std::string_view machine, const Calibration& calibration) {
  if (run.key.source != SourceKind::kImported) return std::nullopt;
  const Gpu* gpu = FindGpu(machine);
  if (gpu == nullptr || !HasEstimates(*gpu)) return std::nullopt;
  return ExpectedTimes(*gpu, calibration);
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

}  // namespace

void AddUsual(const LaunchKey& key, const LaunchStats& stats, const ExpectedTimes& model, Sums* sums) {
  const auto bytes = stats.metrics.find(std::string(kMetricCompulsoryBytes));
  if (bytes == stats.metrics.end() || bytes->second.n == 0) return;
  ExpectedTime usual;
  double ns = 0;  // of all calls, for a second of one
  if (bytes->second.max > 0) {
    // Kernels share the work of a call; all calls of a key have the same operands.
    const auto part = stats.metrics.find(std::string(kMetricCallPart));
    const double calls = part != stats.metrics.end() && part->second.n == bytes->second.n && part->second.sum > 0
                             ? static_cast<double>(part->second.sum) / static_cast<double>(kWholeCall)
                             : static_cast<double>(bytes->second.sum) / static_cast<double>(bytes->second.max);
    EstimatedKernel kernel{
        .op = key.op, .signature = key.signature, .bytes = static_cast<double>(bytes->second.sum) / calls};
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      const auto flop = stats.metrics.find(std::string(kMetricFlop[i]));
      if (flop != stats.metrics.end()) kernel.flop[i] = static_cast<double>(flop->second.sum) / calls;
    }
    RestoreConvolution(key, stats, calls, &kernel);
    usual = ExpectedTimeOf(kernel, model);
    if (!(usual.expected_s > 0)) return;
    ns = 1e9 * calls;
  }
  (*sums)[Quantity::kUsualTime] += usual.expected_s * ns;
  (*sums)[Quantity::kUsualLow] += usual.low_s * ns;
  (*sums)[Quantity::kUsualHigh] += usual.high_s * ns;
  (*sums)[Quantity::kTimeWithUsual] += sums->time_ns();
}

}  // namespace rfinject::cli
