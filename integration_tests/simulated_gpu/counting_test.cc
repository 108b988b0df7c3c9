// File: counting_test.cc
//
// What is reported of launches, copies and memory is exactly what the kernels are known to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

  EXPECT_TRUE(RunUntil([this] { return IsComplete(); }));
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_EQ(failed_, 0);
  const bool volta = GetParam().chip == std::string("GV100");
  auto counts = CheckSamples();
  EXPECT_EQ(counts.size(), 8u);  // kernel, layer and phase
  for (auto& [key, count] : counts) {
    const std::string name = std::get<0>(key) + " in layer " + std::to_string(std::get<1>(key));
    for (Precision precision : {Precision::kFp64, Precision::kFp32, Precision::kFp16, Precision::kTf32Tensor,
                                Precision::kFp16Tensor, Precision::kBf16Tensor, Precision::kFp64Tensor}) {
      if (volta && precision >= Precision::kTf32Tensor && precision != Precision::kFp16Tensor) continue;
      EXPECT_GE(count[kFlopFirst + static_cast<uint32_t>(precision)], 1u)
          << name << " " << kPrecisionNames[static_cast<size_t>(precision)];
    }
  }
  // What HFMA2 counts is known apart from HADD2 and HMUL2.
  uint64_t half_fma = 0;
  const uint32_t fma = recorder_.DefineMetric(kMetricHalfFma, "FLOP", 1);
  for (const LaunchRecord& record : recorder_.CopyRecords()) {
    half_fma = std::max(half_fma, FakeRecorder::Value(record, fma));
  }
  EXPECT_EQ(half_fma, kernels_[2].flop[static_cast<size_t>(Precision::kFp16)]);
  // Launches are counted in all steps but the first, at whose end the source starts.
  EXPECT_EQ((counts[{"conv", 1, Phase::kForward}][0]), step_ - 1);
  EXPECT_EQ((counts[{"conv", 2, Phase::kBackward}][0]), 2 * (step_ - 1));
  const bool legacy = GetParam().collector == std::string("legacy-profiler");
  EXPECT_GT(driver_.sim_calls_(legacy ? "cuptiProfilerPushRange" : "cuptiRangeProfilerPushRange"), 0u);
  EXPECT_EQ(driver_.sim_calls_(legacy ? "cuptiRangeProfilerEnable" : "cuptiProfilerBeginSession"), 0u);
  // Nothing of the program is ever waited for.
  EXPECT_EQ(driver_.sim_calls_("cuCtxSynchronize"), 0u);
  ASSERT_FALSE(recorder_.facts().empty());
  EXPECT_EQ(recorder_.facts().back().source, SourceKind::kMeasured);
  EXPECT_EQ(recorder_.facts().back().collector, GetParam().collector);
  EXPECT_EQ(recorder_.facts().back().device[0].chip, GetParam().chip);
  // Which profiler counts, and why, is said wherever it is not the usual one; so is that bytes are not sampled.
  std::vector<std::string> said;
  if (legacy) said.push_back("counter-backend");
  if (!legacy && volta) said.push_back("pm-sampling");
  EXPECT_EQ(DiagnosticIds(), said);
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

TEST_F(SimulatedGpu, WhatIsCountedOnceLeavesTheProgramAlone) {
  driver_.sim_set_exclusive_(0);  // so that no session is refused
  ASSERT_TRUE(RunUntil([this] { return IsComplete(); }));
  // The session is closed, and no launch has a range any more.
  EXPECT_TRUE(RunUntil([this] {
    return driver_.sim_calls_("cuptiRangeProfilerEnable") == driver_.sim_calls_("cuptiRangeProfilerDisable");
  }));
  const uint64_t ranges = driver_.sim_calls_("cuptiRangeProfilerPushRange");
  EXPECT_LE(ranges, 8u * 4u + 16u);  // keys and groups, and those that another thread has spoiled
  Run(100);
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerPushRange"), ranges);
  // A key that is new is counted, too.
  Launch(kernels_[0], 9, Phase::kForward);
  EXPECT_TRUE(RunUntil([this] {
    Launch(kernels_[0], 9, Phase::kForward);
    return CountSamples()[{"conv", 9, Phase::kForward}][kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor)] >
           0;
  }));
  EXPECT_STREQ(driver_.sim_violations_(), "");
  CheckSamples();
}

// Where no samples tell which kernels use the tensor pipes, the first group of tensor counters does, and the others
// have no session for those that do not.
TEST_F(SimulatedGpu, KernelsThatUseNoTensorPipesAreCountedInOneTensorGroup) {
  driver_.sim_fail_("cuptiPmSamplingGetCounterAvailability", CUPTI_ERROR_NOT_SUPPORTED, 1);
  const auto all_have_flop = [this] {
    Counts counts = CountSamples();
    return counts.size() == 3 && std::ranges::all_of(counts, [](auto& one) {
             return one.second[kFlopFirst + static_cast<uint32_t>(Precision::kFp32)] > 0 &&
                    one.second[kFlopFirst + static_cast<uint32_t>(Precision::kFp64Tensor)] > 0;
           });
  };
  // All launches come from one thread, so that none spoils another's range.
  while (step_ < 10'000 && !all_have_flop()) {
    for (const TestKernel& kernel : kernels_) Launch(kernel, 1, Phase::kForward);
    driver_.sim_spend_(host_ns_);
    source_->OnStepEnd(step_++);
  }
  ASSERT_TRUE(all_have_flop());
  // Of bytes, of the first tensor group, and of patched code.
  EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerEnable"), 3u);
  CheckSamples();
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
  EXPECT_TRUE(RunUntil([this] {
    t_site = Site{};
    EXPECT_EQ(driver_.cuMemcpyHtoDAsync_v2_(0, nullptr, 64, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Launch(kernels_[3], 2, Phase::kBackward), CUDA_SUCCESS);
    return CountSamples()[{"ncclDevKernel_AllReduce", 2, Phase::kCommunication}][kTime] >= 3;
  }));
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  auto counts = CheckSamples();
  EXPECT_GE((counts[{"cuMemcpyHtoDAsync_v2", 0, Phase::kData}][kTime]), 3u);
  EXPECT_EQ((counts[{"cuMemcpyHtoDAsync_v2", 0, Phase::kData}][kDramBytes]), 0u);
  EXPECT_GE((counts[{"ncclDevKernel_AllReduce", 2, Phase::kCommunication}][kTime]), 3u);
}

TEST_F(SimulatedGpu, TheProgramsWaitsForTheGpuAreSeenAndOursAreNot) {
  Step();
  EXPECT_EQ(WatchedWaits() & kGpuWaits, uint32_t{kGpuWaits});
  (void)TakeWaits();
  EXPECT_TRUE(RunUntil([this] { return recorder_.kept<trace::GpuStep>().size() >= 4; }));
  for (const trace::GpuStep& step : recorder_.kept<trace::GpuStep>()) {
    EXPECT_EQ(step.busy_ns, 5 * 100'000u + 3 * 50'000u + 2 * 2'000u);
    EXPECT_EQ(step.launches, 10u);
  }
  EXPECT_EQ(WatchedWaits() & kLaunchWaits, uint32_t{kLaunchWaits});
  (void)TakeWaits();  // on a machine with much to do some launches take longer than usual
  source_->OnStepEnd(step_++);
  EXPECT_EQ(TakeWaits().gpu_ns, 0u) << "what we do between two steps is no wait of the program's";
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
