#include "cli/testing/as_measured.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "cli/model/expected.h"
#include "cli/model/transfer.h"
#include "cli/report/keys/expect.h"
#include "cli/trace/read.h"
#include "gpus/gpus.h"

namespace rfinject::cli::testing {

Profile ReadGoldenTrace(const std::string& name) {
  for (std::filesystem::path at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    const std::filesystem::path trace = at / "integration_tests" / "golden" / "traces" / (name + ".rfx");
    FileSource source;
    if (!std::filesystem::exists(trace) || !source.Open(trace.string()).ok()) continue;
    return std::move(ReadTrace(source).profile);
  }
  return {};
}

Profile AsMeasured(const Profile& estimate) {
  Profile measured;
  measured.metrics = estimate.metrics;
  for (const std::string_view name : {kMetricCallPart, kMetricCallFlop[0]}) {
    measured.metrics[std::string(name)] = {.name = std::string(name)};
  }
  Run run = estimate.runs.begin()->second;
  const Gpu& gpu = *FindGpu(run.key.estimated_gpu);
  const ExpectedTimes model(gpu, Calibration::Shipped());
  run.key.source = SourceKind::kMeasured;
  run.key.gpu = gpu.driver_name;
  run.key.estimated_gpu.clear();
  run.key.collector = "range-profiler";
  DeviceInfo device;
  device.name = gpu.driver_name;
  device.chip = gpu.chip;
  device.memory_bytes = gpu.memory_bytes;
  run.devices = {device};
  for (const auto& [key, stats] : std::exchange(run.launches, {})) {
    LaunchStats of_main = stats;
    Sums sums;
    sums.launches = stats.launches;
    const auto sum = [&stats = stats](std::string_view metric) {
      const auto found = stats.metrics.find(std::string(metric));
      return found != stats.metrics.end() ? static_cast<double>(found->second.sum) : 0.0;
    };
    sums[Quantity::kCompulsoryBytes] = sum(kMetricCompulsoryBytes);
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      sums[FlopIn(static_cast<Precision>(i))] = sum(kMetricFlop[i]);
      if (sum(kMetricFlop[i]) > 0) {
        of_main.metrics[std::string(kMetricCallFlop[i])] = stats.metrics.at(std::string(kMetricFlop[i]));
      }
    }
    ExpectedTime time =
        ExpectedTransfer({.pcie_bytes = sum(kMetricPcieBytes) / static_cast<double>(stats.launches)}, gpu);
    if (!(time.expected_s > 0)) time = ExpectedTimeOf(KernelOf(key, sums), model);
    of_main.metrics[std::string(kMetricTime)] =
        Stat::Same(static_cast<uint64_t>(std::llround(time.expected_s * 1e9)), stats.launches);
    of_main.metrics[std::string(kMetricCallPart)] = Stat::Same(kWholeCall, stats.launches);
    of_main.step_sums.clear();

    LaunchKey main = key;
    main.op = key.kernel;
    main.kernel = "a kernel of " + key.kernel;
    main.grid = main.block = {1, 1, 1};
    LaunchStats of_helper;
    of_helper.launches = stats.launches;
    of_helper.metrics[std::string(kMetricTime)] = Stat::Same(0, stats.launches);
    for (const std::string_view metric :
         {kMetricModelFlop, kMetricCompulsoryBytes, kMetricCallPart, kMetricDramBytes}) {
      of_helper.metrics[std::string(metric)] = Stat::Same(0, stats.launches);
    }
    LaunchKey helper = main;
    helper.kernel = "a helper of " + key.kernel;
    run.launches[main].Merge(of_main);
    run.launches[helper].Merge(of_helper);
  }
  run.sampled_steps.clear();
  measured.runs.emplace(run.key, std::move(run));
  return measured;
}

}  // namespace rfinject::cli::testing
