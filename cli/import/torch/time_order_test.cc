#include "cli/profile/time_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/import/torch/testing/made_recording.h"
#include "cli/import/torch/torch_profiler.h"

namespace rfinject::cli {
namespace {

TEST(TorchTimeOrder, LaunchesKeepTheirOrder) {
  // Five launches of one kernel, which take 10 to 14 us.
  MadeRecording made("NVIDIA A100-SXM4-40GB", 8, 0);
  for (int i = 0; i < 5; ++i) made.Kernel("kernel", 1000 * i + 100, 10 + i);
  const absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(made.Json(), "file", {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::string order(kMetricTimeOrder);
  const cli::Run& run = imported->profile.runs.begin()->second;
  EXPECT_EQ(run.launches.begin()->second.step_sums.at(order),
            (std::vector<StepSum>{{0, 10'000}, {1, 11'000}, {2, 12'000}, {3, 13'000}, {4, 14'000}}));
  EXPECT_EQ(run.sampled_steps.at(order).size(), 5u);
}

}  // namespace
}  // namespace rfinject::cli
