#include "collector/arming/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "collector/arming/budget.h"
#include "collector/arming/window_coverage.h"

namespace rfinject::arming {
namespace {

std::vector<uint64_t> BeginsIn(const ScheduleOptions& options, uint64_t steps) {
  Schedule schedule(options);
  std::vector<uint64_t> begins;
  for (uint64_t step = 0; step < steps; ++step) {
    if (schedule.Begins(step)) begins.push_back(step);
  }
  return begins;
}

TEST(Schedule, AKernelHasThirtyTimesIn300Steps) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const std::vector<uint64_t> begins = BeginsIn({.seed = seed}, 300);
    EXPECT_GE(begins.size() * Schedule::kStepsOfWindow, 50u);
    EXPECT_LE(begins.size() * Schedule::kStepsOfWindow, 110u);
    EXPECT_GE(begins.front(), 4u);
    for (size_t i = 1; i < begins.size(); ++i) EXPECT_GT(begins[i] - begins[i - 1], Schedule::kStepsOfWindow);
  }
}

TEST(Schedule, EachDoublingOfARunHasAsManyWindows) {
  const std::vector<uint64_t> begins = BeginsIn({}, 128'000);
  for (uint64_t from = 1000; from < 128'000; from *= 2) {
    const auto in = std::count_if(begins.begin(), begins.end(),
                                  [from](uint64_t step) { return step >= from && step < 2 * from; });
    EXPECT_GE(in, 12) << from;
    EXPECT_LE(in, 40) << from;
  }
}

// A program whose every 16th step is different is met at each of its steps.
TEST(Schedule, NoRhythmIsMetAtOnePlaceOnly) {
  for (const uint64_t period : {2, 5, 10, 16}) {
    std::set<uint64_t> places;
    for (const uint64_t step : BeginsIn({}, 3000)) places.insert(step % period);
    EXPECT_EQ(places.size(), period);
  }
}

TEST(Schedule, OfAShortRunIsDrawnFromItsSteps) {
  for (const uint64_t steps : {20, 50, 100, 1000}) {
    const Schedule schedule({.warm_up_steps = 2, .run_steps = steps});
    const std::vector<uint64_t>& begins = schedule.drawn();
    ASSERT_GE(begins.size(), 3u);
    EXPECT_GE(begins.front(), 2u);
    EXPECT_LE(begins.back() + Schedule::kStepsOfWindow, steps);
    EXPECT_EQ(BeginsIn({.warm_up_steps = 2, .run_steps = steps}, steps), begins);
    std::vector<uint64_t> sampled;
    for (size_t i = 0; i < begins.size(); ++i) {
      if (i > 0) {
        EXPECT_GE(begins[i] - begins[i - 1], Schedule::kStepsOfWindow);
      }
      for (uint64_t s = 0; s < Schedule::kStepsOfWindow; ++s) sampled.push_back(begins[i] - 2 + s);
    }
    if (steps == 50) {
      EXPECT_LT(WindowCoverage(steps - 2).WorstError(sampled), 0.06);
    }
  }
}

TEST(Schedule, ARunOfNoStepsHasNoWindow) { EXPECT_TRUE(BeginsIn({.warm_up_steps = 2, .run_steps = 3}, 100).empty()); }

TEST(Budget, IsAShareOfTheTimeOrTwoSeconds) {
  const Budget budget(0.01);
  EXPECT_TRUE(budget.Allows(0, 2'000'000'000, 0));
  EXPECT_FALSE(budget.Allows(1, 2'000'000'000, 0));
  EXPECT_TRUE(budget.Allows(2'000'000'000, 1'000'000'000, 300'000'000'000));
  EXPECT_FALSE(budget.Allows(2'000'000'000, 1'000'000'001, 300'000'000'000));
  // A smaller share makes the sum smaller, too; a larger one does not make it larger.
  EXPECT_FALSE(Budget(0.001).Allows(0, 200'000'001, 0));
  EXPECT_FALSE(Budget(0.1).Allows(0, 2'000'000'001, 0));
}

}  // namespace
}  // namespace rfinject::arming
