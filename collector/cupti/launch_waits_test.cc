#include "collector/cupti/launch_waits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "collector/cupti/tick_clock.h"
#include "collector/step_waits.h"
#include "collector/sync.h"

namespace rfinject::cupti {
namespace {

// Calls of some 5 us, a few of which are much longer, as on a machine that does other things too.
class Calls {
 public:
  int64_t Next() {
    const double longer = random_() % 50 == 0 ? 12'000 : 0;
    return static_cast<int64_t>(5000 + noise_(random_) + longer);
  }

 private:
  std::minstd_rand random_{1};
  std::exponential_distribution<double> noise_{1.0 / 800};
};

// The waits of 1,000 launches that the queue keeps for `blocked_ns` each.
double WaitsOf(UsualCall* usual, Calls* calls, int64_t blocked_ns, bool free, double* took_ns = nullptr) {
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const int64_t ns = calls->Next() + blocked_ns;
    sum += usual->Add(ns, free);
    if (took_ns != nullptr) *took_ns += static_cast<double>(ns);
  }
  return sum;
}

TEST(UsualCall, NothingIsWaitedForWhereNothingKeepsLaunches) {
  UsualCall usual;
  Calls calls;
  usual.Add(3'000'000, true);  // loads the library
  WaitsOf(&usual, &calls, 0, true);
  double took = 0;
  const double waits = WaitsOf(&usual, &calls, 0, true, &took);
  EXPECT_LT(std::abs(waits), 0.05 * took);
}

// Also where each waits for less than a call takes, and for long.
TEST(UsualCall, WhatAFullQueueKeepsALaunchIsTheWait) {
  for (const int64_t blocked : {4'000, 40'000, 400'000}) {
    UsualCall usual;
    Calls calls;
    WaitsOf(&usual, &calls, 0, true);
    for (int step = 0; step < 20; ++step) {
      EXPECT_NEAR(WaitsOf(&usual, &calls, blocked, false), 1000.0 * static_cast<double>(blocked), 1000 * 400.0);
    }
  }
}

// The waits of the last 1,000 of some launches of which every second waits for 9 us, which ones is not known. They
// are quicker by so much than those before, which nothing kept.
double LastWaitsOf(int thousands, int64_t quicker_ns) {
  UsualCall usual;
  Calls calls;
  WaitsOf(&usual, &calls, 0, true);
  double waits = 0;
  for (int i = 0; i < thousands * 1000; ++i) {
    if (i % 1000 == 0) waits = 0;
    waits += usual.Add(calls.Next() - quicker_ns + (i % 2) * 9'000, false);
  }
  return waits;
}

// A short kernel before it makes room at once, so that a launch does not wait.
TEST(UsualCall, LaunchesThatDoNotWaitAmongThoseThatDoChangeNothing) {
  EXPECT_NEAR(LastWaitsOf(50, 0), 500 * 9'000, 1000 * 350.0);
}

TEST(UsualCall, LaunchesThatBecomeQuickerAreSeenAlsoInAFullQueue) {
  EXPECT_NEAR(LastWaitsOf(10, 2'000), 500 * 9'000, 1000 * 500.0);
}

TEST(UsualCall, AProgramThatWasBlockedFromTheBeginningIsUnderstoodWhenOneCallIsNot) {
  UsualCall usual;
  Calls calls;
  WaitsOf(&usual, &calls, 70'000, false);
  usual.Add(5'300, false);
  EXPECT_NEAR(WaitsOf(&usual, &calls, 70'000, false), 1000 * 70'000, 1000 * 1000.0);
}

TEST(UsualCall, CallsThatBecomeSlowerAreUsualAgain) {
  UsualCall usual;
  Calls calls;
  WaitsOf(&usual, &calls, 0, true);
  for (int i = 0; i < 3; ++i) WaitsOf(&usual, &calls, 20'000, true);
  double took = 0;
  EXPECT_LT(WaitsOf(&usual, &calls, 20'000, true, &took), 0.05 * took);
}

void Pass(int64_t ns) {
  const int64_t end = MonotonicNs() + ns;
  while (MonotonicNs() < end) {
  }
}

// A launch that took so long.
void LaunchFor(int64_t ns, bool of_backward = false, bool done = true) {
  BeginLaunchWait(CallKind::kKernel, of_backward);
  Pass(ns);
  EndLaunchWait(done);
}

TEST(TickClock, TicksAreTheSystemsTime) {
  TickClock::Compare();
  Pass(20'000'000);
  TickClock::Compare();
  const int64_t before = MonotonicNs(), begin = TickClock::Now(), after = MonotonicNs();
  Pass(50'000'000);
  const int64_t least = MonotonicNs() - after, end = TickClock::Now(), most = MonotonicNs() - before;
  const auto took = static_cast<double>(end - begin) * TickClock::TickNs();
  EXPECT_GT(took, 0.999 * static_cast<double>(least));
  EXPECT_LT(took, 1.001 * static_cast<double>(most));
}

TEST(LaunchWaits, AreWaitsOfTheStepAlsoOfItsBackward) {
  TickClock::Compare();
  Pass(5'000'000);
  TickClock::Compare();
  for (int i = 0; i < 2000; ++i) LaunchFor(2'000);
  (void)TakeWaits();
  for (const bool of_backward : {false, true}) {
    LaunchFor(3'000'000, of_backward);
    const uint64_t waited = TakeWaits().gpu_ns;
    EXPECT_GE(waited, 2'900'000u);
    EXPECT_EQ(TakeWaits().gpu_ns, 0u);
  }
  LaunchFor(3'000'000, false, /*done=*/false);
  EndLaunchWait(true);  // its beginning was not seen
  EXPECT_EQ(TakeWaits().gpu_ns, 0u);
}

// Where the GPU keeps up nothing waits, and few launches are looked at; a queue that fills up is seen soon.
TEST(LaunchWaits, AreSeenAlsoWhereTheGpuKeptUpBefore) {
  TickClock::Compare();
  Pass(5'000'000);
  NoteLaunchesBehind(3);
  for (int i = 0; i < 2000; ++i) LaunchFor(2'000);
  (void)TakeWaits();
  for (int i = 0; i < 150; ++i) LaunchFor(200'000);  // eight of these at least are looked at
  (void)TakeWaits();
  for (int i = 0; i < 20; ++i) LaunchFor(200'000);
  EXPECT_GE(TakeWaits().gpu_ns, 20u * 190'000);
}

}  // namespace
}  // namespace rfinject::cupti
