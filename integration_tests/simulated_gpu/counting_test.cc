// File: counting_test.cc
//
// What is reported of launches, copies and memory is exactly what the kernels are known to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "collector/step_waits.h"
#include "integration_tests/simulated_gpu/testing/fixture.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using ::testing::IsEmpty;

struct ExactCase {
  const char* cupti;
  const char* chip;
  const char* collector;
  const char* mode = "auto";
};

std::string NameOf(const ExactCase& c) {
  const std::string cupti = c.cupti;
  return c.chip + ("_" + cupti.substr(0, cupti.find('/'))) + "_" + c.mode;
}
void PrintTo(const ExactCase& c, std::ostream* out) { *out << NameOf(c); }

class Exact : public SimulatedGpu, public ::testing::WithParamInterface<ExactCase> {
 protected:
  Exact() : SimulatedGpu(GetParam().cupti, GetParam().chip) {}
};

TEST_P(Exact, FlopBytesAndTimesOfEveryLaunchKey) {
  settings_.mode = GetParam().mode;
  settings_.overhead_percent = 50;  // so that it takes few steps on a chip with few groups, too
  // How often a step is armed depends on how long steps take, so on the machine.
  while (step_ < 60 ||
         (step_ < 6000 && (recorder_.armed().size() < 6 || driver_.sim_calls_("cuptiActivityFlushAll") < 4))) {
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(failed_, 0);
  const bool volta = GetParam().chip == std::string("GV100");
  auto counts = CheckSamples();
  EXPECT_EQ(counts.size(), 8u);  // kernel, layer and phase
  for (auto& [key, count] : counts) {
    const std::string name = std::get<0>(key) + " in layer " + std::to_string(std::get<1>(key));
    EXPECT_GE(count[kTime], 3u) << name;
    EXPECT_GE(count[kDramBytes], 2u) << name;
    for (Precision precision : {Precision::kFp64, Precision::kFp32, Precision::kFp16, Precision::kTf32Tensor,
                                Precision::kFp16Tensor, Precision::kBf16Tensor, Precision::kFp64Tensor}) {
      if (volta && precision >= Precision::kTf32Tensor && precision != Precision::kFp16Tensor) continue;
      EXPECT_GE(count[kFlopFirst + static_cast<uint32_t>(precision)], 1u)
          << name << " " << kPrecisionNames[static_cast<size_t>(precision)];
    }
  }
  // Launches are counted in all steps but the first, at whose end the source starts.
  EXPECT_EQ((counts[{"conv", 1, Phase::kForward}][0]), step_ - 1);
  EXPECT_EQ((counts[{"conv", 2, Phase::kBackward}][0]), 2 * (step_ - 1));
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  const bool legacy = GetParam().collector == std::string("legacy-profiler");
  EXPECT_EQ(recorder_.armed().size(),
            driver_.sim_calls_(legacy ? "cuptiProfilerEnableProfiling" : "cuptiRangeProfilerStart"));
  EXPECT_EQ(driver_.sim_calls_(legacy ? "cuptiRangeProfilerEnable" : "cuptiProfilerBeginSession"), 0u);
  ASSERT_FALSE(recorder_.facts().empty());
  EXPECT_EQ(recorder_.facts()[0].source, SourceKind::kMeasured);
  EXPECT_EQ(recorder_.facts()[0].collector, GetParam().collector);
  EXPECT_EQ(recorder_.facts()[0].device[0].chip, GetParam().chip);
  // Which profiler counts, and why, is said wherever it is not the usual one; nothing else went wrong.
  EXPECT_EQ(DiagnosticIds(), legacy ? std::vector<std::string>{"counter-backend"} : std::vector<std::string>{});
  source_->Stop();
}

INSTANTIATE_TEST_SUITE_P(Chips, Exact,
                         ::testing::Values(ExactCase{"cupti13/libcupti.so.13", "GA100", "range-profiler"},
                                           ExactCase{"cupti13/libcupti.so.13", "GH100", "range-profiler"},
                                           ExactCase{"cupti12/libcupti.so.12", "GA100", "range-profiler"},
                                           ExactCase{"cupti124/libcupti.so.12", "GV100", "legacy-profiler"},
                                           ExactCase{"cupti124/libcupti.so.12", "GA100", "legacy-profiler"},
                                           ExactCase{"cupti124/libcupti.so.12", "GH100", "legacy-profiler", "range"},
                                           ExactCase{"cupti118/libcupti.so.11.8", "GV100", "legacy-profiler",
                                                     "legacy"},
                                           ExactCase{"cupti13/libcupti.so.13", "GV100", "range-profiler", "range"}),
                         [](const auto& info) { return NameOf(info.param); });

TEST_F(SimulatedGpu, ConvergesAndThenLeavesTheProgramAlone) {
  // Steps are so short here that what the machine does besides decides how many are armed; a large budget makes that
  // matter less.
  settings_.overhead_percent = 50;
  uint64_t armed = 0, quiet = 0;
  for (int chunk = 0; chunk < 60 && quiet < 4; ++chunk) {
    Run(250);
    const uint64_t armed_now = driver_.sim_calls_("cuptiRangeProfilerStart");
    quiet = armed_now == armed ? quiet + 1 : 0;
    armed = armed_now;
  }
  EXPECT_EQ(quiet, 4u);
  // Times are still taken then, ever more seldom.
  const uint64_t timed = driver_.sim_calls_("cuptiActivityFlushAll");
  Run(4000);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerStart"), armed);
  EXPECT_LE(driver_.sim_calls_("cuptiActivityFlushAll"), timed + 100);
  // All values are equal in each step, so the first look (3 samples) and what follows it are enough.
  EXPECT_LE(armed, 40u);
  EXPECT_GE(armed, 5u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

TEST_F(SimulatedGpu, MoreLaunchesThanRangesThrowTheStepAwayAndTheNextHasRoom) {
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < 400; ++i) Launch(kernels_[2], 3, Phase::kForward);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"relu", 3, Phase::kForward}][kDramBytes]), 400u);
}

TEST_F(SimulatedGpu, CopiesHaveTimesAndCommunicationAPhaseOfItsOwn) {
  TestKernel nccl = kernels_[2];
  nccl.name = "ncclDevKernel_AllReduce";
  kernels_.push_back(nccl);
  TestKernel copy;
  copy.name = "cuMemcpyHtoDAsync_v2";
  copy.ns = 700;
  kernels_.push_back(copy);
  Bind(&kernels_);
  for (int step = 0; step < 60; ++step) {
    t_site = Site{};
    EXPECT_EQ(driver_.cuMemcpyHtoDAsync_v2_(0, nullptr, 64, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Launch(kernels_[3], 2, Phase::kBackward), CUDA_SUCCESS);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(recorder_.drops(), IsEmpty());
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"cuMemcpyHtoDAsync_v2", 0, Phase::kData}][kTime]), 3u);
  EXPECT_EQ((counts[{"cuMemcpyHtoDAsync_v2", 0, Phase::kData}][kDramBytes]), 0u);
  EXPECT_GE((counts[{"ncclDevKernel_AllReduce", 2, Phase::kCommunication}][kTime]), 3u);
}

TEST_F(SimulatedV100, TheLegacyProfilerMakesRoomForMoreLaunches) {
  settings_.overhead_percent = 50;  // so that another step is armed soon after the one that had no room
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < 400; ++i) Launch(kernels_[2], 3, Phase::kForward);
    Step();
  }
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"relu", 3, Phase::kForward}][kDramBytes]), 400u);
}

TEST_F(SimulatedGpu, TheProgramsWaitsForTheGpuAreSeenAndOursAreNot) {
  Step();
  EXPECT_EQ(WatchedWaits() & kGpuWaits, uint32_t{kGpuWaits});
  (void)TakeWaits();
  // Steps with times wait for the GPU at their end, which is ours.
  while (step_ < 6000 && recorder_.busy().size() < 3) Step();
  EXPECT_GE(recorder_.busy().size(), 3u);
  for (const uint64_t ns : recorder_.busy()) EXPECT_GT(ns, 0u);
  EXPECT_EQ(TakeWaits().gpu_ns, 0u);
  ASSERT_EQ(driver_.cuStreamSynchronize_(nullptr), CUDA_SUCCESS);
  EXPECT_GT(TakeWaits().gpu_ns, 0u);
  EXPECT_EQ(TakeWaits().data_ns, 0u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  CheckSamples();
}

TEST_F(SimulatedGpu, MemoryInUseAndItsPeakAreKnownForEachStep) {
  constexpr uint64_t kMiB = 1 << 20, kBefore = uint64_t{10} << 30;
  Step();
  CUdeviceptr kept = 0, workspace = 0;
  ASSERT_EQ(driver_.cuMemAlloc_v2_(&kept, 100 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemAlloc_v2_(&workspace, 50 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemFree_v2_(workspace), CUDA_SUCCESS);
  Step();
  Step();
  ASSERT_EQ(driver_.cuMemFree_v2_(kept), CUDA_SUCCESS);
  Step();
  EXPECT_THAT(recorder_.memory(), ::testing::ElementsAre(std::pair(kBefore + 100 * kMiB, kBefore + 150 * kMiB),
                                                         std::pair(kBefore + 100 * kMiB, kBefore + 100 * kMiB),
                                                         std::pair(kBefore, kBefore + 100 * kMiB)));
  // Allocations are neither launches nor copies.
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
