#include "cli/model/shared_variance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace rfinject::cli {
namespace {

// Variances of `count` samples of `degrees` + 1 normal values each, whose true variance is 4 over their size.
std::vector<double> Samples(std::span<const double> sizes, int degrees) {
  std::mt19937_64 random(7);
  std::chi_squared_distribution<double> squares(degrees);
  std::vector<double> variances;
  for (const double size : sizes) variances.push_back(4 / size * squares(random) / degrees);
  return variances;
}

std::vector<double> Sizes(size_t count) {
  std::vector<double> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back(std::pow(1.02, static_cast<double>(i)));
  return sizes;
}

TEST(SharedVarianceTest, SamplesThatAreAlikeAreKnownTogether) {
  const std::vector<double> sizes = Sizes(300), variances = Samples(sizes, 5);
  const std::vector<SharedVariance> shared = ShareVariances(sizes, variances, 5);
  double alone = 0, together = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_GT(shared[i].degrees, 40);
    alone += std::pow(std::log(variances[i] * sizes[i] / 4), 2);
    together += std::pow(std::log(shared[i].variance * sizes[i] / 4), 2);
  }
  EXPECT_LT(together, alone / 25);
}

TEST(SharedVarianceTest, ASampleThatIsUnlikeTheOthersKeepsItsOwn) {
  const std::vector<double> sizes = Sizes(100);
  std::vector<double> variances = Samples(sizes, 5);
  variances[30] = 100 * 4 / sizes[30];
  const std::vector<SharedVariance> shared = ShareVariances(sizes, variances, 5);
  EXPECT_EQ(shared[30].variance, variances[30]);
  EXPECT_EQ(shared[30].degrees, 5);
  EXPECT_GT(shared[31].degrees, 15);
}

TEST(SharedVarianceTest, SamplesThatDifferLendLittle) {
  const std::vector<double> sizes = Sizes(300);
  std::vector<double> variances = Samples(sizes, 5);
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal(0, 1.5);
  for (double& one : variances) one *= std::exp(normal(random));
  for (const SharedVariance& one : ShareVariances(sizes, variances, 5)) EXPECT_LT(one.degrees, 9);
}

TEST(SharedVarianceTest, TheLogarithmOfAVarianceIsTooSmallInTheMean) {
  // Digamma(1) is minus Euler's constant.
  EXPECT_NEAR(MeanLogOfVariance(2), -0.5772156649015329, 1e-9);
  EXPECT_NEAR(MeanLogOfVariance(1e6), 0, 2e-6);
}

}  // namespace
}  // namespace rfinject::cli
