#include "cli/profile/two_clusters.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rfinject::cli {
namespace {

TEST(TwoClusters, AreFoundWhereThereAreTwo) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back((i % 5 == 0 ? 1.5 : 1.0) + 0.001 * (i % 3));
  const auto found = FindTwoClusters(values);
  ASSERT_TRUE(found);
  EXPECT_GT(found->cut, 1.1);
  EXPECT_LT(found->cut, 1.4);
  EXPECT_EQ(found->upper, 4u);
  EXPECT_EQ(found->fewer, 4u);
  for (double& value : values) value = 2.5 - value;
  ASSERT_TRUE(FindTwoClusters(values));
  EXPECT_EQ(FindTwoClusters(values)->upper, 16u);
  EXPECT_EQ(FindTwoClusters(values)->fewer, 4u);
}

TEST(TwoClusters, AreNotFoundInNoiseNorInOneOutlier) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(1, 0.01);
  int wrong = 0;
  for (int run = 0; run < 200; ++run) {
    std::vector<double> values(30);
    for (double& value : values) value = noise(random);
    wrong += FindTwoClusters(values).has_value();
  }
  EXPECT_LE(wrong, 10) << "one in twenty of so few";
  EXPECT_FALSE(FindTwoClusters({}));
  EXPECT_FALSE(FindTwoClusters(std::vector<double>{1, 1, 1}));
  EXPECT_FALSE(FindTwoClusters(std::vector<double>{1, 1, 1, 2}));
  EXPECT_TRUE(FindTwoClusters(std::vector<double>{1, 1, 1, 2}, /*least=*/1));
}

}  // namespace
}  // namespace rfinject::cli
