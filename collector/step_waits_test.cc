#include "collector/step_waits.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "collector/sync.h"
#include "proto/wire/spread.h"

namespace rfinject {
namespace {

// Waits until the clock has gone on by `ns`.
void Pass(int64_t ns) {
  const int64_t end = MonotonicNs() + ns;
  while (MonotonicNs() < end) {
  }
}

constexpr int64_t kWait = 200'000;

TEST(StepWaits, AddUpByWhatIsWaitedFor) {
  (void)TakeWaits();
  const int64_t begin = MonotonicNs();
  for (int i = 0; i < 2; ++i) {
    BeginWait(kDataWaits);
    Pass(kWait);
    EndWait(kDataWaits);
  }
  BeginWait(kGpuWaits);
  Pass(kWait);
  EndWait(kGpuWaits);
  const auto all = static_cast<uint64_t>(MonotonicNs() - begin);
  const StepWaits waits = TakeWaits();
  EXPECT_GE(waits.data_ns, 2u * kWait);
  EXPECT_GE(waits.gpu_ns, 1u * kWait);
  EXPECT_LE(waits.data_ns + waits.gpu_ns, all);
  EXPECT_EQ(TakeWaits().data_ns, 0u);
}

TEST(StepWaits, OfAStepThatRunsAreKnownOneByOne) {
  (void)TakeWaits();
  std::array<BatchWait, kBatchWaitsKept> waits;
  EXPECT_EQ(CopyBatchWaits(waits), 0u);
  std::vector<int64_t> begins;
  for (size_t i = 0; i < kBatchWaitsKept + 2; ++i) {
    begins.push_back(MonotonicNs());
    BeginWait(kDataWaits);
    EndWait(kDataWaits);
    BeginWait(kGpuWaits);
    EndWait(kGpuWaits);
  }
  ASSERT_EQ(CopyBatchWaits(waits), kBatchWaitsKept);
  for (size_t i = 0; i < kBatchWaitsKept; ++i) {
    EXPECT_GE(waits[i].began_ns, begins[i + 2]);
    EXPECT_GE(waits[i].ended_ns, waits[i].began_ns);
    EXPECT_LE(waits[i].ended_ns, MonotonicNs());
  }
  (void)TakeWaits();
  EXPECT_EQ(CopyBatchWaits(waits), 0u);
}

TEST(StepWaits, AStepThatBeginsNowHasTheWaitForItsBatch) {
  (void)TakeWaits();
  BeginWait(kDataWaits);
  EndWait(kDataWaits);
  BeginWait(kGpuWaits);  // a validation's
  Pass(kWait);
  EndWait(kGpuWaits);
  const int64_t before = MonotonicNs();
  BeginWait(kDataWaits);
  Pass(kWait);
  EndWait(kDataWaits);
  const int64_t after = MonotonicNs();
  const int64_t began = KeepWaitForBatch();
  EXPECT_GE(began, before);
  EXPECT_LE(began, after - kWait);
  const StepWaits waits = TakeWaits();
  EXPECT_GE(waits.data_ns, 1u * kWait);
  EXPECT_LE(waits.data_ns, static_cast<uint64_t>(after - before));
  EXPECT_EQ(waits.gpu_ns, 0u);
}

TEST(StepWaits, AStepHasNoWaitForABatchWhereNoneWasWaitedFor) {
  std::thread([] {
    const int64_t before = MonotonicNs();
    EXPECT_GE(KeepWaitForBatch(), before);
    EXPECT_EQ(TakeWaits().data_ns, 0u);
  }).join();
}

TEST(StepWaits, AWaitInsideAnotherCountsOnce) {
  (void)TakeWaits();
  BeginWait(kDataWaits);
  BeginWait(kGpuWaits);  // a data set that reads from the GPU
  Pass(kWait);
  EndWait(kGpuWaits);
  Pass(kWait);
  EndWait(kDataWaits);
  const StepWaits waits = TakeWaits();
  EXPECT_GE(waits.data_ns, 2u * kWait);
  EXPECT_EQ(waits.gpu_ns, 0u);
}

TEST(StepWaits, LostEndsAndBeginningsDoNotSpoilTheNextStep) {
  (void)TakeWaits();
  EndWait(kDataWaits);
  BeginWait(kDataWaits);
  Pass(kWait);
  EXPECT_EQ(TakeWaits().data_ns, 0u);  // the step ended, so this is no wait any more
  Pass(kWait);
  EndWait(kDataWaits);
  EXPECT_EQ(TakeWaits().data_ns, 0u);
  BeginWait(kGpuWaits);
  Pass(kWait);
  EndWait(kGpuWaits);
  EXPECT_GE(TakeWaits().gpu_ns, 1u * kWait);
}

TEST(StepWaits, AnotherThreadsWaitsAreItsOwn) {
  (void)TakeWaits();
  std::thread other([] {
    BeginWait(kDataWaits);
    Pass(kWait);
    EndWait(kDataWaits);
  });
  other.join();
  EXPECT_EQ(TakeWaits().data_ns, 0u);
}

TEST(SpreadCode, IsCloseAndGrows) {
  EXPECT_EQ(wire::SpreadCode(0), 0u);
  EXPECT_EQ(wire::DurationOf(0), 0u);
  EXPECT_EQ(wire::SpreadCode(UINT64_MAX), wire::kMaxSpreadCode);
  uint32_t before = 0;
  for (uint64_t ns = 4096; ns < UINT64_MAX / 3; ns = ns * 3 / 2 + 1) {
    const uint32_t code = wire::SpreadCode(ns);
    EXPECT_GT(code, before);
    before = code;
    EXPECT_NEAR(static_cast<double>(wire::DurationOf(code)) / static_cast<double>(ns), 1, 1.0 / 120) << ns;
    EXPECT_EQ(wire::SpreadCode(wire::DurationOf(code)), code);
  }
  EXPECT_EQ(wire::SpreadCode(1'000'000), 634u);
  EXPECT_EQ(wire::DurationOf(634), 1'003'648u);
}

}  // namespace
}  // namespace rfinject
