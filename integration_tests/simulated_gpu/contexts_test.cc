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

// Sessions are ended before the context that they are of.
TEST_F(SimulatedV100, ADestroyedContextClosesTheLegacySession) {
  ASSERT_TRUE(RunUntil([this] { return driver_.sim_calls_("cuptiProfilerPushRange") > 0; }));
  Launch(kernels_[0], 1, Phase::kForward);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerBeginSession"), driver_.sim_calls_("cuptiProfilerEndSession"));
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
}

class Destroyed : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {};
TEST_P(Destroyed, ContextEndsItsSessionsAndAllElse) {
  driver_.sim_set_exclusive_(0);  // so that no session is refused
  ASSERT_TRUE(RunUntil([this] { return driver_.sim_calls_(GetParam()) > 0; }));
  Launch(kernels_[0], 1, Phase::kForward);
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerEnable"), driver_.sim_calls_("cuptiRangeProfilerDisable"));
  source_->OnStepEnd(step_++);
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.create(&second, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  source_->Stop();
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}
INSTANTIATE_TEST_SUITE_P(While, Destroyed,
                         ::testing::Values("cuptiRangeProfilerStart", "cuptiRangeProfilerPushRange",
                                           "cuptiPmSamplingEnable", "cuptiPmSamplingStart"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(SimulatedGpu, ASecondContextIsNotCountedIntoTheFirst) {
  CUcontext second = nullptr;
  ASSERT_EQ(driver_.create(&second, 0, 0), CUDA_SUCCESS);
  EXPECT_TRUE(RunUntil([&] {
    driver_.cuCtxSetCurrent_(second);
    EXPECT_EQ(Launch(kernels_[0], 5, Phase::kForward), CUDA_SUCCESS);
    driver_.cuCtxSetCurrent_(driver_.context);
    return CountSamples()[{"conv", 1, Phase::kForward}][kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor)] >
           0;
  }));
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  CheckSamples();
}

// DataParallel: a thread for each GPU, and what joins their work on the first.
class TwoGpus : public SimulatedGpu {
 protected:
  void SetUp() override {
    SimulatedGpu::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    driver_.sim_set_exclusive_(0);  // the simulator's sessions exclude those of other devices, too
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
    driver_.sim_spend_(host_ns_);
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  // Samples and launches of each kernel, by device.
  std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> OfDevices() {
    std::map<std::tuple<std::string, uint32_t, uint32_t>, uint64_t> counts;
    for (const LaunchRecord& record : recorder_.CopyRecords()) {
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
  constexpr uint32_t kTf32 = kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor);
  for (int step = 0; step < 2000; ++step) {
    StepOnTwo();
    auto counts = OfDevices();
    if (counts[{"conv", 0, kTf32}] * counts[{"conv", 1, kTf32}] * counts[{"gemm", 1, kTf32}] == 0) continue;
    if (counts[{"conv", 0, kDramBytes}] > 1 && counts[{"conv", 1, kDramBytes}] > 1) break;
  }
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(failed_, 0);
  EXPECT_THAT(DiagnosticIds(), Contains("several-devices"));
  CheckSamples();
  auto counts = OfDevices();
  for (uint32_t device : {0u, 1u}) {
    EXPECT_GE((counts[{"conv", device, kTime}]), 3u) << device;
    EXPECT_GE((counts[{"conv", device, kDramBytes}]), 2u) << device;
    EXPECT_GE((counts[{"conv", device, kTf32}]), 1u) << device;
  }
  EXPECT_EQ((counts[{"gemm", 0, 0}]), 0u);
  EXPECT_EQ((counts[{"gemm", 1, 0}]), step_ - 1);
  const auto& facts = recorder_.facts().back();
  ASSERT_EQ(facts.device.size(), 2u);
  EXPECT_EQ(facts.device[1].index, 1u);
  EXPECT_EQ(facts.device[1].chip, "GA100");
  EXPECT_EQ(facts.device[1].ecc, 2u);  // the simulated driver answers 1 to what it does not know
}

TEST_F(TwoGpus, OneWithoutCountersHasTimesAndIsNamed) {
  StepOnTwo();  // the source starts; the second context is still unknown
  for (int i = 0; i < 2000 && driver_.sim_calls_("cuptiProfilerGetCounterAvailability") < 2; ++i) StepOnTwo();
  driver_.sim_fail_("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 1);
  for (int i = 0; i < 2000 && OfDevices()[{"conv", 1, kTime}] < 3; ++i) StepOnTwo();
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  CheckSamples();
  EXPECT_GE((OfDevices()[{"conv", 1, kTime}]), 3u);
}

TEST_F(TwoGpus, TheSecondsContextMayGoAndAnotherComeInItsPlace) {
  for (int i = 0; i < 2000 && driver_.sim_calls_("cuptiRangeProfilerPushRange") == 0; ++i) StepOnTwo();
  EXPECT_EQ(driver_.destroy(second_), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuDevicePrimaryCtxRetain_(&second_, 1), CUDA_SUCCESS);  // at the same address
  for (int step = 0; step < 100; ++step) StepOnTwo();
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Not(Contains("context-gone")));
  CheckSamples();
}

TEST_F(TwoGpus, TheFirstsContextGoesAndTheSecondsSessionIsEndedToo) {
  for (int i = 0; i < 2000 && driver_.sim_calls_("cuptiRangeProfilerPushRange") == 0; ++i) StepOnTwo();
  EXPECT_EQ(driver_.destroy(driver_.context), CUDA_SUCCESS);
  source_->OnStepEnd(step_++);
  EXPECT_THAT(DiagnosticIds(), Contains("context-gone"));
  EXPECT_EQ(driver_.destroy(second_), CUDA_SUCCESS);  // the simulator complains if its session is still there
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
