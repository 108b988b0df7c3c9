#include "cli/report/expect.h"

#include "cli/model/estimated_kernel.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

std::optional<ExpectedTimes> ModelOf(const Run& run) {
  if (run.key.source != SourceKind::kEstimated) return std::nullopt;
  const Gpu* gpu = FindGpu(run.key.estimated_gpu);
  if (gpu == nullptr) return std::nullopt;
  return ExpectedTimes(*gpu, Calibration::Shipped());
}

void ApplyExpected(const LaunchKey& key, const ExpectedTimes& model, KeyQuantities& quantities) {
  Sums& sums = quantities.sums;
  if (sums.launches == 0) return;
  const double launches = static_cast<double>(sums.launches);
  EstimatedKernel kernel{.op = key.kernel, .signature = key.signature, .bytes = sums.compulsory_bytes / launches};
  for (size_t i = 0; i < sums.flop.size(); ++i) kernel.flop[i] = sums.flop[i] / launches;
  const ExpectedTime time = ExpectedTimeOf(kernel, model);
  if (!(time.expected_s > 0)) return;
  sums.ideal_ns = sums.time_ns;
  sums.time_ns = time.expected_s * 1e9 * launches;
  sums.low_ns = time.low_s * 1e9 * launches;
  sums.high_ns = time.high_s * 1e9 * launches;
  if (time.winograd) sums.winograd_ns = sums.time_ns;
  if (time.calibrated != Calibrated::kGpu) sums.uncalibrated_ns = sums.time_ns;
  if (quantities.least_launch_ns > 0) quantities.least_launch_ns = time.expected_s * 1e9;
}

}  // namespace rfinject::cli
