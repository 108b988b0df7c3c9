// File: subscribers_test.cc
//
// Several subscribers in one process (CUPTI 13.3): an engine that subscribes and has records of its own, as PyTorch's
// newest does, and one that knows the records of the process only, as Kineto does.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "collector/program_profiler.h"
#include "integration_tests/simulated_gpu/testing/fixture.h"

namespace rfinject {
namespace {

using ::testing::Contains;
using ::testing::Not;

// What torch/profiler/_cuspy does with CUPTI, which it opens by itself.
class Engine {
 public:
  void Find(const std::string& path) {
    void* cupti = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(cupti, nullptr);
    const auto find = [cupti](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(cupti, name));
      ASSERT_NE(*function, nullptr) << name;
    };
    find(&subscribe_, "cuptiSubscribe_v2");
    find(&unsubscribe_, "cuptiUnsubscribe");
    find(&register_, "cuptiActivityRegisterCallbacks_v2");
    find(&enable_, "cuptiActivityEnable_v2");
    find(&disable_, "cuptiActivityDisable_v2");
    find(&flush_, "cuptiActivityFlushAll");
    find(&next_, "cuptiActivityGetNextRecord_v2");
  }
  // Each returns CUPTI's result.
  int Subscribe(bool allows_others) {
    struct {
      CUpti_SubscriberParams old;
      uint8_t allows_others, unused[7];
    } params = {};
    params.old.structSize = sizeof params;
    params.allows_others = allows_others;
    return subscribe_(
        &handle_, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr, &params.old);
  }
  int Start() {
    records_ = 0;
    if (!std::exchange(registered_, true)) {
      if (const int result = register_(handle_, &OnRequest, &OnComplete); result != CUPTI_SUCCESS) return result;
    }
    return enable_(handle_, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr);
  }
  int Stop() {
    const int flushed = flush_(1), disabled = disable_(handle_, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, nullptr);
    return flushed != CUPTI_SUCCESS ? flushed : disabled;
  }
  int Unsubscribe() { return unsubscribe_(handle_); }
  static uint64_t records() { return records_; }

 private:
  static void CUPTIAPI OnRequest(uint8_t** buffer, size_t* size, size_t* max_records, void*) {
    *size = size_t{1} << 20;
    *buffer = static_cast<uint8_t*>(calloc(1, *size));
    *max_records = 0;
  }
  static void CUPTIAPI OnComplete(uint8_t* buffer, size_t, size_t valid, void*) {
    CUpti_Activity* record = nullptr;
    while (next_(handle_, buffer, valid, &record) == CUPTI_SUCCESS) ++records_;
    free(buffer);
  }

  static inline CUpti_SubscriberHandle handle_ = nullptr;
  static inline std::atomic<uint64_t> records_{0};
  static inline CUptiResult (*next_)(CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**) = nullptr;
  bool registered_ = false;
  decltype(&::cuptiSubscribe_v2) subscribe_ = nullptr;
  decltype(&::cuptiUnsubscribe) unsubscribe_ = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_ = nullptr;
  CUptiResult (*register_)(CUpti_SubscriberHandle, cupti::RecordsRequest, cupti::RecordsComplete) = nullptr;
  CUptiResult (*enable_)(CUpti_SubscriberHandle, CUpti_ActivityKind, void*) = nullptr;
  CUptiResult (*disable_)(CUpti_SubscriberHandle, CUpti_ActivityKind, void*) = nullptr;
};

constexpr char kCupti[] = "cupti133/libcupti.so.13";

class Subscribers : public SimulatedGpu {
 protected:
  Subscribers() : SimulatedGpu(kCupti) {}
  void SetUp() override {
    g_program_subscribes.store(true);
    ASSERT_NO_FATAL_FAILURE(SimulatedGpu::SetUp());
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(engine_.Find(std::string(SIM_FOLDER "/") + kCupti));
    ASSERT_NO_FATAL_FAILURE(OpenGuest("libsim_guest.so"));
  }
  void OpenGuest(const std::string& library) {
    void* guest = dlopen((SIM_FOLDER "/" + library).c_str(), RTLD_NOW);
    ASSERT_NE(guest, nullptr) << dlerror();
#define FIND(name)                                                    \
  name##_ = reinterpret_cast<decltype(name##_)>(dlsym(guest, #name)); \
  ASSERT_NE(name##_, nullptr);
    FIND(sim_guest_begin)
    FIND(sim_guest_record)
    FIND(sim_guest_stop)
    FIND(sim_guest_end)
    FIND(sim_guest_domain)
    FIND(sim_guest_records)
    FIND(sim_guest_out_of_time)
    FIND(sim_guest_longest_ns)
#undef FIND
  }
  // Runs steps; returns how many kernels they launched.
  uint64_t Launched(int steps) {
    const uint64_t before = launched_;
    Run(steps);
    return launched_ - before;
  }
  bool HasTimesAndFlop() {
    for (auto& [key, count] : CountSamples()) {
      if (count[kTime] == 0 || count[kFlopFirst + static_cast<uint32_t>(Precision::kFp16Tensor)] == 0) return false;
    }
    return true;
  }
  uint64_t Times() {
    uint64_t times = 0;
    for (auto& [key, count] : CheckSamples()) times += count[kTime];
    return times;
  }

  Engine engine_;
  int (*sim_guest_begin_)() = nullptr;
  int (*sim_guest_record_)(uint64_t (*)()) = nullptr;
  int (*sim_guest_stop_)() = nullptr;
  int (*sim_guest_end_)() = nullptr;
  int (*sim_guest_domain_)() = nullptr;
  uint64_t (*sim_guest_records_)() = nullptr;
  uint64_t (*sim_guest_out_of_time_)() = nullptr;
  uint64_t (*sim_guest_longest_ns_)() = nullptr;
};

class EngineComes : public Subscribers, public ::testing::WithParamInterface<bool> {};

// Before us or after us, it has every record and no error, and we have our times meanwhile.
TEST_P(EngineComes, BesideUsWithoutLoss) {
  settings_.mode = "times";
  if (!GetParam()) Run(5);
  ASSERT_EQ(engine_.Subscribe(true), CUPTI_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(engine_.Start(), CUPTI_SUCCESS);
    const uint64_t launched = Launched(round == 0 ? 5 : 50);
    EXPECT_EQ(engine_.Stop(), CUPTI_SUCCESS);
    EXPECT_EQ(Engine::records(), launched) << round;
    Run(10);
  }
  const uint64_t times = Times();
  EXPECT_GT(times, 0u);
  ASSERT_EQ(engine_.Start(), CUPTI_SUCCESS);
  EXPECT_TRUE(RunUntil([&] { return step_ % 50 == 0 && Times() > times; }));
  EXPECT_EQ(engine_.Stop(), CUPTI_SUCCESS);
  EXPECT_EQ(engine_.Unsubscribe(), CUPTI_SUCCESS);
  Run(50);
  EXPECT_STREQ(driver_.sim_violations_(), "");
  EXPECT_THAT(DiagnosticIds(), Not(Contains("activity-taken")));
}

INSTANTIATE_TEST_SUITE_P(First, EngineComes, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Yes" : "No"); });

// One that allows no others and comes first has CUPTI to itself.
TEST_F(Subscribers, AnEngineThatAllowsNoOthersIsLeftAlone) {
  ASSERT_EQ(engine_.Subscribe(false), CUPTI_SUCCESS);
  ASSERT_EQ(engine_.Start(), CUPTI_SUCCESS);
  EXPECT_EQ(Launched(20), 200u);
  EXPECT_EQ(engine_.Stop(), CUPTI_SUCCESS);
  EXPECT_EQ(Engine::records(), 200u);
  EXPECT_THAT(DiagnosticIds(), ::testing::ElementsAre(::testing::StartsWith("cupti")));
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// Nobody may record kernels while a session of ranges runs, and where one is told in time nobody has to.
TEST_F(Subscribers, NothingOfOursIsInTheWayOfAnEngineThatIsAnnounced) {
  ASSERT_EQ(engine_.Subscribe(true), CUPTI_SUCCESS);
  // In the middle of counting, of sampling and of a window.
  for (const char* call : {"cuptiRangeProfilerStart", "cuptiPmSamplingStart", "cuptiActivityEnable_v2"}) {
    const uint64_t calls = driver_.sim_calls_(call);
    ASSERT_TRUE(RunUntil([&] { return driver_.sim_calls_(call) != calls; })) << call;
    source_->OnProfilerComes();
    ASSERT_EQ(engine_.Start(), CUPTI_SUCCESS) << call;
    const uint64_t ranges = driver_.sim_calls_("cuptiRangeProfilerStart");
    const uint64_t launched = Launched(40);
    EXPECT_EQ(driver_.sim_calls_("cuptiRangeProfilerStart"), ranges);
    EXPECT_EQ(engine_.Stop(), CUPTI_SUCCESS);
    EXPECT_EQ(Engine::records(), launched) << call;
    ASSERT_STREQ(driver_.sim_violations_(), "") << call;
  }
  EXPECT_TRUE(RunUntil([&] { return step_ % 50 == 0 && HasTimesAndFlop(); }));
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// It is refused where it comes second, and we go on.
TEST_F(Subscribers, AnEngineThatAllowsNoOthersIsRefusedBesideUs) {
  Run(5);
  EXPECT_EQ(engine_.Subscribe(false), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_TRUE(RunUntil([&] { return step_ % 50 == 0 && HasTimesAndFlop(); }));
  CheckSamples();
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

class GuestComes : public Subscribers, public ::testing::WithParamInterface<bool> {};

// Kineto knows the records of the process, by its own clock, and may subscribe or not.
TEST_P(GuestComes, ToItsRecordsByItsOwnClock) {
  settings_.mode = "times";
  Run(5);
  if (GetParam()) {
    ASSERT_EQ(sim_guest_begin_(), CUPTI_SUCCESS);
    EXPECT_EQ(sim_guest_domain_(), CUPTI_ERROR_NOT_SUPPORTED);
  }
  ASSERT_EQ(engine_.Subscribe(true), CUPTI_SUCCESS);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(sim_guest_record_(driver_.sim_now_), CUPTI_SUCCESS);
    ASSERT_EQ(engine_.Start(), CUPTI_SUCCESS);
    const uint64_t launched = Launched(30);
    EXPECT_EQ(sim_guest_stop_(), CUPTI_SUCCESS);
    EXPECT_EQ(engine_.Stop(), CUPTI_SUCCESS);
    EXPECT_EQ(sim_guest_records_(), launched);
    EXPECT_EQ(Engine::records(), launched);
    EXPECT_EQ(sim_guest_out_of_time_(), 0u);
    EXPECT_NEAR(static_cast<double>(sim_guest_longest_ns_()), 100'000, 200);
    Run(20);
  }
  if (GetParam()) {
    EXPECT_EQ(sim_guest_end_(), CUPTI_SUCCESS);
  }
  Run(50);
  EXPECT_GT(Times(), 0u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

INSTANTIATE_TEST_SUITE_P(Subscribed, GuestComes, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Yes" : "No"); });

// One that does not find the functions that we export, since it asked dlsym or we were not preloaded.
class Stranger : public Subscribers {
 protected:
  void SetUp() override {
    g_program_subscribes.store(false);
    ASSERT_NO_FATAL_FAILURE(SimulatedGpu::SetUp());
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(OpenGuest("libsim_stranger.so"));
  }
};

TEST_F(Stranger, IsRefusedAsASubscriberAndGetsItsRecords) {
  Run(5);
  EXPECT_EQ(sim_guest_begin_(), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  source_->OnProfilerComes();  // the injector sees it all the same
  ASSERT_EQ(sim_guest_record_(driver_.sim_now_), CUPTI_SUCCESS);
  const uint64_t launched = Launched(30);
  EXPECT_EQ(sim_guest_stop_(), CUPTI_SUCCESS);
  EXPECT_EQ(sim_guest_records_(), launched);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// Without such an engine records stay those of the process, as Kineto has them.
TEST_F(Subscribers, RecordsAreTheProcesssWhereNoEngineCanCome) {
  g_program_subscribes.store(false);
  Run(100);
  EXPECT_GT(driver_.sim_calls_("cuptiActivityEnable"), 0u);
  EXPECT_EQ(driver_.sim_calls_("cuptiActivityEnable_v2"), 0u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

// Where Kineto had records of the process first, ours are, too.
TEST_F(Subscribers, RecordsAreTheProcesssWhereTheProgramHadThemFirst) {
  ASSERT_EQ(sim_guest_record_(driver_.sim_now_), CUPTI_SUCCESS);
  EXPECT_EQ(sim_guest_stop_(), CUPTI_SUCCESS);
  Run(100);
  EXPECT_GT(driver_.sim_calls_("cuptiActivityEnable"), 1u);
  EXPECT_EQ(driver_.sim_calls_("cuptiActivityEnable_v2"), 0u);
  EXPECT_STREQ(driver_.sim_violations_(), "");
}

}  // namespace
}  // namespace rfinject
