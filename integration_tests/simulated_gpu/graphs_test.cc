// File: graphs_test.cc
//
// CUDA graphs: launched as a whole, and captured while steps end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration_tests/simulated_gpu/testing/fixture.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(SimulatedGpu, AGraphIsOneRange) {
  kernels_.reserve(4);
  Bind(&kernels_);
  const SimKernel* inside[] = {&kernels_[0].kernel, &kernels_[2].kernel, &kernels_[2].kernel};
  const SimGraph graph = {inside, 3};
  TestKernel whole;
  whole.name = "(CUDA graph)";
  whole.ns = kernels_[0].ns + 2 * kernels_[2].ns;
  whole.dram = kernels_[0].dram + 2 * kernels_[2].dram;
  for (size_t i = 0; i < kPrecisionCount; ++i) whole.flop[i] = kernels_[0].flop[i] + 2 * kernels_[2].flop[i];
  kernels_.push_back(whole);
  of_layer_ = {{{1, Phase::kForward}, {"conv", "gemm", "relu"}}};
  for (int step = 0; step < 60; ++step) {
    for (size_t i = 0; i < 3; ++i) {
      Launch(kernels_[i], 1, Phase::kForward);
      if (i > 0) continue;
      EXPECT_EQ(driver_.cuGraphLaunch_(reinterpret_cast<CUgraphExec>(const_cast<SimGraph*>(&graph)), nullptr),
                CUDA_SUCCESS);
    }
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Contains("counters-by-layer"));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  // The graph's values are its own and not shared with the kernels of the same layer.
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"(CUDA graph)", 1, Phase::kForward}][kDramBytes]), 2u);
  EXPECT_GE((counts[{"(CUDA graph)", 1, Phase::kForward}][kTime]), 3u);
  EXPECT_GE((counts[{"(CUDA graph)", 1, Phase::kForward}][kFlopFirst + static_cast<uint32_t>(Precision::kFp32)]), 1u);
}

TEST_F(SimulatedGpu, KernelByKernelForcedOnAGraphCountsNothingAndSaysSo) {
  settings_.mode = "range";
  const SimGraph graph = {nullptr, 0};
  for (int step = 0; step < 60; ++step) {
    driver_.cuGraphLaunch_(reinterpret_cast<CUgraphExec>(const_cast<SimGraph*>(&graph)), nullptr);
    for (const TestKernel& kernel : kernels_) Launch(kernel, 1, Phase::kForward);
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  EXPECT_THAT(DiagnosticIds(), Contains("cuda-graphs"));
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// The optimizer's step may be part of what is captured into a graph: a step ends while it is.
TEST_F(SimulatedGpu, AStepThatEndsInACaptureDoesNotSpoilIt) {
  settings_.overhead_percent = 50;
  Run(1);
  CUgraph before = nullptr;  // we came into a capture, and see its end alone
  ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &before), CUDA_SUCCESS);
  for (int i = 0; i < 60; ++i) {  // steps with counters, with times, with PM sampling, and with nothing
    Run(1 + i % 3);
    ASSERT_EQ(driver_.cuStreamBeginCapture_v2_(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    source_->OnStepEnd(step_++);
    CUgraph graph = nullptr;
    ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &graph), CUDA_SUCCESS) << i;
  }
  EXPECT_GE(recorder_.armed().size(), 1u);
  EXPECT_THAT(DiagnosticIds(), Contains("step-in-graph"));
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, WhatIsCapturedIsNotLaunched) {
  settings_.overhead_percent = 50;
  Run(1);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(driver_.cuStreamBeginCapture_v2_(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    const size_t before = recorder_.records().size();
    EXPECT_EQ(Launch(kernels_[0], 1, Phase::kForward, 77), CUDA_SUCCESS);
    EXPECT_EQ(recorder_.records().size(), before);
    CUgraph graph = nullptr;
    ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &graph), CUDA_SUCCESS);
    Run(1);
  }
  // The step with counters is not thrown away either, although it has no range for what is captured.
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  EXPECT_THAT(DiagnosticIds(), Not(Contains("ranges-mismatch")));
  EXPECT_GE(recorder_.armed().size(), 2u);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
