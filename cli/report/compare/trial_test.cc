#include "cli/report/compare/trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace rfinject::cli {
namespace {

TEST(Trial, LossesAreEqualOrAsFarAsRoundingTakesThemOrFurther) {
  const std::vector<double> baseline = {4, 3, 2}, rounded = {4.01, 3.01, 2.01}, twice = {4.02, 3.02, 2.02};
  EXPECT_EQ(JudgeLoss(baseline, rounded, baseline), LossState::kSame);
  EXPECT_EQ(JudgeLoss(baseline, rounded, twice), LossState::kClose);
  EXPECT_EQ(JudgeLoss(baseline, rounded, std::vector<double>{4, 3.1, 2.2}), LossState::kOutside);
}

TEST(Trial, LossesThatCannotBeComparedAreOutside) {
  const std::vector<double> baseline = {4, 3}, rounded = {4.1, 3.1};
  EXPECT_EQ(JudgeLoss(baseline, rounded, std::vector<double>{4}), LossState::kOutside);
  EXPECT_EQ(JudgeLoss(baseline, rounded, std::vector<double>{4, std::nan("")}), LossState::kOutside);
  EXPECT_EQ(JudgeLoss(baseline, std::vector<double>{4, std::nan("")}, std::vector<double>{4.01, 3}),
            LossState::kOutside);
}

TEST(Trial, ChangesThatAreOutsideOrChanceOrSlowerAreNotRecommended) {
  Trial trial{.state = TrialState::kMade, .step_ns = 80, .time = {.before = 100, .after = 80}};
  trial.time.verdict = Verdict::kReal;
  EXPECT_TRUE(trial.recommended());
  EXPECT_DOUBLE_EQ(trial.won_share(), 0.2);
  trial.loss = LossState::kOutside;
  EXPECT_FALSE(trial.recommended());
  trial.loss = LossState::kSame;
  trial.time.verdict = Verdict::kNoise;
  EXPECT_FALSE(trial.recommended());
  trial.time.verdict = Verdict::kReal;
  trial.time.after = 120;
  EXPECT_FALSE(trial.recommended());
}

TEST(Trial, TheIntervalOfRoundsIsStudents) {
  EXPECT_TRUE(std::isinf(RoundsHalfWidth(std::vector<double>{1})));
  // Mean 0, standard deviation 1, n = 3: Student's 4.303 times 1 / sqrt(3).
  EXPECT_NEAR(RoundsHalfWidth(std::vector<double>{-1, 0, 1}), 4.303 / std::sqrt(3.0), 0.01);
}

}  // namespace
}  // namespace rfinject::cli
