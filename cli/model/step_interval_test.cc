#include "cli/model/step_interval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace rfinject::cli {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<uint64_t> Every(uint64_t distance, size_t count) {
  std::vector<uint64_t> steps;
  for (size_t i = 0; i < count; ++i) steps.push_back(100 + distance * i);
  return steps;
}

TEST(StepInterval, IsStudentsForStepsThatAreFarApart) {
  const std::vector<double> values = {1, 3, 4, 5, 5, 6, 7, 9};
  const StepInterval interval = IntervalOf(Every(100, 8), values, 1e9);
  EXPECT_EQ(interval.trust, Trust::kByStep);
  EXPECT_DOUBLE_EQ(interval.mean, 5);
  EXPECT_NEAR(interval.half_width, 2.364624 * std::sqrt(42.0 / 7 / 8), 1e-6);
  EXPECT_EQ(interval.batches, 8u);
  EXPECT_NEAR(interval.spread, 1.4826 * 1.5, 1e-12);
  EXPECT_EQ(interval.p95, 0);
}

TEST(StepInterval, CoversWhereOneStepInFiveIsLonger) {
  // Student's own interval covers 91 % of these.
  std::mt19937_64 random(3);
  std::bernoulli_distribution longer(0.2);
  constexpr int kRuns = 4000;
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> values;
    for (int i = 0; i < 18 + run % 13; ++i) values.push_back(longer(random) ? 1.5 : 1);
    const StepInterval interval = IntervalOf(Every(100, values.size()), values, 1e9);
    covered += std::fabs(interval.mean - 1.1) <= interval.half_width;
  }
  EXPECT_GT(covered, 0.93 * kRuns);
  EXPECT_LT(covered, 0.985 * kRuns);
}

TEST(StepInterval, OneStepIsNoIntervalAndFewStepsAreNamed) {
  EXPECT_EQ(IntervalOf({}, {}, 100).trust, Trust::kNone);
  const StepInterval one = IntervalOf(Every(100, 1), std::vector<double>{5}, 100);
  EXPECT_EQ(one.trust, Trust::kFewSteps);
  EXPECT_TRUE(std::isinf(HalfWidth95(one.uncertainty)));
  // Six steps in a row are one observation.
  EXPECT_EQ(IntervalOf(Every(1, 6), std::vector<double>{5, 6, 5, 6, 5, 6}, 1000).trust, Trust::kFewSteps);
  EXPECT_EQ(IntervalOf(Every(100, 3), std::vector<double>{5, 6, 5}, 1000).trust, Trust::kFewSteps);
}

// `steps` are sampled of a noise that `next(step)` gives; how often the interval holds the mean, which is 0.
double Coverage(const std::vector<uint64_t>& steps, double memory) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int covered = 0;
  constexpr int kRuns = 4000;
  for (int run = 0; run < kRuns; ++run) {
    double state = normal(random);
    std::vector<double> values;
    uint64_t step = 0;
    for (const uint64_t at : steps) {
      const double kept = std::pow(memory, static_cast<double>(at - step));
      state = kept * state + std::sqrt(1 - kept * kept) * normal(random);
      step = at;
      values.push_back(state);
    }
    const StepInterval interval = IntervalOf(steps, values, 1e9);
    covered += std::fabs(interval.mean) <= HalfWidth95(interval.uncertainty);
  }
  return static_cast<double>(covered) / kRuns;
}

// As older traces have them: five timed steps among the first ones, of which only two places are far apart.
TEST(StepInterval, CloseStepsInTwoPlacesHaveTheLargerOfBothVariances) {
  const std::vector<uint64_t> close = {12, 13, 17, 18, 26};
  const StepInterval even = IntervalOf(close, std::vector<double>{100, 101, 99, 100, 100.5}, 300);
  EXPECT_EQ(even.trust, Trust::kByStep);
  EXPECT_TRUE(even.close);
  EXPECT_TRUE(even.uncertainty.known);
  EXPECT_LT(even.half_width, 1.5);
  // Neighbours that are alike are known as one place is.
  const StepInterval alike = IntervalOf(close, std::vector<double>{101, 101, 101, 101, 99}, 300);
  EXPECT_GT(alike.half_width, 1.5);
  EXPECT_EQ(IntervalOf(std::vector<uint64_t>{12, 13, 17, 26}, std::vector<double>{5, 6, 5, 6}, 300).trust,
            Trust::kFewSteps)
      << "four steps are too few";
  EXPECT_FALSE(IntervalOf(Every(100, 5), std::vector<double>{5, 6, 5, 6, 5}, 1000).close);
}

// What remembers its neighbours for a while is covered nearly as well, though only two places are far apart.
TEST(StepInterval, CloseStepsCover) {
  const std::vector<uint64_t> close = {12, 13, 17, 18, 26};
  EXPECT_NEAR(Coverage(close, 0), 0.97, 0.025);
  EXPECT_GT(Coverage(close, 0.5), 0.9);
}

TEST(StepInterval, KnowsARunWhoseStepsWereAllSampled) {
  EXPECT_EQ(IntervalOf(Every(100, 5), std::vector<double>{5, 6, 5, 6, 5}, 5).half_width, 0);
  EXPECT_GT(IntervalOf(Every(100, 5), std::vector<double>{5, 6, 5, 6, 5}, 5).uncertainty.variance, 0);
}

TEST(StepInterval, Covers) {
  const std::vector<uint64_t> burst = {8, 12, 16, 20, 550, 650, 750, 850, 950};
  for (const std::vector<uint64_t>& steps : {Every(100, 5), Every(100, 20), Every(4, 10), burst}) {
    for (const double memory : {0.0, 0.5, 0.7}) {
      EXPECT_NEAR(Coverage(steps, memory), 0.95, 0.025) << steps.size() << " from " << steps[1] << ", " << memory;
    }
  }
}

TEST(SamplesDrift, SeesATrendAndSeldomSeesOneInNoise) {
  std::vector<double> trend;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 15; ++i) trend.push_back(i + normal(random));
  EXPECT_TRUE(SamplesDrift(Every(100, 15), trend));
  int wrong = 0;
  for (int run = 0; run < 1000; ++run) {
    for (double& value : trend) value = normal(random);
    wrong += SamplesDrift(Every(100, 15), trend);
  }
  EXPECT_LE(wrong, 80);
}

TEST(SamplesDrift, SeesATrendOfAShortWindowButNotWhatNeighboursHaveInCommon) {
  const std::vector<uint64_t> window = {2, 7, 8, 15, 21, 29, 36, 44, 46, 49};
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int noise = 0, memory = 0, trend = 0, warm_up = 0, jump = 0;
  for (int run = 0; run < 1000; ++run) {
    std::vector<double> independent, remembering, rising, warming, jumping;
    double state = normal(random);
    uint64_t last = 0;
    for (const uint64_t step : window) {
      const double kept = std::pow(0.7, static_cast<double>(step - last));
      state = kept * state + std::sqrt(1 - kept * kept) * normal(random);
      last = step;
      independent.push_back(normal(random));
      remembering.push_back(state);
      rising.push_back(0.15 * static_cast<double>(step) + normal(random));
      // A clock that sinks within the first third; another clock in the last step that was sampled alone.
      warming.push_back(10 * std::min(1.0, static_cast<double>(step) / 17) + normal(random));
      jumping.push_back((step == window.back() ? 15 : 0) + normal(random));
    }
    noise += SamplesDrift(window, independent);
    memory += SamplesDrift(window, remembering);
    trend += SamplesDrift(window, rising);
    warm_up += SamplesDrift(window, warming);
    jump += SamplesDrift(window, jumping);
  }
  EXPECT_LE(noise, 30);
  EXPECT_LE(memory, 90);
  EXPECT_GE(trend, 800);
  EXPECT_GE(warm_up, 900);
  EXPECT_GE(jump, 980);
}

TEST(SlowSteps, AreFarAboveTheOthersAndFew) {
  EXPECT_THAT(SlowSteps(std::vector<double>{100, 101, 99, 100, 126, 100, 101}),
              ElementsAre(false, false, false, false, true, false, false));
  EXPECT_THAT(SlowSteps(std::vector<double>{100, 101, 99, 100, 104}), Each(false));
  EXPECT_THAT(SlowSteps(std::vector<double>{100, 101, 126, 100, 126}), Each(false));
  EXPECT_THAT(SlowSteps(std::vector<double>{100, 101, 126, 100, 99, 101, 100, 126}), Each(false));
  // Where it is known from elsewhere that they are rare, more are chance.
  EXPECT_THAT(SlowSteps(std::vector<double>{100, 101, 126, 100, 99, 101, 100, 126}, 0, 0.4),
              ElementsAre(false, false, true, false, false, false, false, true));
}

}  // namespace
}  // namespace rfinject::cli
