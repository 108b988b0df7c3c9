#include "collector/record/chunk_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rfinject {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Written {
  uint64_t chunks = 0, bytes = 0;
  int64_t longest = 0;
};

// Simulates a job that writes the same in each chunk, for `duration_ns`.
Written Simulate(int64_t duration_ns, uint64_t chunk_bytes, uint64_t max_bytes) {
  Written run;
  for (int64_t age = 0; age < duration_ns;) {
    ++run.chunks;
    run.bytes += chunk_bytes;
    const int64_t distance = ChunkDistance(age, run.bytes, chunk_bytes, max_bytes);
    run.longest = std::max(run.longest, distance);
    age += distance;
  }
  return run;
}

TEST(ChunkDistance, LosesASecondOfAYoungRunAndAHundredthOfAnOldOne) {
  EXPECT_EQ(ChunkDistance(0, 0, 0, 0), kSecond);
  EXPECT_EQ(ChunkDistance(599 * kSecond, 1 << 20, 1000, 0), kSecond);
  EXPECT_EQ(ChunkDistance(1000 * kSecond, 1 << 20, 1000, 0), 10 * kSecond);
  EXPECT_EQ(ChunkDistance(6000 * kSecond, 1 << 20, 1000, 0), 60 * kSecond);
  EXPECT_EQ(ChunkDistance(1'000'000 * kSecond, 1 << 20, 1000, 0), 60 * kSecond);
}

TEST(ChunkDistance, ADayIsSome2170Chunks) {
  const Written day = Simulate(86400 * kSecond, 1, 0);
  EXPECT_GT(day.chunks, 2150u);
  EXPECT_LT(day.chunks, 2190u);
}

TEST(ChunkDistance, TheLimitIsKeptByWritingMoreSeldom) {
  constexpr uint64_t kMax = 10'000'000;
  for (const uint64_t chunk : {1000u, 30'000u, 500'000u}) {
    const Written month = Simulate(30 * 86400 * kSecond, chunk, kMax);
    EXPECT_LT(month.bytes, kMax - chunk) << chunk;
    EXPECT_GT(month.bytes, kMax / 2) << chunk;
  }
  // Far from the limit it changes nothing.
  EXPECT_EQ(Simulate(3600 * kSecond, 1000, kMax).chunks, Simulate(3600 * kSecond, 1000, 0).chunks);
}

TEST(ChunkDistance, WhatIsBeyondTheLimitAlreadyWaitsForTheEnd) {
  EXPECT_GT(ChunkDistance(kSecond, 2000, 10, 1000), 86400 * kSecond);
  EXPECT_GT(ChunkDistance(kSecond, UINT64_MAX, UINT64_MAX, UINT64_MAX), 86400 * kSecond);
}

}  // namespace
}  // namespace rfinject
