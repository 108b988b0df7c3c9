#include "collector/arming/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "collector/arming/backoff.h"
#include "collector/arming/simulation.h"
#include "collector/testing/failing_memory.h"

namespace rfinject::arming {
namespace {

// Under a sanitizer fewer runs of the same kind are looked at. The statistics are judged without one, by the same
// test.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

using R = GroupRole;
const std::vector<GroupRole> kGa100 = {R::kHardware, R::kHardware, R::kOnce, R::kGuard, R::kGuard};

TEST(Moments, AgreeWithTheTextbook) {
  Moments moments;
  for (double value : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) moments.Add(value);
  EXPECT_DOUBLE_EQ(moments.mean, 5);
  EXPECT_NEAR(moments.variance(), 32.0 / 7, 1e-12);
  EXPECT_NEAR(HalfWidth95(moments), 2.365 * std::sqrt(32.0 / 7 / 8), 1e-9);
}

TEST(Moments, OneSampleHasNoInterval) {
  Moments moments;
  moments.Add(5);
  EXPECT_TRUE(std::isinf(HalfWidth95(moments)));
}

TEST(Moments, StudentsTGoesOverIntoItsExpansion) {
  const auto student = [](double (*half_width)(const Moments&) noexcept, uint32_t degrees) {
    return half_width({.n = degrees + 1, .mean = 0, .m2 = double(degrees)}) * std::sqrt(degrees + 1.0);
  };
  EXPECT_NEAR(student(&HalfWidth95, 30), 2.042, 1e-9);
  EXPECT_NEAR(student(&HalfWidth95, 31), 2.0395, 1e-3);
  EXPECT_NEAR(student(&HalfWidth95, 120), 1.9799, 1e-3);
  EXPECT_NEAR(student(&HalfWidth99, 60), 2.6603, 1e-3);
}

// The caller then measures no more; the program goes on.
TEST(Policy, SaysThatMemoryRanOutAndCanGoOn) {
  Options options;
  options.warm_up_steps = 0;
  Policy policy(options, kGa100);
  const int failed = rfinject::testing::FailEachAllocation([&] {
    policy.OnNewKey(2);
    policy.OnTime(0, 1000, 1);
    policy.OnCounted(2, 1);
    policy.End(options.warm_up_steps + 100, {.action = Action::kTimes}, 1'000'000, true);
  });
  EXPECT_GE(failed, 3);  // the keys, what is counted of each, and the order of the heavy ones
  EXPECT_EQ(policy.key_count(), 3u);
  for (uint32_t key = 0; key < 3; ++key) EXPECT_EQ(policy.key(key).counted.size(), kGa100.size());
}

TEST(Schedule, NothingDuringWarmUpThenEveryGroupOnceInHalfOfTheSteps) {
  Options options;
  Schedule schedule(options, kGa100);
  for (uint64_t step = 0; step < options.warm_up_steps; ++step) EXPECT_EQ(schedule.At(step, 0), Decision{});
  std::vector<uint32_t> groups;
  uint64_t times = 0;
  for (uint64_t step = options.warm_up_steps; step < schedule.burst_end(); ++step) {
    const Decision decision = schedule.At(step, 0);
    times += decision.action == Action::kTimes;
    if (decision.action == Action::kCounters) groups.push_back(decision.group);
  }
  EXPECT_THAT(groups, ::testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(times, kGa100.size());
  EXPECT_EQ(schedule.burst_end() - schedule.burst_begin(), 4 * kGa100.size());
}

// Two optimizers in turn, every sixteenth step longer, an evaluation every hundred steps: whatever a program repeats,
// armed steps meet all of it alike, at every level, and so does each group alone.
TEST(Schedule, NoRhythmOfTheProgramMeetsTheArmedStepsAtOnePlaceOnly) {
  const Schedule schedule({}, kGa100);
  constexpr size_t kNumbers = 1 + 5;  // of times, and of each group
  for (const uint32_t level : {0u, 1u, 4u}) {
    std::vector<std::vector<uint64_t>> armed(kNumbers);
    for (uint64_t step = schedule.burst_end(); step < 2'000'000; ++step) {
      const Decision decision = schedule.At(step, level);
      if (decision.action == Action::kNone) continue;
      armed[decision.action == Action::kTimes ? 0 : 1 + decision.group].push_back(step);
    }
    for (const uint64_t period : {2, 4, 5, 10, 16, 20, 25, 50, 100}) {
      for (size_t which = 0; which < kNumbers; ++which) {
        // Pearson's chi-squared: period - 1 degrees of freedom, and six standard deviations above their mean.
        std::vector<double> met(period);
        for (const uint64_t step : armed[which]) ++met[step % period];
        const double expected = static_cast<double>(armed[which].size()) / static_cast<double>(period);
        double squares = 0;
        for (const double count : met) squares += (count - expected) * (count - expected) / expected;
        const auto degrees = static_cast<double>(period - 1);
        EXPECT_LT(squares, degrees + 6 * std::sqrt(2 * degrees))
            << "period " << period << ", level " << level << ", of " << which;
        EXPECT_GT(armed[which].size(), 100u) << "level " << level << ", of " << which;
      }
    }
  }
}

TEST(Schedule, ASlotHasOneStepOfEachAndTimesDoNotFollowCounters) {
  for (const double overhead : {0.5, 0.1, 0.01}) {
    Options options;
    options.overhead = overhead;
    const Schedule schedule(options, kGa100);
    for (uint64_t slot = schedule.burst_end(); slot < schedule.burst_end() + 2000; ++slot) {
      int times = 0, counters = 0;
      Action before = Action::kNone;
      for (uint64_t i = 0; i < schedule.spacing(); ++i) {
        const Action action = schedule.At(slot * schedule.spacing() + i, 0).action;
        times += action == Action::kTimes;
        counters += action == Action::kCounters;
        if (schedule.spacing() > 2) {
          ASSERT_FALSE(before == Action::kCounters && action == Action::kTimes) << slot;
        }
        before = action;
      }
      ASSERT_EQ(times, 1);
      ASSERT_EQ(counters, 1);
    }
  }
}

TEST(Schedule, NeverMoreThanTheBudgetsShareOnceTheFirstRotationIsPaid) {
  for (double overhead : {0.002, 0.01, 0.05}) {
    Options options;
    options.overhead = overhead;
    Schedule schedule(options, kGa100);
    uint64_t armed = 0;
    for (uint64_t step = 0; step < 20000; ++step) {
      armed += schedule.At(step, 0).action == Action::kCounters;
      uint64_t allowed = std::max<uint64_t>(schedule.burst_armed(),
                                            static_cast<uint64_t>(overhead * static_cast<double>(step + 1)) + 1);
      ASSERT_LE(armed, allowed) << "step " << step << " at " << overhead;
    }
  }
}

TEST(Schedule, EveryLevelVisitsEveryGroupAndIsNestedInTheLevelBelow) {
  Schedule schedule({}, kGa100);
  for (uint32_t level = 0; level < 6; ++level) {
    std::set<uint32_t> groups;
    for (uint64_t step = schedule.burst_end(); step < 60000; ++step) {
      Decision decision = schedule.At(step, level);
      if (decision.action == Action::kNone) continue;
      if (level > 0) {
        ASSERT_EQ(schedule.At(step, level - 1), decision) << step;
      }
      if (decision.action == Action::kCounters) groups.insert(decision.group);
    }
    EXPECT_EQ(groups.size(), kGa100.size()) << "level " << level;
  }
}

TEST(Schedule, AWindowGetsWhatAnIntervalNeedsSpreadOverIt) {
  Options options;
  options.window_steps = 200;
  Schedule schedule(options, {R::kHardware, R::kOnce});
  int once = 0;
  std::vector<uint64_t> hardware;
  for (uint64_t step = 0; step < 200; ++step) {
    Decision decision = schedule.At(step, 0);
    if (decision.action != Action::kCounters) continue;
    EXPECT_NE(schedule.At(step + 1, 0).action, Action::kTimes) << step;
    decision.group == 0 ? hardware.push_back(step) : static_cast<void>(++once);
  }
  EXPECT_GE(hardware.size(), options.min_samples);
  EXPECT_EQ(once, 1);
  EXPECT_GT(hardware.back(), 133u);
  EXPECT_LT(hardware.front(), 100u);
}

// How often the textbook's interval of the mean of `sampled` steps holds the mean of all `span`, where a step keeps
// `keeps` of the one before.
double CoverageOfWindow(const std::vector<uint64_t>& sampled, uint64_t first, uint64_t span, double keeps) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  constexpr int kRuns = 3000;
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values(span);
    double state = normal(random), all = 0;
    for (double& value : values) {
      value = state;
      all += state / static_cast<double>(span);
      state = keeps * state + std::sqrt(1 - keeps * keeps) * normal(random);
    }
    Moments moments;
    for (const uint64_t step : sampled) moments.Add(values[step - first]);
    const double rest = 1 - static_cast<double>(sampled.size()) / static_cast<double>(span);
    covered += std::abs(moments.mean - all) <= HalfWidth95(moments) * std::sqrt(rest);
  }
  return static_cast<double>(covered) / kRuns;
}

TEST(Schedule, TheIntervalOfADrawnWindowHoldsForStepsThatRememberOneAnother) {
  Options options;
  options.warm_up_steps = 2;
  for (const uint64_t window : {50u, 100u}) {
    options.window_steps = window;
    const std::vector<GroupRole> roles = {R::kHardware, R::kHardware, R::kOnce, R::kGuard};
    const Schedule schedule(options, roles);
    std::vector<uint64_t> times, bytes;
    for (uint64_t step = 0; step < schedule.burst_end(); ++step) {
      const Decision decision = schedule.At(step, 0);
      if (decision.action == Action::kTimes) times.push_back(step);
      if (decision.action == Action::kCounters && roles[decision.group] != R::kOnce) bytes.push_back(step);
    }
    ASSERT_GE(bytes.size(), options.min_samples);
    for (const double keeps : {0.0, 0.7, 0.93}) {
      for (const auto& sampled : {times, bytes}) {
        EXPECT_NEAR(
            CoverageOfWindow(sampled, schedule.burst_begin(), schedule.burst_end() - schedule.burst_begin(), keeps),
            0.95, 0.04)
            << window << " steps, " << keeps;
      }
    }
  }
}

// What changes before the first sampled step of a window or behind the last one is not seen.
TEST(Schedule, AWindowIsSampledUpToItsEnds) {
  const std::vector<GroupRole> roles = {R::kHardware, R::kHardware, R::kOnce, R::kGuard};
  Options options;
  options.warm_up_steps = 2;
  for (const uint64_t window : {50u, 100u, 400u}) {
    options.window_steps = window;
    for (options.seed = 1; options.seed <= (kSlow ? 2 : 10); ++options.seed) {
      const Schedule schedule(options, roles);
      std::vector<uint64_t> sampled;
      for (uint64_t step = 0; step < schedule.burst_end(); ++step) {
        const Decision decision = schedule.At(step, 0);
        const bool counts_bytes = decision.action == Action::kCounters && roles[decision.group] != R::kOnce;
        if (decision.action == Action::kTimes || counts_bytes) sampled.push_back(step);
      }
      const uint64_t half_a_distance = (schedule.burst_end() - schedule.burst_begin()) / (2 * sampled.size());
      EXPECT_LE(sampled.front(), schedule.burst_begin() + half_a_distance) << window << ", " << options.seed;
      EXPECT_GE(sampled.back() + 1 + half_a_distance, schedule.burst_end()) << window << ", " << options.seed;
    }
  }
}

// Drives a policy with the same values in each step.
struct Driver {
  Policy policy;
  std::vector<GroupRole> roles;
  std::vector<double> times;  // by key; 0: not launched
  uint64_t step_ns = 1'000'000, armed_ns = 2'000'000;
  uint64_t longer_every = 0;  // one step in so many takes half as long again; 0: none
  uint64_t step = 0;
  std::set<uint64_t> armed;

  Driver(const Options& options, std::vector<GroupRole> group_roles)
      : policy(options, group_roles), roles(std::move(group_roles)) {}

  Decision Step(bool valid = true) {
    Decision decision = policy.Begin(step);
    for (uint32_t key = 0; key < times.size(); ++key) {
      if (times[key] == 0 || !valid) continue;
      if (decision.action == Action::kTimes) policy.OnTime(key, times[key], 1);
      if (decision.action == Action::kCounters) {
        if (roles[decision.group] != R::kOnce) policy.OnBytes(key, 1e6);
        policy.OnCounted(key, decision.group);
      }
    }
    if (decision.action == Action::kCounters) armed.insert(step);
    const uint64_t own_ns = longer_every > 0 && step % longer_every == 0 ? step_ns * 3 / 2 : step_ns;
    policy.End(step++, decision, decision.action == Action::kCounters ? armed_ns : own_ns, valid);
    return decision;
  }
  void Run(uint64_t steps) {
    while (steps-- > 0) Step();
  }
};

TEST(Policy, ConvergesAndThenCountsNothing) {
  Driver driver({}, kGa100);
  driver.times = {1000, 500, 1};
  driver.armed_ns = 1'010'000;
  driver.Run(3000);
  EXPECT_TRUE(driver.policy.converged());
  const uint64_t armed = driver.policy.armed_steps(), timed = driver.policy.timed_steps();
  driver.Run(50'000);
  EXPECT_EQ(driver.policy.armed_steps(), armed);
  // Times are still taken, so that a clock that changes later is seen, but ever more seldom.
  const uint64_t later = driver.policy.timed_steps();
  EXPECT_GT(later, timed);
  driver.Run(50'000);
  EXPECT_GT(driver.policy.timed_steps(), later);
  EXPECT_LE(driver.policy.timed_steps() - later, 20u);
  EXPECT_LE(driver.policy.timed_steps(), timed + 200);
}

TEST(Policy, ANewHeavyKeyWakesItUpAndALightOneOnlyIsTimed) {
  Driver driver({}, kGa100);
  driver.times = {1000, 500};
  driver.armed_ns = 1'010'000;
  driver.Run(3000);
  ASSERT_TRUE(driver.policy.converged());
  uint64_t armed = driver.policy.armed_steps();

  driver.times.push_back(0.01);  // light
  driver.policy.OnNewKey(2);
  EXPECT_FALSE(driver.policy.converged());
  driver.Run(1000);
  EXPECT_TRUE(driver.policy.converged());
  EXPECT_EQ(driver.policy.armed_steps(), armed);
  EXPECT_GE(driver.policy.key(2).time.n, 1u);

  driver.times.push_back(20000);  // heavy
  driver.policy.OnNewKey(3);
  driver.Run(4000);
  EXPECT_TRUE(driver.policy.converged());
  EXPECT_GT(driver.policy.armed_steps(), armed);
  for (uint32_t group = 0; group < 3; ++group) EXPECT_GE(driver.policy.key(3).counted[group], 1) << group;
}

TEST(Policy, StepsThatDifferMuchAreSampledLongerThanAFewLuckySamplesSay) {
  Driver driver({}, kGa100);
  driver.times = {1000};
  driver.Run(3000);
  const uint32_t alike = driver.policy.key(0).time.n;
  // The samples are all alike, by chance; the clock says that every fifth step is half as long again.
  Driver rhythm({}, kGa100);
  rhythm.times = {1000};
  rhythm.longer_every = 5;
  rhythm.Run(6000);
  EXPECT_GT(rhythm.policy.key(0).time.n, alike);
  EXPECT_GE(rhythm.policy.key(0).time.n, Options{}.max_samples);
}

TEST(Policy, AKeyThatNeverComesBackDoesNotKeepItAwake) {
  Driver driver({}, kGa100);
  driver.times = {1000};
  driver.armed_ns = 1'010'000;
  driver.Run(3000);
  ASSERT_TRUE(driver.policy.converged());
  const uint64_t armed = driver.policy.armed_steps();
  driver.policy.OnNewKey(1);  // an evaluation's, once
  // It is looked for in as many timed steps as would be wanted of any key, and no counter is armed for it.
  driver.Run(3200);
  EXPECT_TRUE(driver.policy.converged());
  EXPECT_EQ(driver.policy.armed_steps(), armed);
}

TEST(Policy, KeepsTheBudgetWhateverAnArmedStepCosts) {
  for (uint64_t factor : {1, 2, 10, 100}) {
    Driver driver({}, kGa100);
    for (int i = 0; i < 20; ++i) driver.times.push_back(1000 + i);
    driver.armed_ns = driver.step_ns * (1 + factor);
    driver.Run(100 * factor * 5 + 1000);  // the first rotation is paid for by then
    for (int i = 0; i < 200; ++i) {
      driver.Run(37);
      ASSERT_LE(driver.policy.measured_overhead(), 0.0101) << factor;
    }
  }
}

TEST(Policy, RanksArmNothingOutsideOneSchedule) {
  // Two ranks: the second's armed steps cost more, and one of its kernels never settles.
  Driver a({}, kGa100), b({}, kGa100);
  a.times = {1000, 900};
  b.times = {1000, 900, 800};
  b.armed_ns = 3'000'000;
  Schedule schedule({}, kGa100);
  for (uint64_t step = 0; step < 20000; ++step) {
    b.times[2] = 800 * (1 + static_cast<double>(step % 7));
    Decision da = a.Step(), db = b.Step();
    for (const Decision& decision : {da, db}) {
      if (decision.action == Action::kNone) continue;
      Decision slot = schedule.At(step, 0);
      ASSERT_EQ(slot.action, decision.action) << step;
      // Only hardware groups stand in for others.
      if (decision.action == Action::kCounters && kGa100[decision.group] != R::kHardware) {
        ASSERT_EQ(slot.group, decision.group);
      }
    }
  }
  // What the job as a whole pays is little more than the rank that arms most.
  std::set<uint64_t> both = a.armed;
  both.insert(b.armed.begin(), b.armed.end());
  EXPECT_LE(2 * both.size(), 3 * std::max(a.armed.size(), b.armed.size()) + 2);
}

TEST(Policy, AnInvalidStepCountsAsCostButNotAsSamples) {
  Driver driver({}, {R::kHardware});
  driver.times = {1000};
  while (driver.Step(false).action != Action::kCounters) {
  }
  driver.Step(false);
  EXPECT_EQ(driver.policy.key_count(), 0u);
  EXPECT_EQ(driver.policy.armed_steps(), 1u);
  EXPECT_GT(driver.policy.measured_overhead(), 0);
}

TEST(Policy, WithoutTimesEveryKeyCounts) {
  Options options;
  options.has_times = false;
  Driver driver(options, {R::kHardware, R::kOnce});
  driver.times = {1000, 1};
  driver.armed_ns = 1'010'000;
  driver.Run(4000);
  EXPECT_TRUE(driver.policy.converged());
  EXPECT_EQ(driver.policy.timed_steps(), 0u);
  EXPECT_GE(driver.policy.key(1).bytes.n, 3u);
  EXPECT_GE(driver.policy.key(1).counted[1], 1);
}

TEST(Policy, WithoutGroupsOnlyTimesAreTaken) {
  Driver driver({}, {});
  driver.times = {1000};
  driver.Run(5000);
  EXPECT_TRUE(driver.policy.converged());
  EXPECT_GE(driver.policy.timed_steps(), 3u);
  EXPECT_EQ(driver.policy.armed_steps(), 0u);
}

TEST(Policy, AStuckArmedStepDisarmsForGood) {
  Options options;
  Policy policy(options, {R::kHardware});
  uint64_t step = 0;
  Decision decision;
  for (; decision.action != Action::kCounters; ++step) {
    decision = policy.Begin(step);
    if (decision.action != Action::kCounters) policy.End(step, decision, 1'000'000, true);
  }
  uint64_t now = 5'000'000'000;
  EXPECT_FALSE(policy.CheckStall(now, 1));
  EXPECT_FALSE(policy.CheckStall(now += options.stall_ns - 1, 1));
  EXPECT_FALSE(policy.CheckStall(now += 1, 2));  // it moved
  EXPECT_FALSE(policy.CheckStall(now += options.stall_ns - 1, 2));
  EXPECT_TRUE(policy.CheckStall(now += 1, 2));
  policy.End(step - 1, decision, 60'000'000'000, false);
  for (uint64_t i = 0; i < 10000; ++i) {
    Decision later = policy.Begin(step + i);
    ASSERT_EQ(later, Decision{});
    policy.End(step + i, later, 1'000'000, true);
  }
}

TEST(Policy, AnUnarmedStepIsNeverStuck) {
  Policy policy({}, {R::kHardware});
  policy.Begin(0);
  EXPECT_FALSE(policy.CheckStall(1, 0));
  EXPECT_FALSE(policy.CheckStall(UINT64_MAX, 0));
}

TEST(Policy, AStepThatCouldNotBeArmedIsNeverStuck) {
  Options options;
  Policy policy(options, {R::kHardware});
  uint64_t step = 0;
  while (policy.Begin(step).action == Action::kNone) policy.End(step++, {}, 1'000'000, true);
  policy.Cancel();
  EXPECT_FALSE(policy.CheckStall(1, 0));
  EXPECT_FALSE(policy.CheckStall(UINT64_MAX, 0));
}

TEST(Backoff, WaitsTwiceAsLongEachTimeAndGivesUp) {
  Backoff backoff;
  EXPECT_TRUE(backoff.Due(0));
  EXPECT_FALSE(backoff.waiting());
  uint64_t step = 10, gap = Backoff::kFirstGap;
  for (uint32_t i = 0; i + 1 < Backoff::kMaxFailures; ++i, gap *= 2) {
    backoff.Failed(step);
    EXPECT_TRUE(backoff.waiting());
    EXPECT_FALSE(backoff.Due(step + gap - 1));
    EXPECT_TRUE(backoff.Due(step + gap));
    EXPECT_EQ(backoff.next(), step + gap);
    step += gap;
  }
  backoff.Failed(step);
  EXPECT_TRUE(backoff.given_up());
  EXPECT_FALSE(backoff.Due(UINT64_MAX));
}

TEST(Backoff, StartsAnewAfterSuccess) {
  Backoff backoff;
  backoff.Failed(0);
  backoff.Failed(Backoff::kFirstGap);
  backoff.Succeeded();
  EXPECT_TRUE(backoff.Due(0));
  backoff.Failed(0);
  EXPECT_EQ(backoff.next(), Backoff::kFirstGap);
}

// --- Simulated jobs. Seeds are fixed: the numbers are the same in every run.

TEST(Simulation, IntervalsCoverAndAtMostOnePercentIsArmed) {
  const std::vector<GroupRole> roles = {R::kHardware, R::kHardware, R::kOnce, R::kGuard};
  for (double cost : {0.1, 1.0, 4.0}) {
    JobResult sum;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      JobOptions job;
      job.seed = seed;
      job.counters_cost = cost;
      JobResult result = SimulateJob({}, roles, job);
      EXPECT_LE(result.armed_steps, job.steps / 100);
      EXPECT_LE(result.max_overhead_later, 0.0101) << "cost " << cost;
      sum.intervals += result.intervals;
      sum.covering += result.covering;
    }
    EXPECT_GE(static_cast<double>(sum.covering), 0.93 * static_cast<double>(sum.intervals)) << "cost " << cost;
  }
}

// One kernel alone: nothing but its own stopping rule ends the sampling, so this is where the rule's bias would show.
TEST(Simulation, StoppingDoesNotSpoilTheCoverageOfASingleKernel) {
  for (double spread : {0.01, 0.02, 0.03, 0.06}) {
    uint64_t intervals = 0, covering = 0;
    for (uint64_t seed = 1; seed <= (kSlow ? 80 : 800); ++seed) {
      JobOptions job;
      job.seed = seed;
      job.kernels = 1;
      job.steps = 4000;
      job.counters_cost = 0.1;
      job.fixed_spread = spread;
      JobResult result = SimulateJob({}, {R::kHardware}, job);
      intervals += result.bytes_intervals;
      covering += result.bytes_covering;
    }
    // The binomial's standard deviation is 0.8 % in 800 runs and 2.4 % in 80: about four and five of them are
    // allowed.
    EXPECT_GE(static_cast<double>(covering), (kSlow ? 0.83 : 0.92) * static_cast<double>(intervals))
        << "spread " << spread;
  }
}

}  // namespace
}  // namespace rfinject::arming
