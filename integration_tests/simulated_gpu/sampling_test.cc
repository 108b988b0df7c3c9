// File: sampling_test.cc
//
// Bytes come from samples of the whole device, taken while the program runs on and kernels are timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Sampled : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {
 protected:
  Sampled() : SimulatedGpu("cupti13/libcupti.so.13", GetParam()) {}
};

// GA100 is sampled by cycles, GH100 by time.
TEST_P(Sampled, EachKernelGetsTheBytesOfItsSamples) {
  settings_.mode = "pm";
  const Key conv = {"conv", 1, Phase::kForward};
  EXPECT_TRUE(RunUntil([&] { return CountSamples()[conv][kDramBytes] >= 6; }));
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  CheckSamples();
  uint64_t bytes = 0, in_kernels = 0;
  for (const trace::SampledWindow& window : recorder_.kept<trace::SampledWindow>()) {
    if (window.dropped != 0) continue;
    EXPECT_GT(window.samples, 50u);
    EXPECT_GE(window.interval_ns, 2'000u);
    EXPECT_LE(window.kernel_bytes, window.dram_bytes);
    EXPECT_NEAR(window.gpu_clock_khz, 1'410'000, 1);
    bytes += window.dram_bytes;
    in_kernels += window.kernel_bytes;
  }
  EXPECT_GT(bytes, 0u);
  EXPECT_GE(static_cast<double>(in_kernels), 0.95 * static_cast<double>(bytes));
  // The session is opened once and stays.
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingEnable"), 1u);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingSetConfig"), 1u);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerEnable"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuCtxSynchronize"), 0u);
}
INSTANTIATE_TEST_SUITE_P(Chips, Sampled, ::testing::Values("GA100", "GH100"));

TEST_P(Sampled, AClockThatSomebodyHoldsIsSeen) {
  settings_.mode = "pm";
  driver_.sim_set_clock_khz_(1'200'000);
  const auto known = [&] {
    uint32_t windows = 0;
    for (const trace::SampledWindow& window : recorder_.kept<trace::SampledWindow>()) {
      if (window.gpu_clock_khz == 0) continue;  // it had no samples
      EXPECT_NEAR(window.gpu_clock_khz, 1'200'000, 1);
      ++windows;
    }
    return windows;
  };
  EXPECT_TRUE(RunUntil([&] { return known() >= 3; }));
}

// Whether sessions of both kinds may be started at a time is not known of any GPU.
class Together : public SimulatedGpu, public ::testing::WithParamInterface<bool> {};
TEST_P(Together, BytesAndFlopAreBothCounted) {
  driver_.sim_set_exclusive_(GetParam());
  EXPECT_TRUE(RunUntil([this] { return IsComplete(); }));
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  CheckSamples();
}
INSTANTIATE_TEST_SUITE_P(Exclusive, Together, ::testing::Bool());

TEST_F(SimulatedGpu, AnOverflowLosesTheWindowAndTheSessionIsOpenedAgain) {
  settings_.mode = "pm";
  driver_.sim_fail_("cuptiPmSamplingDecodeData", CUPTI_ERROR_OUT_OF_MEMORY, 0);
  const Key conv = {"conv", 1, Phase::kForward};
  EXPECT_TRUE(RunUntil([&] { return CountSamples()[conv][kDramBytes] >= 1; }));
  source_->Stop();
  const std::vector<trace::SampledWindow> windows = recorder_.kept<trace::SampledWindow>();
  EXPECT_EQ(std::count_if(windows.begin(), windows.end(), [](const auto& window) { return window.dropped == 3; }), 1);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingEnable"), 2u);
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, WindowsAreShorterAfterAnOverflowAndSampledMoreSlowlyOnlyInTheEnd) {
  settings_.mode = "pm";
  std::vector<uint64_t> intervals;  // of windows that were lost
  for (size_t lost = 1; lost <= 4; ++lost) {
    driver_.sim_fail_("cuptiPmSamplingDecodeData", CUPTI_ERROR_OUT_OF_MEMORY, 0);
    ASSERT_TRUE(RunUntil([&] {
      intervals.clear();
      for (const auto& window : recorder_.kept<trace::SampledWindow>()) {
        if (window.dropped == 3) intervals.push_back(window.interval_ns);
      }
      return intervals.size() == lost;
    }));
  }
  EXPECT_THAT(intervals, ElementsAre(intervals[0], intervals[0], intervals[0], 2 * intervals[0]));
}

TEST_F(SimulatedGpu, WhatCountingCostIsInTheTrace) {
  EXPECT_TRUE(RunUntil([this] { return IsComplete(); }));
  source_->Stop();
  std::map<std::string, uint64_t> costs;
  for (const trace::CountingCost& cost : recorder_.kept<trace::CountingCost>()) costs[cost.what] += cost.ns;
  EXPECT_GT(costs["calls"], 0u);
  EXPECT_GT(costs["own calls"], 0u);
}

TEST_F(SimulatedGpu, TheModeOfTimesHasNothingElse) {
  settings_.mode = "times";
  const Key conv = {"conv", 1, Phase::kForward};
  EXPECT_TRUE(RunUntil([&] { return CountSamples()[conv][kTime] >= 3; }));
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingGetCounterAvailability"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerGetCounterAvailability"), 0u);
}

}  // namespace
}  // namespace rfinject
