#include "cli/report/keys/quantity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rfinject::cli {
namespace {

double Low(const Sums& sums) { return sums[Quantity::kTimeLow]; }
double High(const Sums& sums) { return sums[Quantity::kTimeHigh]; }

Sums Of(ErrorGroup group, double expected, double low, double high) {
  Sums sums;
  sums.AddExpected(Expectation::kTime, group, expected, low, high);
  return sums;
}

TEST(Sums, AnExpectedTimeAloneKeepsItsInterval) {
  const Sums one = Of(ErrorGroup::kNorm, 10, 7, 15);
  EXPECT_EQ(one.time_ns(), 10);
  EXPECT_DOUBLE_EQ(Low(one), 7);
  EXPECT_DOUBLE_EQ(High(one), 15);
}

TEST(Sums, ErrorsOfAGroupAddUpAndThoseOfGroupsAddUpAsSquares) {
  Sums sums = Of(ErrorGroup::kNorm, 10, 8, 11);
  sums.Add(Of(ErrorGroup::kNorm, 10, 9, 13));
  EXPECT_DOUBLE_EQ(Low(sums), 20 - 0.8 * 3);
  EXPECT_DOUBLE_EQ(High(sums), 20 + 0.8 * 4);
  sums.Add(Of(ErrorGroup::kAttention, 10, 6, 13));
  EXPECT_EQ(sums.time_ns(), 30);
  EXPECT_DOUBLE_EQ(Low(sums), 30 - 0.8 * std::hypot(3, 4));
  EXPECT_DOUBLE_EQ(High(sums), 30 + 0.8 * std::hypot(4, 3));
  // In any order, and of one step as of all.
  Sums other = Of(ErrorGroup::kAttention, 10, 6, 13);
  other.Add(Of(ErrorGroup::kNorm, 20, 17, 24));
  EXPECT_DOUBLE_EQ(Low(other), Low(sums));
  EXPECT_DOUBLE_EQ(Low(sums.OfOneStep(5)), Low(sums) / 5);
  Sums steps = sums.OfOneStep(5);
  for (int i = 1; i < 5; ++i) steps.Add(sums.OfOneStep(5));
  EXPECT_DOUBLE_EQ(High(steps), High(sums)) << "steps err together";
}

TEST(Sums, AnIntervalScalesWithItsTime) {
  Sums sums = Of(ErrorGroup::kNorm, 10, 8, 11);
  sums.AddExpected(Expectation::kOther, ErrorGroup::kNorm, 4, 3, 6);
  sums.ScaleExpected(Expectation::kOther, 2);
  EXPECT_EQ(sums[Quantity::kOtherTime], 8);
  EXPECT_DOUBLE_EQ(sums[Quantity::kOtherLow], 6);
  EXPECT_DOUBLE_EQ(sums[Quantity::kOtherHigh], 12);
  EXPECT_DOUBLE_EQ(Low(sums), 8) << "the others stay";
}

}  // namespace
}  // namespace rfinject::cli
