// File: failures_test.cc
//
// Makes every function fail with every code that it may fail with, either once or always. The program must not
// notice.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

using ::testing::IsEmpty;

TEST_F(SimulatedGpu, AFailingLaunchIsNoRange) {
  for (int step = 0; step < 200; ++step) {
    driver_.sim_fail_("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE, 0);
    EXPECT_EQ(Launch(kernels_[0], 9, Phase::kForward), CUDA_ERROR_INVALID_VALUE);
    Step();
  }
  source_->Stop();
  EXPECT_STREQ(driver_.sim_violations_(), "");
  CheckSamples();
  for (uint32_t metric = 1; metric < kFirstFreeMetric; ++metric) {
    EXPECT_EQ((CountSamples()[{"conv", 9, Phase::kForward}][metric]), 0u);
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kCodes[] = {1, 35, 999};  // a forked process costs much more here
#else
constexpr int kCodes[] = {1, 7, 8, 9, 14, 15, 26, 27, 33, 35, 36, 38, 39, 40, 41, 43, 45, 46, 999};
#endif

// Perfworks has numbers of its own: all values of NVPA_Status that its header does not call unused.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kPerfworksCodes[] = {1, 17};
#else
constexpr int kPerfworksCodes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 14, 15, 17, 20, 22, 24, 25, 999};
#endif

// What is called only when a second device is in use.
bool NeedsTwoDevices(const std::string& call) {
  return call == "cuptiGetDeviceId" || call == "cuCtxPushCurrent" || call == "cuCtxPopCurrent";
}

class Failing : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {
 protected:
  using SimulatedGpu::SimulatedGpu;
  void ShareThePlanning();
  void FailEachWay();
};

TEST_P(Failing, TheProgramDoesNotNotice) { FailEachWay(); }

class FailingLegacy : public Failing {
 protected:
  FailingLegacy() : Failing("cupti124/libcupti.so.12", "GV100") {}
};

TEST_P(FailingLegacy, TheProgramDoesNotNotice) { FailEachWay(); }

// The libraries that plan are opened, and what they answer is shared, before the forks: not in each child. So all
// tests of a suite are run by one process, in which nothing but this happens.
void Failing::ShareThePlanning() {
  driver_.sim_share_answers_();
  // A simulated CUPTI that is older has a Perfworks of its own, which must be found before the real one.
  std::vector<std::string> libraries = {SIM_REAL_CUPTI_FOLDER "/libnvperf_host.so"};
  if (newest_cupti()) {
    libraries.push_back(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13");
  } else {
    libraries.insert(libraries.begin(), SIM_FOLDER "/cupti124/libnvperf_host.so");
  }
  for (const std::string& library : libraries) {
    ASSERT_NE(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr) << dlerror();
  }
}

void Failing::FailEachWay() {
  ASSERT_NO_FATAL_FAILURE(ShareThePlanning());
  const bool perfworks = std::string(GetParam()).rfind("NVPW_", 0) == 0;
  for (int code : perfworks ? std::span<const int>(kPerfworksCodes) : std::span<const int>(kCodes)) {
    for (int every : {0, 1}) {
      // For most codes, failing always shows no more than failing once, and costs as much.
      if (every != 0 && code != 1 && code != (perfworks ? 17 : 35)) continue;
      // Each case has a process, because the source lives as long as its process.
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        if (NeedsTwoDevices(GetParam())) RunOnASecond();
        driver_.sim_fail_(GetParam(), code, every);
        // Until it was called, and a while longer. Our own thread has what a busy machine leaves it.
        for (int step = 0, left = 20; step < 10'000 && left > 0; ++step) {
          if (NeedsTwoDevices(GetParam())) RunOnASecond();
          Step();
          left -= driver_.sim_calls_(GetParam()) > 0;
        }
        source_->Stop();
        const bool called = driver_.sim_calls_(GetParam()) > 0;
        CheckSamples();  // what there is must be right
        bool said = true;
        for (const auto& diagnostic : recorder_.diagnostics()) said = said && !diagnostic.text.empty();
        // Violations: a refused call may leave CUPTI in a state that the next call must respect.
        const bool clean = driver_.sim_violations_()[0] == '\0';
        if (!clean) fprintf(stderr, "%s", driver_.sim_violations_());
        _exit(HasFailure() ? 10 : failed_ != 0 ? 11 : !called ? 12 : !said ? 13 : !clean ? 14 : 0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status)) << GetParam() << " returning " << code << ": signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0) << GetParam() << " returning " << code << (every ? " always" : " once");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Failing,
    ::testing::Values(
        "cuptiGetVersion", "cuptiSubscribe_v2", "cuptiEnableCallback", "cuptiActivitySetAttribute",
        "cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityFlushAll",
        "cuptiActivityGetNextRecord", "cuptiActivityGetNumDroppedRecords", "cuptiProfilerInitialize",
        "cuptiDeviceGetChipName", "cuptiProfilerGetCounterAvailability", "cuptiProfilerHostInitialize",
        "cuptiProfilerHostDeinitialize", "cuptiProfilerHostGetBaseMetrics", "cuptiProfilerHostConfigAddMetrics",
        "cuptiProfilerHostGetConfigImageSize", "cuptiProfilerHostGetConfigImage", "cuptiProfilerHostGetNumOfPasses",
        "cuptiProfilerHostEvaluateToGpuValues", "cuptiRangeProfilerEnable", "cuptiRangeProfilerDisable",
        "cuptiRangeProfilerGetCounterDataSize", "cuptiRangeProfilerCounterDataImageInitialize",
        "cuptiRangeProfilerSetConfig", "cuptiRangeProfilerStart", "cuptiRangeProfilerStop",
        "cuptiRangeProfilerDecodeData", "cuptiRangeProfilerGetCounterDataInfo", "cuptiRangeProfilerPushRange",
        "cuptiRangeProfilerPopRange", "cuptiRangeProfilerCounterDataGetRangeInfo",
        "cuptiPmSamplingGetCounterAvailability", "cuptiPmSamplingEnable", "cuptiPmSamplingDisable",
        "cuptiPmSamplingSetConfig", "cuptiPmSamplingGetCounterDataSize", "cuptiPmSamplingCounterDataImageInitialize",
        "cuptiPmSamplingStart", "cuptiPmSamplingStop", "cuptiPmSamplingDecodeData",
        "cuptiPmSamplingGetCounterDataInfo", "cuptiPmSamplingCounterDataGetSampleInfo", "cuCtxGetCurrent",
        "cuptiGetDeviceId", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxGetDevice", "cuMemGetInfo",
        "cuDriverGetVersion", "cuDeviceGetName", "cuDeviceTotalMem", "cuDeviceGetAttribute"),
    [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(
    LegacyCalls, FailingLegacy,
    ::testing::Values(
        "cuptiSubscribe", "cuptiProfilerInitialize", "cuptiDeviceGetChipName", "cuptiProfilerGetCounterAvailability",
        "cuptiProfilerCounterDataImageCalculateSize", "cuptiProfilerCounterDataImageInitialize",
        "cuptiProfilerCounterDataImageCalculateScratchBufferSize",
        "cuptiProfilerCounterDataImageInitializeScratchBuffer", "cuptiProfilerBeginSession",
        "cuptiProfilerEndSession", "cuptiProfilerSetConfig", "cuptiProfilerUnsetConfig", "cuptiProfilerBeginPass",
        "cuptiProfilerEndPass", "cuptiProfilerEnableProfiling", "cuptiProfilerDisableProfiling",
        "cuptiProfilerFlushCounterData", "cuptiProfilerPushRange", "cuptiProfilerPopRange",
        "NVPW_Profiler_CounterData_GetRangeDescriptions", "cuDeviceGetAttribute", "NVPW_InitializeHost",
        "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", "NVPW_CUDA_MetricsEvaluator_Initialize",
        "NVPW_MetricsEvaluator_GetMetricNames", "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
        "NVPW_MetricsEvaluator_GetMetricRawDependencies", "NVPW_MetricsEvaluator_SetDeviceAttributes",
        "NVPW_MetricsEvaluator_EvaluateToGpuValues", "NVPW_CounterData_GetNumRanges",
        "NVPW_CUDA_RawMetricsConfig_Create_V2", "NVPW_RawMetricsConfig_Destroy",
        "NVPW_RawMetricsConfig_SetCounterAvailability", "NVPW_RawMetricsConfig_BeginPassGroup",
        "NVPW_RawMetricsConfig_AddMetrics", "NVPW_RawMetricsConfig_EndPassGroup",
        "NVPW_RawMetricsConfig_GenerateConfigImage", "NVPW_RawMetricsConfig_GetConfigImage",
        "NVPW_RawMetricsConfig_GetNumPasses", "NVPW_CUDA_CounterDataBuilder_Create",
        "NVPW_CounterDataBuilder_Destroy", "NVPW_CounterDataBuilder_AddMetrics",
        "NVPW_CounterDataBuilder_GetCounterDataPrefix"),
    [](const auto& info) { return std::string(info.param); });

// The list above must be complete: every function that a good run calls must be on it.
void ExpectAllAreMadeToFail(const Driver& driver) {
  std::vector<std::string> known;
  for (size_t i = 0; driver.sim_function_(i) != nullptr; ++i) known.push_back(driver.sim_function_(i));
  const auto* unit = ::testing::UnitTest::GetInstance();
  for (const std::string& name : known) {
    if (name.rfind("cuLaunch", 0) == 0) continue;  // the program's own
    bool found = false;
    for (int i = 0; i < unit->total_test_suite_count(); ++i) {
      const auto* suite = unit->GetTestSuite(i);
      if (std::string(suite->name()).find("/Failing") == std::string::npos) continue;
      for (int k = 0; k < suite->total_test_count(); ++k) {
        found = found || std::string(suite->GetTestInfo(k)->name()) == "TheProgramDoesNotNotice/" + name;
      }
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST_F(SimulatedGpu, EveryCallIsMadeToFailSomewhere) {
  EXPECT_TRUE(RunUntil([this] {
    RunOnASecond();
    return driver_.sim_calls_("cuptiRangeProfilerCounterDataGetRangeInfo") > 0 &&
           driver_.sim_calls_("cuptiPmSamplingCounterDataGetSampleInfo") > 0;
  }));
  EXPECT_GT(driver_.sim_calls_("cuptiRangeProfilerPushRange"), 0u);
  ExpectAllAreMadeToFail(driver_);
}

TEST_F(SimulatedV100, EveryLegacyCallIsMadeToFailSomewhere) {
  EXPECT_TRUE(RunUntil([this] { return IsComplete(); }));
  ExpectAllAreMadeToFail(driver_);
}

}  // namespace
}  // namespace rfinject
