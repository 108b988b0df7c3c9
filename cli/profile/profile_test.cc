#include "cli/profile/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cli/testing/sample_profile.h"

namespace rfinject::cli {
namespace {

using testing::RandomProfile;

Profile Merged(Profile a, Profile b) {
  EXPECT_TRUE(a.Merge(std::move(b)).ok());
  return a;
}

TEST(Stat, AddsExactly) {
  Stat stat;
  for (uint64_t value : {7u, 3u, 5u}) stat.Add(value);
  EXPECT_EQ(stat, (Stat{.n = 3, .sum = 15, .sum_squares = 83, .min = 3, .max = 7}));
  EXPECT_EQ(stat.mean(), 5);
}

TEST(Stat, SquaresDoNotOverflow) {
  Stat stat;
  stat.Add(UINT64_MAX);
  EXPECT_EQ(stat.sum_squares, static_cast<Uint128>(UINT64_MAX) * UINT64_MAX);
}

TEST(Stat, SaturatesInsteadOfWrapping) {
  Stat stat{.n = UINT64_MAX, .sum = ~Uint128{0}, .sum_squares = ~Uint128{0}, .min = 1, .max = 1};
  stat.Add(1);
  EXPECT_EQ(stat.n, UINT64_MAX);
  EXPECT_EQ(stat.sum, ~Uint128{0});
  EXPECT_EQ(stat.sum_squares, ~Uint128{0});
}

TEST(Stat, EmptyIsNeutral) {
  Stat stat;
  stat.Add(4);
  const Stat before = stat;
  stat.Merge(Stat{});
  EXPECT_EQ(stat, before);
  Stat empty;
  empty.Merge(before);
  EXPECT_EQ(empty, before);
}

TEST(Profile, MergeIsCommutative) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    ASSERT_EQ(Merged(RandomProfile(seed), RandomProfile(seed + 1000)),
              Merged(RandomProfile(seed + 1000), RandomProfile(seed)))
        << seed;
  }
}

TEST(Profile, MergeIsAssociative) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Profile a = RandomProfile(seed), b = RandomProfile(seed + 1000), c = RandomProfile(seed + 2000);
    ASSERT_EQ(Merged(Merged(a, b), c), Merged(a, Merged(b, c))) << seed;
  }
}

// Ten thousand ranks are merged by whatever tree the user's scheduler makes of them.
TEST(Profile, MergingInAnyTreeGivesTheSame) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<Profile> parts;
    for (uint64_t i = 0; i < 100; ++i) parts.push_back(RandomProfile(random() % 500));
    Profile in_order;
    for (const Profile& part : parts) ASSERT_TRUE(in_order.Merge(part).ok());
    std::shuffle(parts.begin(), parts.end(), random);
    while (parts.size() > 1) {
      const size_t i = random() % parts.size();
      Profile taken = std::move(parts[i]);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_TRUE(parts[random() % parts.size()].Merge(std::move(taken)).ok());
    }
    ASSERT_EQ(parts.front(), in_order) << round;
    // The bounds were reached, or this test would not see what they do.
    size_t most = 0;
    for (const auto& [key, run] : in_order.runs) most = std::max(most, run.process_list.size());
    EXPECT_GT(most, 5u);
  }
}

TEST(Profile, KeepsTheSmallestProcessesAndCountsAll) {
  const auto one = [](uint32_t pid) {
    Profile profile;
    cli::Run run;
    run.processes = 1;
    run.process_list.push_back({.pid = pid});
    profile.runs.emplace(RunKey{}, run);
    return profile;
  };
  Profile total;
  for (uint32_t pid = 1000; pid > 0; --pid) ASSERT_TRUE(total.Merge(one(pid)).ok());
  const cli::Run& run = total.runs.begin()->second;
  EXPECT_EQ(run.processes, 1000u);
  ASSERT_EQ(run.process_list.size(), kMaxProcessesKept);
  EXPECT_EQ(run.process_list.front().pid, 1u);
  EXPECT_EQ(run.process_list.back().pid, kMaxProcessesKept);
}

TEST(Profile, RunsThatDifferInPrecisionPolicyStayApart) {
  Profile total = testing::SampleResNet18(testing::SampleA100());
  Profile other = total;
  cli::Run run = other.runs.begin()->second;
  other.runs.clear();
  run.key.policy.matmul_tf32 = 2;
  other.runs.emplace(run.key, run);
  EXPECT_TRUE(total.Merge(other).ok());
  EXPECT_EQ(total.runs.size(), 2u);
}

TEST(Profile, RefusesToAddDifferentUnits) {
  Profile total = RandomProfile(1);
  const Profile before = total;
  Profile other = RandomProfile(2);
  other.metrics["rf.flop.fp32"].scale = 1000;
  const std::string error(total.Merge(other).message());
  EXPECT_NE(error.find("rf.flop.fp32"), std::string::npos);
  EXPECT_EQ(total, before);
}

}  // namespace
}  // namespace rfinject::cli
