// File: graphs_test.cc
//
// CUDA graphs: launched as a whole, and captured while steps end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/step_end.h"
#include "integration_tests/simulated_gpu/testing/fixture.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

TEST_F(SimulatedGpu, AGraphIsOneRange) {
  kernels_.reserve(4);
  Bind(&kernels_);
  SimNode inside[3] = {};
  inside[0].kernel = &kernels_[0].kernel;
  inside[1].kernel = inside[2].kernel = &kernels_[2].kernel;
  const SimGraph graph = {inside, 3};
  TestKernel whole;
  whole.name = "(CUDA graph)";
  whole.ns = kernels_[0].ns + 2 * kernels_[2].ns;
  whole.dram = kernels_[0].dram + 2 * kernels_[2].dram;
  for (size_t i = 0; i < kPrecisionCount; ++i) whole.flop[i] = kernels_[0].flop[i] + 2 * kernels_[2].flop[i];
  kernels_.push_back(whole);
  const Key key = {"(CUDA graph)", 1, Phase::kForward};
  constexpr uint32_t kFp32 = kFlopFirst + static_cast<uint32_t>(Precision::kFp32);
  for (int i = 0; i < 2000; ++i) {
    Counts counts = CountSamples();
    if (counts[key][kFp32] > 0 && counts[key][kTime] > 2 && counts[key][kDramBytes] > 1) break;
    for (size_t k = 0; k < 3; ++k) {
      Launch(kernels_[k], 1, Phase::kForward);
      if (k > 0) continue;
      EXPECT_EQ(driver_.cuGraphLaunch_(reinterpret_cast<CUgraphExec>(const_cast<SimGraph*>(&graph)), nullptr),
                CUDA_SUCCESS);
    }
    driver_.sim_spend_(host_ns_);
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  // The graph's values are its own and not shared with the kernels of the same layer.
  auto counts = CheckSamples();
  EXPECT_GE(counts[key][kDramBytes], 2u);
  EXPECT_GE(counts[key][kTime], 3u);
  EXPECT_GE(counts[key][kFp32], 1u);
}

// The optimizer's step may be part of what is captured into a graph: a step ends while it is.
TEST_F(SimulatedGpu, AStepThatEndsInACaptureDoesNotSpoilIt) {
  Run(1);
  CUgraph before = nullptr;  // we came into a capture, and see its end alone
  ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &before), CUDA_SUCCESS);
  for (int i = 0; i < 150; ++i) {  // while sessions are opened, ranges read, kernels timed, and with nothing
    Run(1 + i % 3);
    ASSERT_EQ(driver_.cuStreamBeginCapture_v2_(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    source_->OnStepEnd(step_++);
    CUgraph graph = nullptr;
    ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &graph), CUDA_SUCCESS) << i;
  }
  EXPECT_GE(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 1u);
  source_->Stop();
  EXPECT_THAT(DiagnosticIds(), Contains("step-in-graph"));
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, WhatIsCapturedIsNotLaunched) {
  Run(1);
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(driver_.cuStreamBeginCapture_v2_(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    const uint64_t before = CountSamples()[{"conv", 7, Phase::kForward}][0];
    EXPECT_EQ(Launch(kernels_[0], 7, Phase::kForward, 77), CUDA_SUCCESS);
    EXPECT_EQ((CountSamples()[{"conv", 7, Phase::kForward}][0]), before);
    CUgraph graph = nullptr;
    ASSERT_EQ(driver_.cuStreamEndCapture_(nullptr, &graph), CUDA_SUCCESS);
    Run(1);
  }
  source_->Stop();
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// --- What was captured in sight.

class CapturedGraph : public SimulatedGpu {
 protected:
  // Captures two layers that run the same kernel into a graph; with the optimizer's work, if `optimizer`.
  CUgraphExec Capture(bool optimizer = false) {
    EXPECT_EQ(driver_.cuStreamBeginCapture_v2_(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    Launch(kernels_[0], 1, Phase::kForward);
    Launch(kernels_[2], 1, Phase::kForward);
    LaunchEx(kernels_[1], 2, Phase::kForward);
    Launch(kernels_[0], 2, Phase::kForward);
    t_site = Site{.layer = 2};
    driver_.cuMemcpyHtoDAsync_v2_(0, nullptr, 8, nullptr);
    if (optimizer) Launch(kernels_[2], 0, Phase::kOptimizer);
    CUgraph graph = nullptr;
    EXPECT_EQ(driver_.cuStreamEndCapture_(nullptr, &graph), CUDA_SUCCESS);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(driver_.cuGraphInstantiateWithFlags_(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuGraphDestroy_(graph), CUDA_SUCCESS);
    return exec;
  }
  void EndStep() {
    driver_.sim_spend_(host_ns_);
    source_->OnStepEnd(step_++);
    recorder_.EndStep(1);
  }
  // Launches by (kernel, layer) since `begin`.
  std::map<std::pair<std::string, uint32_t>, uint64_t> Launches(size_t begin = 0) const {
    std::map<std::pair<std::string, uint32_t>, uint64_t> launches;
    const std::vector<LaunchRecord> records = recorder_.CopyRecords();
    for (size_t i = begin; i < records.size(); ++i) {
      const LaunchRecord& record = records[i];
      if (record.launches == 0) continue;
      launches[{recorder_.Name(record.identity.kernel), record.identity.site.layer}] += record.launches;
    }
    return launches;
  }
  std::vector<uint64_t> Times(const std::string& kernel, uint32_t layer) const {
    std::vector<uint64_t> times;
    for (const LaunchRecord& record : recorder_.CopyRecords()) {
      if (recorder_.Name(record.identity.kernel) != kernel || record.identity.site.layer != layer) continue;
      for (uint32_t i = 0; i < record.sample_count; ++i) {
        if (record.samples[i].metric == kTime) times.push_back(record.samples[i].value);
      }
    }
    return times;
  }

  // Steps with a graph that was captured before any of its kernels was counted.
  void CheckRows() {
    EndStep();
    const CUgraphExec exec = Capture();
    constexpr uint32_t kTf32 = kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor);
    const Key whole = {"(CUDA graph)", 2, Phase::kOther};
    uint64_t steps = 0, counted = 0, bytes = 0;
    for (; steps < 2000; ++steps) {
      Counts counts = CountSamples();
      if (counts[whole][kTf32] > 0 && counts[{"conv", 1, Phase::kForward}][kDramBytes] > 1) break;
      driver_.cuGraphLaunch_(exec, nullptr);
      EndStep();
    }
    source_->Stop();
    // The graph's own row is for the FLOP, which are not told apart.
    EXPECT_THAT(Launches(), ElementsAre(Pair(Pair("(CUDA graph)", 2), steps), Pair(Pair("conv", 1), steps),
                                        Pair(Pair("conv", 2), steps), Pair(Pair("cuMemcpyHtoDAsync_v2", 2), steps),
                                        Pair(Pair("gemm", 2), steps), Pair(Pair("relu", 1), steps)));
    EXPECT_THAT(Times("conv", 1), Each(kernels_[0].ns));
    EXPECT_THAT(Times("conv", 2), Each(kernels_[0].ns));
    EXPECT_THAT(Times("gemm", 2), Each(kernels_[1].ns));
    EXPECT_THAT(Times("cuMemcpyHtoDAsync_v2", 2), Each(700u));
    EXPECT_THAT(Times("(CUDA graph)", 2), Each(0u));
    EXPECT_GE(Times("relu", 1).size(), 3u);
    for (const LaunchRecord& record : recorder_.CopyRecords()) {
      const std::string name = recorder_.Name(record.identity.kernel);
      for (uint32_t i = 0; i < record.sample_count; ++i) {
        if (record.samples[i].metric == kTf32) {
          EXPECT_EQ(name, "(CUDA graph)");
          EXPECT_EQ(record.samples[i].value, 2 * kernels_[0].flop[static_cast<size_t>(Precision::kTf32Tensor)]);
          ++counted;
        }
        // Bytes are each kernel's own.
        if (record.samples[i].metric != kDramBytes || name != "conv") continue;
        EXPECT_NEAR(static_cast<double>(record.samples[i].value), 1500, 225);
        ++bytes;
      }
    }
    EXPECT_GE(counted, 1u);
    EXPECT_GE(bytes, 2u);
    EXPECT_STREQ(driver_.sim_violations_(), "");
  }
};

TEST_F(CapturedGraph, ItsKernelsAreRowsOfTheLayersThatCapturedThem) { CheckRows(); }

TEST_F(CapturedGraph, ItsKernelsAreRowsByTheirOrderWhereCuptiDoesNotNumberThem) {
  driver_.sim_set_graph_ids_(SIM_GRAPH_NO_IDS);
  CheckRows();
}

TEST_F(CapturedGraph, WhatDoesNotRunInTheOrderOfTheCaptureStaysAGraph) {
  driver_.sim_set_graph_ids_(SIM_GRAPH_NO_IDS_SWAPPED);
  EndStep();
  const CUgraphExec exec = Capture();
  uint64_t steps = 0;
  for (; steps < 2000 && !recorder_.HasDiagnostic("graph-not-told-apart: 16"); ++steps) {
    driver_.cuGraphLaunch_(exec, nullptr);
    EndStep();
  }
  source_->Stop();
  EXPECT_THAT(Launches(), ElementsAre(Pair(Pair("(CUDA graph)", 2), steps)));
  const uint64_t all = 2 * kernels_[0].ns + kernels_[1].ns + kernels_[2].ns + 700;
  EXPECT_THAT(Times("(CUDA graph)", 2), Each(all));
  EXPECT_THAT(DiagnosticIds(), Contains("graph-not-told-apart: 16"));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(CapturedGraph, KernelsThatWereCountedBeforeKeepTheirValues) {
  const auto eager = [this] {
    Launch(kernels_[0], 1, Phase::kForward);
    Launch(kernels_[2], 1, Phase::kForward);
    LaunchEx(kernels_[1], 2, Phase::kForward);
    Launch(kernels_[0], 2, Phase::kForward);
    EndStep();
  };
  // Until every group has counted them, and is done.
  for (int i = 0; i < 2000; ++i) {
    const uint64_t opened = driver_.sim_calls_("cuptiRangeProfilerEnable");
    if (opened > 2 && opened == driver_.sim_calls_("cuptiRangeProfilerDisable")) break;
    eager();
  }
  const CUgraphExec exec = Capture();
  const size_t before = recorder_.CopyRecords().size();
  for (int step = 0; step < 40; ++step) {
    driver_.cuGraphLaunch_(exec, nullptr);
    EndStep();
  }
  EXPECT_THAT(Launches(before), ElementsAre(Pair(Pair("conv", 1), 40), Pair(Pair("conv", 2), 40),
                                            Pair(Pair("cuMemcpyHtoDAsync_v2", 2), 40), Pair(Pair("gemm", 2), 40),
                                            Pair(Pair("relu", 1), 40)));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

int g_soon = 0;
TEST_F(CapturedGraph, ItsLaunchEndsTheStepWhereItHoldsTheOptimizers) {
  g_end_step_soon.store([]() noexcept { ++g_soon; });
  EndStep();
  EXPECT_TRUE(source_->HasStepped());
  const CUgraphExec exec = Capture(true), other = Capture(false);
  EXPECT_FALSE(source_->HasStepped());  // it was captured only
  EXPECT_TRUE(source_->HasStepped());
  for (int step = 1; step <= 5; ++step) {
    driver_.cuGraphLaunch_(other, nullptr);
    EXPECT_EQ(g_soon, step - 1);
    driver_.cuGraphLaunch_(exec, nullptr);
    EXPECT_EQ(g_soon, step);
    EndStep();
  }
  driver_.sim_fail_("cuGraphLaunch", CUDA_ERROR_UNKNOWN, 0);
  driver_.cuGraphLaunch_(exec, nullptr);
  EXPECT_EQ(g_soon, 5);
}

TEST_F(CapturedGraph, AProgramMayCaptureBeforeItsFirstStepEnds) {
  source_->OnFirstCall();
  const CUgraphExec exec = Capture();
  driver_.cuGraphLaunch_(exec, nullptr);
  EXPECT_THAT(Launches(), IsEmpty());  // of a step that was not seen from its beginning
  EndStep();
  driver_.cuGraphLaunch_(exec, nullptr);
  EndStep();
  EXPECT_EQ(Launches().at({"gemm", 2}), 1u);
  EXPECT_THAT(DiagnosticIds(), Not(Contains(HasSubstr("graph-not-told-apart"))));
}

TEST_F(CapturedGraph, GraphsThatAreDestroyedAreForgotten) {
  EndStep();
  for (int i = 0; i < 500; ++i) {
    const CUgraphExec exec = Capture();
    driver_.cuGraphLaunch_(exec, nullptr);
    if (i % 10 == 0) EndStep();
    driver_.cuGraphExecDestroy_(exec);
  }
  EndStep();
  EXPECT_EQ(recorder_.graph_members(), 0u);
  EXPECT_EQ(Launches().at({"gemm", 2}), 500u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
