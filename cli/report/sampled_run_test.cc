#include "cli/report/sampled_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/fold.h"
#include "cli/report/report.h"
#include "cli/words/words.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

constexpr uint64_t kSteps = 1000, kEvery = 50;

// A measured run of 1000 steps, of which every fiftieth, and so many later, is sampled.
Profile Empty(uint64_t shift_odd) {
  Profile profile;
  profile.metrics["rf.time"] = {.name = "rf.time", .unit = "ns"};
  Run run;
  run.key.source = SourceKind::kMeasured;
  run.processes = 1;
  run.steps.steps = kSteps;
  for (uint64_t i = 0; i < kSteps / kEvery; ++i) {
    run.sampled_steps["rf.time"][i * kEvery + (i % 2) * shift_odd] = 1;
  }
  profile.runs.emplace(run.key, run);
  return profile;
}

// Adds a kernel that runs in the steps with that rest modulo 2 (2: in all), `ns` long, a percent more and less in
// turn.
void AddKernel(Profile* profile, const std::string& name, uint64_t rest, double ns) {
  Run& run = profile->runs.begin()->second;
  LaunchStats& stats = run.launches[{.phase = Phase::kForward, .op = name}];
  stats.launches = rest == 2 ? kSteps : kSteps / 2;
  int sign = 1;
  for (const auto& [step, processes] : run.sampled_steps["rf.time"]) {
    if (rest != 2 && step % 2 != rest) continue;
    const auto sample = static_cast<uint64_t>(ns * (1 + 0.01 * sign));
    sign = -sign;
    stats.metrics["rf.time"].Add(sample);
    stats.step_sums["rf.time"].push_back({step, sample});
  }
}

Report Fold(const Profile& profile) {
  return FoldRun(profile, profile.runs.begin()->second, Machine{}, {.by = By::kOp});
}

TEST(SampledRunTest, KernelsOfStepsInTurnAreKnownAsWellAsTheyScatterWhereTheyRun) {
  // Even steps take 10 us, odd ones 90: the network of a GAN that makes, and the one that judges.
  Profile profile = Empty(1);
  AddKernel(&profile, "even", 0, 10'000);
  AddKernel(&profile, "odd", 1, 90'000);
  const Report report = Fold(profile);
  EXPECT_NEAR(report.total.time_ns(), 500 * 10'000 + 500 * 90'000, 1000);
  ASSERT_EQ(report.total_time.trust, Trust::kByStep);
  // A percent over the root of ten samples of each kind; the difference of the kinds is no part of it.
  EXPECT_GT(report.total_time.relative, 0.003);
  EXPECT_LT(report.total_time.relative, 0.008);
  for (const Row& row : report.rows) {
    EXPECT_EQ(row.time.trust, Trust::kByStep) << row.op;
    EXPECT_GT(row.time.relative, 0.004) << row.op;
    EXPECT_LT(row.time.relative, 0.012) << row.op;
  }
}

TEST(SampledRunTest, AReportSaysThatItIsOfOrdinarySteps) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  EXPECT_THAT(FactsText(Fold(profile)), ::testing::Not(::testing::Contains(::testing::HasSubstr("ordinary"))));
  // A step that was slow where bytes were counted, and in no other sample.
  cli::Run& run = profile.runs.begin()->second;
  profile.metrics["rf.dram_bytes"] = {.name = "rf.dram_bytes", .unit = "B"};
  LaunchStats& stats = run.launches.begin()->second;
  for (uint64_t step = 10; step < kSteps; step += kEvery) {
    const uint64_t bytes = (step == 210 ? 15'000 : 10'000) + step % 7;
    run.sampled_steps["rf.dram_bytes"][step] = 1;
    stats.metrics["rf.dram_bytes"].Add(bytes);
    stats.step_sums["rf.dram_bytes"].push_back({step, bytes});
  }
  EXPECT_THAT(
      FactsText(Fold(profile)),
      ::testing::Contains("Times and bytes are those of ordinary steps: 1 sampled step that was longer is left out"));
  run.steps.slow = 3;
  run.steps.slow_extra_ns = 12'000'000;
  EXPECT_THAT(FactsText(Fold(profile)),
              ::testing::Contains("Times and bytes are those of ordinary steps: 3 steps took much longer, by "
                                  "12.0 ms together; 1 sampled step that was longer is left out"));
}

TEST(SampledRunTest, AKernelThatWasSampledInFewStepsHasNoInterval) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  auto& launches = profile.runs.begin()->second.launches;
  LaunchStats& stats = launches[{.phase = Phase::kForward, .op = "rare"}];
  stats.launches = 62;
  stats.metrics["rf.time"].Add(1000);
  stats.step_sums["rf.time"].push_back({kEvery, 1000});
  const Report report = Fold(profile);
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].time.trust, Trust::kByStep);
  EXPECT_EQ(report.rows[1].op, "rare");
  EXPECT_EQ(report.rows[1].time.trust, Trust::kFewSteps);
  EXPECT_EQ(report.total_time.trust, Trust::kByStep);
  EXPECT_NEAR(report.total.time_ns(), 1000 * 10'000 + 62 * 1000, 1000);
}

TEST(SampledRunTest, WhatWasNeverSampledTakesTheIntervalOfItsSumsAway) {
  // Sampled steps are all even.
  Profile profile = Empty(0);
  AddKernel(&profile, "even", 0, 10'000);
  AddKernel(&profile, "odd", 1, 90'000);
  const Report report = Fold(profile);
  EXPECT_EQ(report.untimed_launches, 500u);
  EXPECT_EQ(report.untimed_keys, 1u);
  EXPECT_EQ(report.total_time.trust, Trust::kFewSteps);
  EXPECT_EQ(report.total_time.relative, 0);
  EXPECT_NEAR(report.total_time.lacks, 0.5, 1e-9);
  for (const Row& row : report.rows) {
    if (row.op == "odd") {
      EXPECT_EQ(row.time.lacks, 1) << "its time is not known";
    } else {
      EXPECT_EQ(row.time.trust, Trust::kByStep);
    }
  }
}

TEST(SampledRunTest, AFewLaunchesThatWereNeverSampledWidenTheInterval) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  const double before = Fold(profile).total_time.relative;
  profile.runs.begin()->second.launches[{.phase = Phase::kForward, .op = "once"}].launches = 5;
  const Report report = Fold(profile);
  EXPECT_EQ(report.total_time.trust, Trust::kByStep);
  EXPECT_NEAR(report.total_time.relative, before + 2 * 5 / 1005.0, 1e-6);
}

TEST(SampledRunTest, FewSamplesOfStepsOfTwoKindsHaveNoInterval) {
  // The durations say that a fifth of the steps is longer, but no sample is known to be of those.
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  StepSums& steps = profile.runs.begin()->second.steps;
  EXPECT_EQ(Fold(profile).total_time.trust, Trust::kByStep);
  steps.of_kinds = 900, steps.rarer_kind = 100;
  EXPECT_EQ(Fold(profile).total_time.trust, Trust::kFewSteps) << "two of 20 are expected";
  steps.rarer_kind = 180;
  EXPECT_EQ(Fold(profile).total_time.trust, Trust::kByStep) << "four are";
  steps.steps = 60;
  EXPECT_EQ(Fold(profile).total_time.trust, Trust::kFewSteps) << "the window is short";
}

TEST(SampledRunTest, KindsOfStepsThatDifferByWhatRunsInThemAreKnown) {
  Profile profile = Empty(1);
  AddKernel(&profile, "even", 0, 10'000);
  AddKernel(&profile, "odd", 1, 90'000);
  StepSums& steps = profile.runs.begin()->second.steps;
  steps.of_kinds = 900, steps.rarer_kind = 100;
  EXPECT_EQ(Fold(profile).total_time.trust, Trust::kByStep);
}

}  // namespace
}  // namespace rfinject::cli
