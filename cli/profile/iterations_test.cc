#include "cli/profile/iterations.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace rfinject::cli {
namespace {

size_t StepsOf(std::string_view letters, size_t times = 1) {
  std::vector<uint32_t> kinds;
  for (size_t i = 0; i < times; ++i) kinds.insert(kinds.end(), letters.begin(), letters.end());
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
  EXPECT_EQ(StepsOfIteration(std::vector<uint32_t>{0, 0, 0, 0}), 1u);
  EXPECT_EQ(StepsOfIteration(std::vector<uint32_t>{1, 0, 1, 0}), 1u) << "a trace of an older library";
}

}  // namespace
}  // namespace rfinject::cli
