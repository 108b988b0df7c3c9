// File: ranks_test.cc
//
// Several ranks, and kernels of communication: nothing is counted differently, and nothing waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

using ::testing::Contains;

TEST_F(SimulatedGpu, CommunicationIsInNoRange) {
  setenv("WORLD_SIZE", "2", 1);
  TestKernel nccl = kernels_[0];
  nccl.name = "ncclDevKernel_AllReduce";
  kernels_.push_back(nccl);
  Bind(&kernels_);
  EXPECT_TRUE(RunUntil([this] {
    EXPECT_EQ(Launch(kernels_[3], 2, Phase::kBackward), CUDA_SUCCESS);
    Counts counts = CountSamples();
    return counts[{"gemm", 2, Phase::kBackward}][kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)] > 0 &&
           counts[{"conv", 2, Phase::kBackward}][kDramBytes] > 1;
  }));
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), driver_.sim_calls_("cuptiRangeProfilerPopRange"));
  auto counts = CheckSamples();
  const Key communication = {"ncclDevKernel_AllReduce", 2, Phase::kCommunication};
  EXPECT_GE(counts[communication][kTime], 3u);
  for (uint32_t precision = 0; precision < kPrecisionCount; ++precision) {
    EXPECT_EQ(counts[communication][kFlopFirst + precision], 0u);
  }
  EXPECT_THAT(DiagnosticIds(), ::testing::Not(Contains("communication-not-counted")));
}

// A range around a kernel that another one waits for would never begin.
TEST_F(SimulatedGpu, AKernelThatWaitsForALaterOneEndsTheCountingOfFlop) {
  TestKernel waits = kernels_[0];
  waits.name = "ncclDevKernel_SendRecv";
  kernels_.push_back(waits);
  Bind(&kernels_);
  kernels_[3].kernel.waits_for = &kernels_[2].kernel;
  for (int step = 0; step < 2000 && CountSamples()[{"conv", 1, Phase::kForward}][kTime] < 3; ++step) {
    t_site = Site{2, 0, 0, Phase::kBackward};
    auto* const stream = reinterpret_cast<CUstream>(16);
    EXPECT_EQ(driver_.cuLaunchKernel_(reinterpret_cast<CUfunction>(&kernels_[3].kernel), 8, 1, 1, 128, 1, 1, 0,
                                      stream, nullptr, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(Launch(kernels_[2], 2, Phase::kBackward), CUDA_SUCCESS);
    Step();
  }
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_THAT(DiagnosticIds(), Contains("communication-not-counted"));
  // Times and bytes are known all the same.
  EXPECT_GE((CountSamples()[{"conv", 1, Phase::kForward}][kTime]), 3u);
}

}  // namespace
}  // namespace rfinject
