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

TEST(Sums, APartOfTheErrorsOfAGroupAddsUpAndTheRestAsSquares) {
  Sums sums = Of(ErrorGroup::kNorm, 10, 7, 13);
  sums.Add(Of(ErrorGroup::kNorm, 10, 6, 14));
  const double norm = 0.34 * 7 * 7 + 0.66 * (3 * 3 + 4 * 4);
  EXPECT_DOUBLE_EQ(Low(sums), 20 - std::sqrt(norm));
  EXPECT_DOUBLE_EQ(High(sums), 20 + std::sqrt(norm));
  // Errors of different groups are independent.
  sums.Add(Of(ErrorGroup::kAttention, 10, 6, 13));
  EXPECT_EQ(sums.time_ns(), 30);
  EXPECT_DOUBLE_EQ(Low(sums), 30 - std::sqrt(norm + 16));
  EXPECT_DOUBLE_EQ(High(sums), 30 + std::sqrt(norm + 9));
  // In any order, and of one step as of all.
  Sums other = Of(ErrorGroup::kAttention, 10, 6, 13);
  other.Add(Of(ErrorGroup::kNorm, 10, 6, 14));
  other.Add(Of(ErrorGroup::kNorm, 10, 7, 13));
  EXPECT_DOUBLE_EQ(Low(other), Low(sums));
  EXPECT_DOUBLE_EQ(Low(sums.OfOneStep(5)), Low(sums) / 5);
  // Convolutions in FP32 have less in common: each shape has its own algorithm.
  Sums convolutions = Of(ErrorGroup::kConvolutionFp32, 10, 7, 13);
  convolutions.Add(Of(ErrorGroup::kConvolutionFp32, 10, 6, 14));
  EXPECT_DOUBLE_EQ(High(convolutions), 20 + std::sqrt(0.165 * 7 * 7 + 0.835 * 25));
}

TEST(Sums, ASumOfErrorsLeansLessThanEachOfThem) {
  const auto leaning = [](int parts) {
    Sums sums;
    for (int i = 0; i < parts; ++i) sums.Add(Of(ErrorGroup::kNorm, 10, 9, 13));
    return (High(sums) - sums.time_ns()) / (sums.time_ns() - Low(sums));
  };
  EXPECT_DOUBLE_EQ(leaning(1), 3);
  EXPECT_LT(leaning(4), 2.8);
  EXPECT_GT(leaning(4), 2) << "what they have in common leans as each does";
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
