// File: pm_sampling_test.cc
//
// PM sampling: what the whole device does in a few steps that have no other collection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

class PmSampled : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {
 protected:
  PmSampled() : SimulatedGpu("cupti13/libcupti.so.13", GetParam()) {}
};

TEST_P(PmSampled, AWindowHasTheBytesAndTheTensorTimeOfItsStep) {
  Run(60);
  ASSERT_GE(recorder_.pm_windows().size(), 1u);
  for (const PmWindow& window : recorder_.pm_windows()) {
    EXPECT_EQ(window.dram_read_bytes + window.dram_write_bytes, 5 * 1500u + 3 * 300u + 2 * 64u) << window.step;
    EXPECT_TRUE(window.has_tensor);
    EXPECT_EQ(window.tensor_active_ns, 5 * 100'000u + 3 * 50'000u);
    EXPECT_GE(window.duration_ns, window.tensor_active_ns);
    EXPECT_LE(window.bin_dram_bytes.size(), kMaxPmBins);
    // Nothing else was collected in that step.
    for (const auto& [step, group] : recorder_.armed()) EXPECT_NE(step, window.step);
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingEnable"), driver_.sim_calls_("cuptiPmSamplingDisable"));
  CheckSamples();
}
INSTANTIATE_TEST_SUITE_P(Chips, PmSampled, ::testing::Values("GA100", "GH100"));

TEST_F(SimulatedGpu, PmSamplingIsBounded) {
  settings_.overhead_percent = 50;
  Run(4000);
  EXPECT_LE(recorder_.pm_windows().size(), 12u);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingStart"), recorder_.pm_windows().size());
}

TEST_F(SimulatedGpu, SeveralRanksHaveWindowsToo) {
  setenv("WORLD_SIZE", "2", 1);
  Run(60);
  EXPECT_GE(recorder_.pm_windows().size(), 1u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AModeThatWasAskedForExcludesPmSampling) {
  settings_.mode = "range";
  Run(40);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingGetCounterAvailability"), 0u);
  EXPECT_GE(driver_.sim_calls_("cuptiRangeProfilerStart"), 1u);
}

TEST_F(SimulatedGpu, ThePmModeHasNoCounters) {
  settings_.mode = "pm";
  Run(40);
  EXPECT_GE(recorder_.pm_windows().size(), 1u);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerEnable"), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);
}

TEST_F(SimulatedGpu, AnOverflowLosesTheWindowAndIsCounted) {
  settings_.mode = "pm";
  driver_.sim_fail_("cuptiPmSamplingDecodeData", CUPTI_ERROR_OUT_OF_MEMORY, 0);
  Run(20);
  EXPECT_THAT(recorder_.pm_windows(), IsEmpty());
  EXPECT_THAT(recorder_.drops(), Contains(::testing::Key("windows of PM sampling that overflowed")));
  EXPECT_THAT(DiagnosticIds(), IsEmpty());
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, AContextThatGoesAwayInAWindowTakesTheSessionWithIt) {
  settings_.mode = "pm";
  while (driver_.sim_calls_("cuptiPmSamplingStart") == driver_.sim_calls_("cuptiPmSamplingStop") && step_ < 60)
    Step();
  ASSERT_LT(step_, 60u);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  EXPECT_EQ(driver_.sim_calls_("cuptiPmSamplingDisable"), driver_.sim_calls_("cuptiPmSamplingEnable"));
  source_->OnStepEnd(step_++);
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
