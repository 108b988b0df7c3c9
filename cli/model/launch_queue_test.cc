#include "cli/model/launch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;

QueueStretch Alike(double launches, double kernel_ns, bool host_waits = false) {
  return {.kernels = {{launches, kernel_ns}}, .host_waits = host_waits};
}

QueueTimes RunSteps(const std::vector<QueueStretch>& step, double interval_ns, double gap_ns = 0) {
  return RunQueue(step, {.interval_ns = interval_ns, .gap_ns = gap_ns});
}

// Launch by launch, with the host's and the GPU's clock: what the formulas for stretches stand for.
double StepByEachLaunch(const std::vector<QueueStretch>& step, double interval_ns, double gap_ns) {
  double host = 0, gpu = 0, before = 0;
  for (int i = 0; i < 4; ++i) {
    before = gpu;
    for (const QueueStretch& stretch : step) {
      for (const QueuedKernels& kernels : stretch.kernels) {
        for (int k = 0; k < static_cast<int>(kernels.launches); ++k) {
          host += interval_ns;
          gpu = std::max(gpu, host) + kernels.kernel_ns + gap_ns;
        }
      }
      if (stretch.host_waits) host = std::max(host, gpu);
    }
  }
  return gpu - before;
}

TEST(LaunchQueue, LongKernelsTakeTheirTimeAndTheGpuNeverWaits) {
  const QueueTimes times = RunSteps({Alike(100, 50'000)}, 10'000, 1'000);
  EXPECT_DOUBLE_EQ(times.step_ns, 100 * 51'000);
  EXPECT_EQ(times.waiting_ns, 0);
  EXPECT_DOUBLE_EQ(times.host_ns, 100 * 10'000);
  EXPECT_THAT(times.waited_for, ElementsAre(false));
}

TEST(LaunchQueue, ShortKernelsTakeTheHostsTime) {
  const QueueTimes times = RunSteps({Alike(100, 2'000)}, 10'000);
  EXPECT_DOUBLE_EQ(times.step_ns, 100 * 10'000);
  EXPECT_DOUBLE_EQ(times.waiting_ns, 100 * 8'000);
  EXPECT_THAT(times.waited_for, ElementsAre(true));
}

// A host that waits at the end of the step begins with an empty queue, and the last kernel runs alone.
TEST(LaunchQueue, AHostThatWaitsAddsTheLastKernel) {
  EXPECT_DOUBLE_EQ(RunSteps({Alike(100, 2'000, true)}, 10'000).step_ns, 100 * 10'000 + 2'000);
  // Of long kernels the first one's launch comes on top.
  EXPECT_DOUBLE_EQ(RunSteps({Alike(100, 50'000, true)}, 10'000).step_ns, 10'000 + 100 * 50'000);
}

// What the host gains beside long kernels is used up by short ones; only then does the GPU wait.
TEST(LaunchQueue, LongKernelsHideTheLaunchesOfShortOnes) {
  const QueueTimes hidden = RunSteps({Alike(10, 100'000), Alike(50, 2'000)}, 10'000);
  EXPECT_DOUBLE_EQ(hidden.step_ns, 10 * 100'000 + 50 * 2'000);
  EXPECT_THAT(hidden.waited_for, ElementsAre(false, false));
  const QueueTimes seen = RunSteps({Alike(10, 100'000), Alike(500, 2'000)}, 10'000);
  EXPECT_DOUBLE_EQ(seen.step_ns, 510 * 10'000);
  EXPECT_THAT(seen.waited_for, ElementsAre(false, true));
  EXPECT_NEAR(seen.waiting_ns, seen.step_ns - 10 * 100'000 - 500 * 2'000, 1);
  // Where the host waits in between, nothing of it is hidden.
  const QueueTimes apart = RunSteps({Alike(10, 100'000, true), Alike(50, 2'000, true)}, 10'000);
  EXPECT_DOUBLE_EQ(apart.step_ns, 10'000 + 10 * 100'000 + 50 * 10'000 + 2'000);
  EXPECT_THAT(apart.waited_for, ElementsAre(false, true));
}

TEST(LaunchQueue, StretchesOfAlikeKernelsAreExact) {
  for (const bool waits : {false, true}) {
    for (const double interval : {1'000, 6'000, 20'000, 70'000}) {
      const std::vector<QueueStretch> step = {Alike(30, 40'000), Alike(200, 2'000, waits), Alike(1, 900'000),
                                              Alike(70, 9'000), Alike(3, 500)};
      EXPECT_NEAR(RunSteps(step, interval, 1'200).step_ns, StepByEachLaunch(step, interval, 1'200), 1e-3)
          << waits << " " << interval;
    }
  }
}

TEST(LaunchQueue, NothingLaunchedTakesNoTime) {
  EXPECT_EQ(RunSteps({}, 10'000).step_ns, 0);
  EXPECT_EQ(RunSteps({QueueStretch{}}, 10'000).step_ns, 0);
  // A mean step may have half a launch.
  EXPECT_DOUBLE_EQ(RunSteps({Alike(0.5, 2'000)}, 10'000).step_ns, 5'000);
}

}  // namespace
}  // namespace rfinject::cli
