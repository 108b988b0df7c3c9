#include "cli/report/facts/collectives.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

constexpr uint64_t kNsOfMs = 1'000'000;

// How long each rank's kernels of one name ran, and by how much its host's clock is ahead.
void Add(uint32_t rank, const std::vector<uint64_t>& durations_ms, uint64_t ahead_ns, cli::Run* run) {
  for (uint32_t i = 0; i < durations_ms.size(); ++i) {
    run->kept.collective.Add({.index = i + 1,
                              .kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                              .rank = rank,
                              .duration_ns = durations_ms[i] * kNsOfMs,
                              .end_unix_ns = 1000 * kNsOfMs + 200 * kNsOfMs * (i + 1) + ahead_ns});
  }
}

// Rank 0 computes for 50 ms and is in the collective for 60, rank 1 for 100 and 10; hosts' clocks are 3 s apart.
TEST(CollectivesTest, TheRankThatComesLastIsLate) {
  cli::Run run;
  Add(0, {60, 60, 60}, 0, &run);
  Add(1, {10, 10, 10}, 3000 * kNsOfMs, &run);
  const Collectives found = CollectivesOf(run);
  EXPECT_EQ(found.count, 3u);
  EXPECT_DOUBLE_EQ(found.transfer_ns, 10e6);
  ASSERT_EQ(found.last, 1u);
  EXPECT_DOUBLE_EQ(found.ranks.at(1).late_ns, 50e6);
  EXPECT_DOUBLE_EQ(found.ranks.at(1).waits_ns, 0);
  EXPECT_DOUBLE_EQ(found.ranks.at(0).late_ns, 0);
  EXPECT_DOUBLE_EQ(found.ranks.at(0).waits_ns, 50e6);
  EXPECT_EQ(found.ranks.at(1).clock_ns, 3'000'000'000);
}

// Each rank is last once: nobody is named. Of three ranks the transfer begins when the third is there.
TEST(CollectivesTest, RanksThatTakeTurnsAreNotLate) {
  cli::Run run;
  Add(0, {10, 40, 40}, 0, &run);
  Add(1, {40, 10, 30}, 0, &run);
  Add(2, {30, 30, 10}, 0, &run);
  const Collectives found = CollectivesOf(run);
  EXPECT_EQ(found.last, std::nullopt);
  EXPECT_DOUBLE_EQ(found.transfer_ns, 10e6);
  EXPECT_NEAR(found.ranks.at(0).waits_ns, 20e6, 1e-6);
}

TEST(CollectivesTest, WhatDoesNotEndTogetherIsNotCompared) {
  cli::Run run;
  Add(0, {60, 60, 60}, 0, &run);
  for (uint32_t i = 0; i < 3; ++i) {
    run.kept.collective.Add({.index = i + 1,
                             .kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                             .rank = 1,
                             .duration_ns = 10 * kNsOfMs,
                             .end_unix_ns = 5000 * kNsOfMs + 370 * kNsOfMs * (i + 1)});
  }
  EXPECT_TRUE(CollectivesOf(run).do_not_match);
  EXPECT_EQ(CollectivesOf(run).count, 0u);
}

// Sends and receives of two ranks each end when their pair does; what all ranks meet in is told apart by its ends.
TEST(CollectivesTest, WhatPairsExchangeIsLeftOut) {
  cli::Run run;
  Add(0, {60, 60, 60}, 0, &run);
  Add(1, {10, 10, 10}, 0, &run);
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      run.kept.collective.Add({.index = i + 1,
                               .kernel = "ncclDevKernel_SendRecv",
                               .rank = rank,
                               .duration_ns = 2 * kNsOfMs,
                               .end_unix_ns = 900 * kNsOfMs + (rank == 0 ? 100 : 160) * kNsOfMs * (i + 1)});
    }
  }
  EXPECT_EQ(CollectivesOf(run).count, 3u);
  EXPECT_EQ(CollectivesOf(run).last, 1u);
}

// Two groups of two ranks have collectives of their own beside those of all four.
TEST(CollectivesTest, GroupsOfSomeRanksDoNotDisturb) {
  cli::Run run;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Add(rank, {rank == 0 ? 40ULL : 30ULL, 30, 30}, 0, &run);
    for (uint32_t i = 0; i < 3; ++i) {
      run.kept.collective.Add({.index = i + 1,
                               .kernel = rank < 2 ? "ncclDevKernel_AllGather_RING_LL of left"
                                                  : "ncclDevKernel_AllGather_RING_LL of right",
                               .rank = rank,
                               .duration_ns = 5 * kNsOfMs,
                               .end_unix_ns = 400 * kNsOfMs * (i + 1) + (rank < 2 ? 0 : 77 * kNsOfMs)});
    }
  }
  const Collectives found = CollectivesOf(run);
  EXPECT_FALSE(found.do_not_match);
  EXPECT_EQ(found.count, 3u);
  EXPECT_EQ(found.ranks.size(), 4u);
}

TEST(CollectivesTest, OneRankOrAnotherNumberSaysNothing) {
  cli::Run alone, more;
  Add(0, {60, 60}, 0, &alone);
  EXPECT_EQ(CollectivesOf(alone).count, 0u);
  Add(0, {60, 60}, 0, &more);
  Add(1, {10}, 0, &more);
  EXPECT_EQ(CollectivesOf(more).count, 0u);
}

}  // namespace
}  // namespace rfinject::cli
