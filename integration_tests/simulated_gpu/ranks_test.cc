// File: ranks_test.cc
//
// Counting layer by layer: several ranks, communication, more ranges than there is room for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "integration_tests/simulated_gpu/testing/fixture.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(SimulatedGpu, CommunicationEndsCountingKernelByKernel) {
  TestKernel nccl = kernels_[0];
  nccl.name = "ncclDevKernel_AllReduce";
  kernels_.push_back(nccl);
  Bind(&kernels_);
  of_layer_[{2, Phase::kCommunication}] = {"ncclDevKernel_AllReduce"};
  for (int step = 0; step < 60; ++step) {
    EXPECT_EQ(Launch(kernels_[3], 2, Phase::kBackward), CUDA_SUCCESS);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_GT(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  // What the layer computes and what it sends are not one sum.
  EXPECT_GT(CheckShares(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"ncclDevKernel_AllReduce", 2, Phase::kCommunication}][kDramBytes]), 2u);
}

TEST_F(SimulatedGpu, SeveralRanksAreCountedLayerByLayer) {
  setenv("WORLD_SIZE", "2", 1);
  Run(60);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_GT(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), driver_.sim_calls_("cuptiRangeProfilerPopRange"));
  // Bytes and seven precisions of three layers and phases with several kernels.
  EXPECT_EQ(CheckShares(), 3u * 8u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kTime]), 3u);
  // A kernel that is alone in its layer and phase has its own value, as exact as kernel by kernel.
  for (const auto& key : {Key{"gemm", 2, Phase::kForward}, Key{"relu", 0, Phase::kOptimizer}}) {
    EXPECT_GE(counts[key][kDramBytes], 2u);
    EXPECT_GE(counts[key][kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)], 1u);
  }
}

TEST_F(SimulatedV100, SeveralRanksOfV100AreCountedLayerByLayer) {
  setenv("WORLD_SIZE", "2", 1);
  settings_.overhead_percent = 50;
  while (step_ < 60 || (step_ < 6000 && recorder_.armed().size() < 6)) Step();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_GT(driver_.sim_calls_("cuptiProfilerPushRange"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuptiProfilerPushRange"), driver_.sim_calls_("cuptiProfilerPopRange"));
  // Bytes and four precisions of three layers and phases with several kernels.
  EXPECT_EQ(CheckShares(), 3u * 5u);
  auto counts = CheckSamples();
  for (const auto& key : {Key{"gemm", 2, Phase::kForward}, Key{"relu", 0, Phase::kOptimizer}}) {
    EXPECT_GE(counts[key][kDramBytes], 2u);
    EXPECT_GE(counts[key][kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)], 1u);
  }
}

TEST_F(SimulatedGpu, SeveralRanksAreCountedKernelByKernelWhenForced) {
  setenv("WORLD_SIZE", "2", 1);
  settings_.mode = "range";
  Run(60);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_EQ(CheckShares(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 1, Phase::kForward}][kDramBytes]), 2u);
}

// More ranges than there is room for: launches of two layers that take turns.
TEST_F(SimulatedGpu, MoreRangesThanRoomThrowTheStepAwayAndTheNextHasRoom) {
  settings_.mode = "user";
  of_layer_[{3, Phase::kForward}] = of_layer_[{4, Phase::kForward}] = {};
  for (int i = 0; i < 200; ++i) {
    of_layer_[{3, Phase::kForward}].push_back(i % 2 == 0 ? "relu" : "conv");
    of_layer_[{4, Phase::kForward}].push_back("relu");
  }
  for (int step = 0; step < 60; ++step) {
    // A step that is armed after others without any of these has no room for them.
    for (int i = 0; i < (recorder_.armed().empty() ? 0 : 200); ++i) {
      Launch(kernels_[i % 2 == 0 ? 2 : 0], 3, Phase::kForward);
      Launch(kernels_[2], 4, Phase::kForward);
    }
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), Contains(::testing::Key("armed steps whose ranges did not match their launches")));
  EXPECT_THAT(DiagnosticIds(), Not(Contains("ranges-mismatch")));
  EXPECT_GT(CheckShares(), 0u);
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"conv", 3, Phase::kForward}][kDramBytes]), 100u);
  EXPECT_GE((counts[{"relu", 4, Phase::kForward}][kDramBytes]), 1u);
}

}  // namespace
}  // namespace rfinject
