// File: other_tools_test.cc
//
// Other tools that want the same of CUPTI: another subscriber, one that keeps the counters busy, the program's own
// profiler.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "collector/program_profiler.h"
#include "integration_tests/simulated_gpu/testing/fixture.h"
#include "proto/wire/conditions.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::Not;

TEST_F(SimulatedGpu, TheHolderOfTheSubscriptionIsNamed) {
  driver_.sim_fail_("cuptiSubscribe_v2", 39, 1);
  Run(5);
  ASSERT_EQ(recorder_.diagnostics().size(), 1u);
  EXPECT_EQ(recorder_.diagnostics()[0].id, "cupti-subscriber");
  EXPECT_THAT(recorder_.diagnostics()[0].text, ::testing::HasSubstr("CUPTI for Simulated Tool"));
  EXPECT_EQ(driver_.sim_calls_("cuptiActivityRegisterCallbacks"), 0u);
}

class Busy : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {};

TEST_P(Busy, CountersAreTakenWhenTheyAreFree) {
  driver_.sim_fail_(GetParam(), CUPTI_ERROR_HARDWARE_BUSY, 1);
  EXPECT_TRUE(RunUntil([this] {  // times go on
    return recorder_.HasDiagnostic("counters-busy") && CountSamples()[{"conv", 1, Phase::kForward}][kTime] >= 3;
  }));
  EXPECT_LE(driver_.sim_calls_(GetParam()), 10u);  // not at every step
  driver_.sim_fail_(GetParam(), 0, 0);
  // As soon as it is due.
  constexpr uint32_t kTf32 = kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor);
  EXPECT_TRUE(RunUntil([&] { return CountSamples()[{"conv", 1, Phase::kForward}][kTf32] > 0; }));
  source_->Stop();
  std::vector<std::string> ids = DiagnosticIds();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "counters-busy"), 1);
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

INSTANTIATE_TEST_SUITE_P(Calls, Busy,
                         ::testing::Values("cuptiProfilerGetCounterAvailability", "cuptiRangeProfilerEnable",
                                           "cuptiRangeProfilerStart"),
                         [](const auto& info) { return std::string(info.param); });

// Somebody who holds the counters may leave zeros behind instead of an error (DCGM issue 56, dynolog issue 99).
class Zeros : public SimulatedGpu, public ::testing::WithParamInterface<const char*> {
 protected:
  Zeros() : SimulatedGpu(GetParam(), GetParam() == std::string("cupti124/libcupti.so.12") ? "GV100" : "GA100") {}
};

TEST_P(Zeros, AreNotMeasuredUntilSomethingIsCounted) {
  driver_.sim_set_zeros_(1);
  EXPECT_TRUE(RunUntil([this] { return recorder_.HasDiagnostic("counters-zero"); }));
  // On a machine with much to do samples come late, and FLOP do not wait for them longer than this.
  if (step_ > 128) return;
  Run(200);
  for (auto& [key, count] : CountSamples()) {
    if (std::get<0>(key) != "conv") continue;
    EXPECT_EQ(count[kDramBytes], 0u);
    EXPECT_EQ(count[kFlopFirst + static_cast<uint32_t>(Precision::kTf32Tensor)], 0u);
    EXPECT_EQ(count[kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)], 0u);
  }
  driver_.sim_set_zeros_(0);
  EXPECT_TRUE(RunUntil([this] { return step_ % 10 == 0 && IsComplete(); }));
  CheckSamples();
  const std::vector<std::string> ids = DiagnosticIds();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "counters-zero"), 1);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

INSTANTIATE_TEST_SUITE_P(Chips, Zeros, ::testing::Values("cupti13/libcupti.so.13", "cupti124/libcupti.so.12"),
                         [](const auto& info) { return std::string(info.index == 0 ? "GA100" : "GV100"); });

// torch.profiler: takes CUPTI's activity records without asking, and expects every record.
std::atomic<bool> g_profiles{false};
std::atomic<uint64_t> g_profiled_records{0};
CUptiResult (*g_next_record)(uint8_t*, size_t, CUpti_Activity**) = nullptr;

void CUPTIAPI ProfilerRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(calloc(1, *size));
  *max_records = 0;
}
void CUPTIAPI ProfilerComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (g_next_record(buffer, valid, &record) == CUPTI_SUCCESS) ++g_profiled_records;
}

class OtherTool : public SimulatedGpu {
 protected:
  void Find() {
    void* cupti = dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(cupti, nullptr);
    register_ = reinterpret_cast<decltype(register_)>(dlsym(cupti, "cuptiActivityRegisterCallbacks"));
    enable_ = reinterpret_cast<decltype(enable_)>(dlsym(cupti, "cuptiActivityEnable"));
    disable_ = reinterpret_cast<decltype(disable_)>(dlsym(cupti, "cuptiActivityDisable"));
    flush_ = reinterpret_cast<decltype(flush_)>(dlsym(cupti, "cuptiActivityFlushAll"));
    g_next_record = reinterpret_cast<decltype(g_next_record)>(dlsym(cupti, "cuptiActivityGetNextRecord"));
  }
  // Runs steps until a window of ours is open.
  void RunIntoWindow() {
    for (bool open = false; !open;) {
      const uint64_t enabled = driver_.sim_calls_("cuptiActivityEnable");
      Step();
      open = driver_.sim_calls_("cuptiActivityEnable") != enabled;
      ASSERT_LT(step_, 20'000u);
    }
  }
  void StartProfiler() {
    g_profiled_records = 0;
    register_(&ProfilerRequest, &ProfilerComplete);
    enable_(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  void StopProfiler() {
    flush_(1);
    disable_(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  uint64_t Times() {
    uint64_t times = 0;
    for (auto& [key, count] : CheckSamples()) times += count[kTime];
    return times;
  }
  decltype(&cuptiActivityRegisterCallbacks) register_ = nullptr;
  decltype(&cuptiActivityEnable) enable_ = nullptr;
  decltype(&cuptiActivityDisable) disable_ = nullptr;
  decltype(&cuptiActivityFlushAll) flush_ = nullptr;
};

// Three in a row are no accident.
TEST_F(OtherTool, ThatComesIntoEveryWindowHasTheRecordsToItselfInTheEnd) {
  settings_.mode = "times";  // nobody may open a session of ranges while kernels are recorded
  Find();
  for (int round = 0; round < 3; ++round) {
    ASSERT_FALSE(recorder_.HasDiagnostic("activity-taken"));
    RunIntoWindow();
    StartProfiler();
    Run(20);
    StopProfiler();
  }
  Run(100);
  EXPECT_TRUE(recorder_.HasDiagnostic("activity-taken"));
  const uint64_t enabled = driver_.sim_calls_("cuptiActivityEnable");
  Run(300);
  EXPECT_EQ(driver_.sim_calls_("cuptiActivityEnable"), enabled);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

class Profiled : public OtherTool, public ::testing::WithParamInterface<bool> {};

// If `GetParam()` is true, the injector tells that it runs; otherwise the source must see that itself.
TEST_P(Profiled, TheProgramsProfilerGetsEveryRecordAndOursGoOnAfterwards) {
  if (GetParam()) g_program_profiles = +[]() noexcept { return g_profiles.load(); };
  Find();
  // Where the injector tells, it may come in the middle of one of our windows, else at its beginning or before.
  if (!GetParam()) settings_.mode = "times";  // nobody may open a session of ranges while kernels are recorded
  for (int round = 0; round < (GetParam() ? 3 : 2); ++round) {
    !GetParam() && round == 0 ? Run(2) : RunIntoWindow();
    if (HasFatalFailure()) return;
    if (GetParam()) Launch(kernels_[0], 1, Phase::kForward);
    StartProfiler();
    g_profiles = true;
    const uint64_t launched = launched_;
    Run(20);
    const uint64_t wanted = launched_ - launched;
    StopProfiler();
    g_profiles = false;
    EXPECT_GE(g_profiled_records, wanted) << round;
    EXPECT_LE(g_profiled_records, wanted + 1) << round;  // and the launch before it, which our buffer held
  }
  const uint64_t times = Times();
  EXPECT_TRUE(RunUntil([&] { return step_ % 50 == 0 && Times() > times; }));
  EXPECT_STREQ(driver_.sim_violations_(), "");
  std::vector<std::string> ids = DiagnosticIds();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "program-profiler"), GetParam() ? 1 : 0);
  EXPECT_THAT(ids, Not(Contains("activity-taken")));
}

INSTANTIATE_TEST_SUITE_P(Announced, Profiled, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Yes" : "No"); });

}  // namespace
}  // namespace rfinject
