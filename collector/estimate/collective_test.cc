#include "collector/estimate/collective.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rfinject::estimate {
namespace {

TEST(CollectiveTest, FactorsOfNcclTests) {
  EXPECT_EQ(BusBytes("all_reduce", 1000, 2), 1000u);
  EXPECT_EQ(BusBytes("all_reduce", 1000, 8), 1750u);
  for (const char* kind : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}) {
    EXPECT_EQ(BusBytes(kind, 1000, 4), 750u) << kind;
  }
  for (const char* kind : {"broadcast", "reduce", "send", "recv"}) EXPECT_EQ(BusBytes(kind, 1000, 4), 1000u) << kind;
}

TEST(CollectiveTest, OneRankMovesNothing) {
  EXPECT_EQ(BusBytes("all_reduce", 1000, 1), 0u);
  EXPECT_EQ(BusBytes("broadcast", 1000, 0), 0u);
}

TEST(CollectiveTest, WhatIsNotDivisibleAndWhatIsHuge) {
  EXPECT_EQ(BusBytes("all_gather", 7, 3), 4u);  // 4.67
  EXPECT_EQ(BusBytes("all_gather", UINT64_MAX, 2), UINT64_MAX / 2);
  EXPECT_EQ(BusBytes("all_reduce", UINT64_MAX, 1000), UINT64_MAX);
}

}  // namespace
}  // namespace rfinject::estimate
