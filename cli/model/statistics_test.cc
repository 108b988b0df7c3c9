#include "cli/model/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace rfinject::cli {
namespace {

using Values = std::vector<double>;

TEST(RanksTest, TiesShareTheMeanOfTheirRanks) {
  EXPECT_EQ(Ranks(Values{30, 10, 20}), (Values{3, 1, 2}));
  EXPECT_EQ(Ranks(Values{5, 1, 5, 5, 9}), (Values{3, 1, 3, 3, 5}));
  EXPECT_EQ(Ranks(Values{7, 7}), (Values{1.5, 1.5}));
  EXPECT_TRUE(Ranks(Values{}).empty());
}

TEST(SpearmanTest, OfAnyMonotoneFunctionIsOne) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(-3, 3);
  for (int round = 0; round < 100; ++round) {
    Values x, up, down;
    for (int i = 0; i < 3 + round; ++i) {
      x.push_back(uniform(random));
      up.push_back(std::exp(x.back()));
      down.push_back(-x.back() * x.back() * x.back());
    }
    ASSERT_NEAR(*SpearmanCorrelation(x, up), 1, 1e-12);
    ASSERT_NEAR(*SpearmanCorrelation(x, down), -1, 1e-12);
  }
}

TEST(SpearmanTest, IsSymmetricAndBounded) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    Values x, y;
    for (int i = 0; i < 12; ++i) {
      x.push_back(static_cast<double>(random() % 5));  // many ties
      y.push_back(static_cast<double>(random() % 5));
    }
    const auto xy = SpearmanCorrelation(x, y), yx = SpearmanCorrelation(y, x);
    ASSERT_EQ(xy.has_value(), yx.has_value());
    if (!xy) continue;
    ASSERT_DOUBLE_EQ(*xy, *yx);
    ASSERT_LE(std::fabs(*xy), 1);
  }
}

// IQ and hours of television of ten people: the usual worked example, rho = -29/165.
TEST(SpearmanTest, WorkedExample) {
  const Values iq = {106, 100, 86, 101, 99, 103, 97, 113, 112, 110};
  const Values hours = {7, 27, 2, 50, 28, 29, 20, 12, 6, 17};
  EXPECT_NEAR(*SpearmanCorrelation(iq, hours), -29.0 / 165.0, 1e-12);
}

// Ranks 1 2.5 2.5 4 against 1 2 3 4: covariance 4.5, variances 4.5 and 5.
TEST(SpearmanTest, WithTies) {
  EXPECT_NEAR(*SpearmanCorrelation(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5.0), 1e-12);
}

TEST(SpearmanTest, WithoutAnOrderThereIsNone) {
  EXPECT_FALSE(SpearmanCorrelation(Values{1, 2}, Values{1, 2}));
  EXPECT_FALSE(SpearmanCorrelation(Values{4, 4, 4}, Values{1, 2, 3}));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(SpearmanCorrelation(Values{1, kNan, 3}, Values{1, 2, 3}));
  EXPECT_NEAR(*SpearmanCorrelation(Values{1, kNan, 3, 4}, Values{1, 9, 3, 4}), 1, 1e-12);
}

TEST(Student95Test, KnownQuantiles) {
  EXPECT_NEAR(Student95(1), 12.706, 1e-3);
  EXPECT_NEAR(Student95(10), 2.228, 1e-3);
  EXPECT_NEAR(Student95(30), 2.042, 1e-3);
  EXPECT_NEAR(Student95(60), 2.000, 1e-3);
  EXPECT_NEAR(Student95(120), 1.980, 1e-3);
  EXPECT_NEAR(Student95(1e9), 1.960, 1e-3);
  EXPECT_TRUE(std::isinf(Student95(0.5)));
  for (double degrees = 1; degrees < 50; degrees += 0.25) ASSERT_GE(Student95(degrees), Student95(degrees + 0.25));
}

// Two samples of the same size and variance: Welch's degrees of freedom are 2 (n - 1).
TEST(UncertaintyTest, WelchOfEqualSamplesIsStudent) {
  const double variance_of_mean = 4.0 / 6;
  const Uncertainty one{variance_of_mean, variance_of_mean * variance_of_mean / 5, true};
  Uncertainty both = one;
  both.Add(one);
  EXPECT_NEAR(HalfWidth95(both), 2.228 * std::sqrt(2 * variance_of_mean), 1e-3);
  EXPECT_NEAR(HalfWidth95(both.Times(3)), 3 * HalfWidth95(both), 1e-9);
}

TEST(UncertaintyTest, ExactAndUnknown) {
  EXPECT_EQ(HalfWidth95({}), 0);
  Uncertainty unknown;
  unknown.Add({.variance = 0, .satterthwaite = 0, .known = false});
  EXPECT_TRUE(std::isinf(HalfWidth95(unknown)));
}

TEST(StudentTail, AgreesWithTheTables) {
  EXPECT_NEAR(StudentTail(12.706, 1), 0.05, 1e-5);
  EXPECT_NEAR(StudentTail(2.228, 10), 0.05, 1e-4);
  EXPECT_NEAR(StudentTail(4.587, 10), 0.001, 1e-6);
  EXPECT_NEAR(StudentTail(1.96, 1e9), 0.05, 1e-4);
  EXPECT_EQ(StudentTail(0, 5), 1);
  for (const double degrees : {1.0, 3.5, 20.0}) {
    EXPECT_NEAR(StudentTail(StudentQuantile(1e-6, degrees), degrees), 1e-6, 1e-9);
  }
}

TEST(Statistics, WhatHasNoValueIsNoException) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(StudentTail(kNan, 5), 1);
  EXPECT_EQ(StudentTail(3, 0), 1);
  EXPECT_TRUE(std::isinf(StudentQuantile(0.05, kNan)));
  EXPECT_TRUE(std::isfinite(StudentQuantile(0, std::numeric_limits<double>::infinity())));
  EXPECT_EQ(IncompleteBeta(1, 1, kNan), 0);
  EXPECT_EQ(IncompleteBeta(1, 1, 2), 1);
  EXPECT_FALSE(std::isfinite(Digamma(0)));
  EXPECT_FALSE(std::isfinite(Trigamma(0)));
}

TEST(Threshold, IsThatOfTheTextbooks) {
  // Benjamini and Hochberg's own example: four are real, where Holm has three.
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const auto real = [&](Correction correction) {
    return std::count_if(p.begin(), p.end(), [&](double one) { return one <= Threshold(correction, p); });
  };
  EXPECT_EQ(real(Correction::kFalseDiscovery), 4);
  EXPECT_EQ(real(Correction::kFamily), 3);
  EXPECT_EQ(real(Correction::kNone), 9);
  EXPECT_DOUBLE_EQ(Threshold(Correction::kFamily, {0.5, 0.6}), 0.025);
}

TEST(Uncertainty, OfDependentPartsIsTheSumOfTheirDeviations) {
  Uncertainty both{.variance = 4, .satterthwaite = 4.0 * 4 / 9};
  both.AddDependent({.variance = 9, .satterthwaite = 9.0 * 9 / 5});
  EXPECT_DOUBLE_EQ(both.variance, 25);
  EXPECT_NEAR(DegreesOf(both), 25 / std::pow(2 / std::sqrt(9) + 3 / std::sqrt(5), 2), 1e-9);
  both.AddDependent({.variance = 1e-12, .satterthwaite = 1e-24});
  EXPECT_NEAR(DegreesOf(both), 6.2, 0.01) << "a part that is nearly nothing has no say";
}

}  // namespace
}  // namespace rfinject::cli
