#include "cli/profile/step_times.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

Spread SpreadOf(uint64_t from, uint64_t to) {
  Spread spread;
  for (uint64_t ns = from; ns <= to; ++ns) spread.Add(1'000'000 * ns);
  return spread;
}

TEST(Spread, MeanIsExactAndQuantilesAreClose) {
  const Spread spread = SpreadOf(1, 100);
  EXPECT_EQ(spread.n(), 100u);
  EXPECT_EQ(*spread.mean_ns(), 50.5e6);
  EXPECT_NEAR(*spread.Quantile(0.5), 50e6, 50e6 / 120);
  EXPECT_NEAR(*spread.Quantile(0.95), 95e6, 95e6 / 120);
  EXPECT_NEAR(*spread.Quantile(0), 1e6, 1e6 / 120);
  EXPECT_NEAR(*spread.Quantile(1), 100e6, 100e6 / 120);
}

TEST(Spread, OfNothingThereIsNothing) {
  EXPECT_FALSE(Spread().mean_ns().has_value());
  EXPECT_FALSE(Spread().Quantile(0.5).has_value());
  Spread no_wait;
  no_wait.Add(0);
  EXPECT_EQ(*no_wait.Quantile(0.95), 0);
}

TEST(Spread, MergingIsAddingInAnyOrder) {
  const Spread low = SpreadOf(1, 30), high = SpreadOf(31, 100);
  Spread one = low, other = high;
  one.Merge(high);
  other.Merge(low);
  EXPECT_EQ(one, other);
  EXPECT_EQ(one, SpreadOf(1, 100));
}

TEST(Spread, SaturatesAndKeepsToTheLargestCode) {
  Spread spread;
  spread.AddCounted(UINT32_MAX, UINT64_MAX);
  spread.AddCounted(0, 5);
  EXPECT_EQ(spread.n(), UINT64_MAX);
  EXPECT_EQ(spread.counts().size(), 2u);
  EXPECT_GT(*spread.Quantile(1), 1e19);
}

}  // namespace
}  // namespace rfinject::cli
