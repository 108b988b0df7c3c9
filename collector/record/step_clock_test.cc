#include "collector/record/step_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "collector/record/testing/recorder_fixture.h"
#include "collector/step_waits.h"

namespace rfinject {
namespace {

using ::rfinject::testing::TraceContent;
using ::testing::SizeIs;

// A GPU whose clock the test moves.
GpuClock g_test_clock;
bool g_test_clock_used = false;
bool ReadTestClock(GpuClock* clock) noexcept {
  *clock = g_test_clock;
  return g_test_clock_used;
}

TEST_F(TraceRecorderTest, AStepHasWhatItsThreadWaitedForAndTheGpuDid) {
  (void)TakeWaits();
  Recorder& r = recorder();
  r.Activate();
  r.EndStep(1);  // not watched
  WatchWaits(kDataWaits);
  BeginWait(kDataWaits);
  EndWait(kDataWaits);
  std::thread([] {
    BeginWait(kDataWaits);
    EndWait(kDataWaits);
  }).join();
  r.EndStep(1);
  r.EndStep(1);
  g_gpu_clock.store(&ReadTestClock);
  g_test_clock_used = true;
  g_test_clock = {.skipped_ns = 1000, .busy_ns = 500};
  r.RestartStep();
  g_test_clock = {.skipped_ns = 1'000'000'001'000, .busy_ns = 2'000'000'000'500};
  r.EndStep(1);
  g_test_clock_used = false;
  const TraceContent t = FinishedTrace();
  g_gpu_clock.store(nullptr);
  ASSERT_THAT(t.steps, SizeIs(4));
  EXPECT_EQ(t.steps[0].watched(), 0u);
  EXPECT_EQ(t.steps[1].watched(), uint32_t{kDataWaits});
  EXPECT_GT(t.steps[1].data_wait_ns(), 0u);
  EXPECT_LE(t.steps[1].data_wait_ns(), t.steps[1].duration_ns());
  EXPECT_EQ(t.steps[2].watched(), uint32_t{kDataWaits});
  EXPECT_EQ(t.steps[2].data_wait_ns(), 0u);
  // The host's clock goes on while that one jumps: the step took both.
  EXPECT_EQ(t.steps[3].watched(), kDataWaits | kGpuWaits | kGpuBusy);
  EXPECT_EQ(t.steps[3].gpu_wait_ns(), 1'000'000'000'000u);
  EXPECT_EQ(t.steps[3].gpu_busy_ns(), 2'000'000'000'000u);
  EXPECT_GT(t.steps[3].duration_ns(), t.steps[3].gpu_wait_ns());
}

TEST_F(TraceRecorderTest, StepsFollowEachOther) {
  Recorder& r = recorder();
  r.Activate();
  for (int i = 0; i < 5; ++i) {
    usleep(1000);
    r.EndStep(0);
  }
  const TraceContent t = FinishedTrace();
  ASSERT_THAT(t.steps, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(t.steps[i].index(), i);
    EXPECT_GE(t.steps[i].duration_ns(), 1'000'000u);
  }
}

}  // namespace
}  // namespace rfinject
