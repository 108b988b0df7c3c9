// File: contexts_test.cc
//
// Contexts that go away, a second context, and two devices in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "integration_tests/simulated_gpu/testing/fixture.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

// The same for the legacy profiler, whose session has more to close: context, ranges, fork and exit.
TEST_F(SimulatedV100, ADestroyedContextClosesTheLegacySession) {
  while (driver_.sim_calls_("cuptiProfilerBeginSession") == driver_.sim_calls_("cuptiProfilerEndSession")) Step();
  Launch(kernels_[0], 1, Phase::kForward);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerBeginSession"), driver_.sim_calls_("cuptiProfilerEndSession"));
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
}

TEST_F(SimulatedGpu, ADestroyedContextEndsItWithoutACall) {
  // This happens in a step with counters: the session must be closed before the context is destroyed.
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) Step();
  Launch(kernels_[0], 1, Phase::kForward);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.create(&second, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, ASecondContextIsNotCountedIntoTheFirst) {
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.create(&second, 0, 0), CUDA_SUCCESS);
  for (int step = 0; step < 40; ++step) {
    driver_.cuCtxSetCurrent_(second);
    EXPECT_EQ(Launch(kernels_[0], 5, Phase::kForward), CUDA_SUCCESS);
    driver_.cuCtxSetCurrent_(driver_.context);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(),
              Not(Contains(::testing::Key("armed steps whose ranges did not match their launches"))));
  CheckSamples();
}

// DataParallel: a thread for each GPU, and what joins their work on the first.
class TwoGpus : public SimulatedGpu {
 protected:
  void SetUp() override {
    SimulatedGpu::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(driver_.cuDevicePrimaryCtxRetain_(&second_, 1), CUDA_SUCCESS);
  }
  // Replicas do the same, but the second has a kernel more.
  void StepOnTwo() {
    auto replica = [&](CUcontext context) {
      driver_.cuCtxSetCurrent_(context);
      failed_ += Launch(kernels_[0], 1, Phase::kForward) != CUDA_SUCCESS;
      failed_ += Launch(kernels_[2], 1, Phase::kForward) != CUDA_SUCCESS;
      if (context == second_) failed_ += Launch(kernels_[1], 2, Phase::kForward) != CUDA_SUCCESS;
    };
    std::thread first(replica, driver_.context), other(replica, second_);
    first.join();
    other.join();
    failed_ += Launch(kernels_[2], 0, Phase::kOptimizer) != CUDA_SUCCESS;
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  // Samples and launches of each kernel, by device.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> OfDevices() {
    std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> counts;
    for (const LaunchRecord& record : recorder_.records()) {
      const std::string name = recorder_.Name(record.identity.kernel);
      counts[{name, record.identity.device, 0}] += record.launches;
      for (uint32_t i = 0; i < record.sample_count; ++i) {
        ++counts[{name, record.identity.device, record.samples[i].metric}];
      }
    }
    return counts;
  }
  CUcontext second_ = nullptr;
};

TEST_F(TwoGpus, EachIsCountedByItself) {
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(failed_, 0);
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_THAT(DiagnosticIds(), Contains("several-devices"));
  CheckSamples();
  auto counts = OfDevices();
  for (uint32_t device : {0u, 1u}) {
    EXPECT_GE((counts[{"conv", device, kTime}]), 3u) << device;
    EXPECT_GE((counts[{"conv", device, kDramBytes}]), 2u) << device;
    EXPECT_GE((counts[{"conv", device, kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor)}]), 1u) << device;
  }
  EXPECT_EQ((counts[{"gemm", 0, 0}]), 0u);
  EXPECT_EQ((counts[{"gemm", 1, 0}]), 59u);
  EXPECT_GE((counts[{"gemm", 1, kDramBytes}]), 2u);
  const auto& facts = recorder_.facts().back();
  ASSERT_EQ(facts.device.size(), 2u);
  EXPECT_EQ(facts.device[1].index, 1u);
  EXPECT_EQ(facts.device[1].chip, "GA100");
  EXPECT_EQ(facts.device[1].ecc, 2u);  // the simulated driver answers 1 to what it does not know
}

TEST_F(TwoGpus, LayerByLayerToo) {
  settings_.mode = "user";
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  CheckSamples();
  // The layers' sums, each device's by itself: as many as steps were armed with them, two devices each.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> sums, steps;  // device, metric
  for (const LaunchRecord& record : recorder_.records()) {
    if (record.identity.site.layer != 1 || record.identity.site.phase != Phase::kForward) continue;
    for (uint32_t i = 0; i < record.sample_count; ++i) {
      if (!IsCounter(record.samples[i].metric)) continue;
      sums[{record.identity.device, record.samples[i].metric}] += record.samples[i].value;
      if (recorder_.Name(record.identity.kernel) == "conv") {
        steps[{record.identity.device, record.samples[i].metric}] += record.shared_sums;
      }
    }
  }
  EXPECT_EQ(sums.size(), 2u * 8u);
  for (const auto& [of, sum] : sums) {
    EXPECT_EQ(sum, steps[of] * (ValueOf("conv", of.second) + ValueOf("relu", of.second))) << of.first;
  }
}

TEST_F(TwoGpus, OneWithoutCountersHasTimesAndIsNamed) {
  StepOnTwo();  // the source starts; the second context is still unknown
  driver_.sim_fail_("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 0);
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("device-not-counted"));
  CheckSamples();
  auto counts = OfDevices();
  EXPECT_GE((counts[{"conv", 0, kDramBytes}]), 2u);
  EXPECT_EQ((counts[{"conv", 1, kDramBytes}]), 0u);
  EXPECT_GE((counts[{"conv", 1, kTime}]), 3u);
}

TEST_F(TwoGpus, TheSecondsContextMayGoAndAnotherComeInItsPlace) {
  StepOnTwo();
  StepOnTwo();
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) StepOnTwo();
  // In a step with counters.
  EXPECT_EQ(driver_.destroy(second_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuDevicePrimaryCtxRetain_(&second_, 1), CUDA_SUCCESS);  // at the same address
  const uint64_t before = OfDevices()[{"conv", 1, kDramBytes}];
  for (int step = 0; step < 60; ++step) StepOnTwo();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Not(Contains("context-gone")));
  CheckSamples();
  EXPECT_GE((OfDevices()[{"conv", 0, kDramBytes}]), 2u);
  EXPECT_GT((OfDevices()[{"conv", 1, kDramBytes}]), before);
}

TEST_F(TwoGpus, TheFirstsContextGoesAndTheSecondsSessionIsEndedToo) {
  StepOnTwo();
  StepOnTwo();
  while (driver_.sim_calls_("cuptiRangeProfilerStart") == driver_.sim_calls_("cuptiRangeProfilerStop")) StepOnTwo();
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  EXPECT_EQ(driver_.destroy(second_), CUDA_SUCCESS);  // the simulator complains if its session is still there
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
