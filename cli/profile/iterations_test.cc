#include "cli/profile/iterations.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace rfinject::cli {
namespace {

size_t StepsOf(std::string_view letters, size_t times = 1) {
  std::vector<StepKind> kinds;
  for (size_t i = 0; i < times; ++i) {
    for (const char letter : letters) kinds.push_back({static_cast<uint32_t>(letter), 0});
  }
  return StepsOfIteration(kinds);
}

// Letters are calls, figures the optimizer that stepped after them: "a1a2".
size_t StepsWith(std::string_view pairs, size_t times = 1) {
  std::vector<StepKind> kinds;
  for (size_t i = 0; i < times; ++i) {
    for (size_t at = 0; at + 1 < pairs.size(); at += 2) {
      kinds.push_back({static_cast<uint32_t>(pairs[at]), static_cast<uint32_t>(pairs[at + 1] - '0')});
    }
  }
  return StepsOfIteration(kinds);
}

TEST(Iterations, ThePeriodOfTheSequenceIsAnIteration) {
  EXPECT_EQ(StepsOf("a", 10), 1u);
  EXPECT_EQ(StepsOf("ab", 5), 2u);
  EXPECT_EQ(StepsOf("aaaaab", 4), 6u) << "five steps of a critic, one of a generator";
  EXPECT_EQ(StepsOf("abcabca"), 3u) << "the last one is not complete";
  EXPECT_EQ(StepsOf("abab"), 2u);
}

TEST(Iterations, ASingleBreakDoesNotHideIt) {
  EXPECT_EQ(StepsOf("abababababababababaababababababababababab"), 2u);
  EXPECT_EQ(StepsOf("baaaaaaaaaaaaaaaaaaaaaaaaa"), 1u) << "the first step is often another";
}

TEST(Iterations, WhatWasNotSeenTwiceIsNone) {
  EXPECT_EQ(StepsOf(""), 1u);
  EXPECT_EQ(StepsOf("ab"), 1u);
  EXPECT_EQ(StepsOf("aba"), 1u);
  EXPECT_EQ(StepsOf("abcdefgh"), 1u);
  EXPECT_EQ(StepsOfIteration(std::vector<StepKind>(4)), 1u);
  EXPECT_EQ(StepsOfIteration(std::vector<StepKind>{{1, 0}, {0, 0}, {1, 0}, {0, 0}}), 1u)
      << "a trace of an older library";
}

TEST(Iterations, OptimizersOfOneClassAfterTheSameCallsAreSeveralSteps) {
  EXPECT_EQ(StepsWith("a1a2", 5), 2u);
  EXPECT_EQ(StepsWith("a1a1a1a2", 4), 4u);
  EXPECT_EQ(StepsWith("a1", 10), 1u);
}

TEST(Iterations, AnOptimizerThatIsMadeAnewIsTheOneBefore) {
  EXPECT_EQ(StepsWith("a1a2a3a4a5a6a7a8"), 1u);
  EXPECT_EQ(StepsWith("a2b1a3b1a4b1a5b1a6b1"), 2u) << "an inner loop's, beside one that stays";
}

}  // namespace
}  // namespace rfinject::cli
