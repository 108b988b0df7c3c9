#include "cli/profile/limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/testing/sample_profile.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Uint128 TimeIn(const Run& run, Phase phase) {
  Uint128 sum = 0;
  for (const auto& [key, stats] : run.launches) {
    if (key.phase == phase && stats.metrics.contains("rf.time")) sum += stats.metrics.at("rf.time").sum;
  }
  return sum;
}

TEST(Limit, WhatIsWithinStaysAsItIs) {
  Profile profile = testing::SampleResNet18(testing::SampleA100());
  const Profile before = profile;
  EXPECT_THAT(LimitProfile({}, &profile), IsEmpty());
  EXPECT_EQ(profile, before);
  EXPECT_THAT(LimitProfile({.runs = 0, .rows = 0, .name = 0}, &profile), IsEmpty());
  EXPECT_EQ(profile, before);
}

TEST(Limit, RunsWithTheMostLaunchesStay) {
  Profile profile;
  for (uint64_t batch = 1; batch <= 20; ++batch) {
    cli::Run run;
    run.key.batch_size = batch;
    run.launches[{.op = "aten::add"}].launches = batch == 7 ? 1000 : batch;
    profile.runs.emplace(run.key, run);
  }
  EXPECT_THAT(LimitProfile({.runs = 2}, &profile), ElementsAre(HasSubstr("only the 2 of 20 runs")));
  ASSERT_THAT(profile.runs, SizeIs(2));
  EXPECT_EQ(profile.runs.begin()->first.batch_size, 7u);
  for (const auto& [key, run] : profile.runs) {
    EXPECT_EQ(run.kept.diagnostic.begin()->id, "limit");
  }
}

TEST(Limit, KeysBeyondItAreAddedUpAndNoSumChanges) {
  Profile profile = testing::SampleResNet18(testing::SampleA100());
  const cli::Run before = profile.runs.begin()->second;
  ASSERT_GT(before.launches.size(), 50u);
  EXPECT_THAT(LimitProfile({.rows = 20}, &profile), ElementsAre(HasSubstr("launch keys with the least time")));
  const cli::Run& run = profile.runs.begin()->second;
  EXPECT_LE(run.launches.size(), 20u + kPhaseNames.size());
  for (size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
    EXPECT_EQ(TimeIn(run, static_cast<Phase>(phase)), TimeIn(before, static_cast<Phase>(phase)));
  }
}

TEST(Limit, LongTextsAreCutAndStayDifferent) {
  Profile profile = testing::SampleResNet18(testing::SampleA100());
  cli::Run& run = profile.runs.begin()->second;
  const size_t keys = run.launches.size();
  const std::string middle(100000, 'x');
  for (const char* text : {"a", "b"}) {
    run.launches[{.layer = {"ResNet", "é" + middle + text + middle + "é"}, .op = middle + text + middle}].launches =
        1;
  }
  EXPECT_THAT(LimitProfile({.name = 200}, &profile), ElementsAre(HasSubstr("4 texts of more than 200 bytes")));
  const cli::Run& after = profile.runs.begin()->second;
  EXPECT_EQ(after.launches.size(), keys + 2);
  for (const auto& [key, stats] : after.launches) {
    EXPECT_LE(key.op.size(), 200u);
    EXPECT_LE(key.layer.path.size(), 200u);
  }
}

}  // namespace
}  // namespace rfinject::cli
