#include "cli/report/keys/sampled_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/fold.h"
#include "cli/words/words.h"
#include "proto/wire/sum_code.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

constexpr uint64_t kStepsOfRun = 1000, kEvery = 50;

// A measured run of 1000 steps, of which every fiftieth, and so many later, is sampled.
Profile Empty(uint64_t shift_odd) {
  Profile profile;
  profile.metrics["rf.time"] = {.name = "rf.time", .unit = "ns"};
  Run run;
  run.key.source = SourceKind::kMeasured;
  run.processes = 1;
  run.steps.steps = kStepsOfRun;
  for (uint64_t i = 0; i < kStepsOfRun / kEvery; ++i) {
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
  stats.launches = rest == 2 ? kStepsOfRun : kStepsOfRun / 2;
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
  EXPECT_NEAR(report.total.sums.time_ns(), 500 * 10'000 + 500 * 90'000, 1000);
  ASSERT_EQ(report.total.time.trust, Trust::kByStep);
  // A percent over the root of ten samples of each kind; the difference of the kinds is no part of it.
  EXPECT_GT(report.total.time.relative, 0.003);
  EXPECT_LT(report.total.time.relative, 0.008);
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
  for (uint64_t step = 10; step < kStepsOfRun; step += kEvery) {
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

// Bytes are of a part of a step's keys and scatter more, so that a slow step does not stand out in them.
TEST(SampledRunTest, AStepThatIsSlowByItsTimeIsInNoBytesEither) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  cli::Run& run = profile.runs.begin()->second;
  profile.metrics["rf.dram_bytes"] = {.name = "rf.dram_bytes", .unit = "B"};
  LaunchStats& stats = run.launches.begin()->second;
  stats.step_sums["rf.time"][7].sum = 15'000;
  for (size_t i = 0; i < kStepsOfRun / kEvery; ++i) {
    const uint64_t step = stats.step_sums["rf.time"][i].step, bytes = i == 7 ? 1300 : 800 + 400 * (i % 2);
    run.sampled_steps["rf.dram_bytes"][step] = 1;
    stats.metrics["rf.dram_bytes"].Add(bytes);
    stats.step_sums["rf.dram_bytes"].push_back({step, bytes});
  }
  const Report report = Fold(profile);
  EXPECT_EQ(report.slow.set_aside, 1u);
  EXPECT_NEAR(report.total.sums.dram_bytes() / kStepsOfRun, (10 * 800 + 9 * 1200) / 19.0, 0.1);
}

// What is left out is taken from a key's sums by step, and a trace keeps these within 1/4096: steps that look alike
// there are not known to the last byte.
TEST(SampledRunTest, SumsThatATraceRoundsAlikeAreNotExact) {
  constexpr uint64_t kBytes = 703'254'456;
  Profile profile = Empty(0);
  profile.metrics["rf.dram_bytes"] = {.name = "rf.dram_bytes", .unit = "B"};
  AddKernel(&profile, "always", 2, 10'000);
  cli::Run& run = profile.runs.begin()->second;
  LaunchStats& stats = run.launches.begin()->second;
  for (const StepSum& timed : stats.step_sums["rf.time"]) {
    const uint64_t bytes = timed.step == 350 ? kBytes * 3 / 2 : kBytes + timed.step;
    run.sampled_steps["rf.dram_bytes"][timed.step] = 1;
    stats.metrics["rf.dram_bytes"].Add(bytes);
    stats.step_sums["rf.dram_bytes"].push_back({timed.step, wire::SumOfCode(wire::SumCode(bytes))});
  }
  const Report report = Fold(profile);
  ASSERT_EQ(report.slow.set_aside, 1u);
  const double mean = report.total.sums.dram_bytes() / kStepsOfRun, off = std::fabs(mean / kBytes - 1);
  EXPECT_GT(off, 1e-6);
  EXPECT_LT(off, report.total.bytes.relative);
  EXPECT_LT(report.total.bytes.relative, 1.0 / 4096);
}

// A window of 50 steps: times in every fifth, bytes in the steps behind. The steps in which nothing was sampled all
// took a millisecond.
Profile Window(const std::vector<uint64_t>& longer) {
  Profile profile;
  profile.metrics["rf.time"] = {.name = "rf.time", .unit = "ns"};
  profile.metrics["rf.dram_bytes"] = {.name = "rf.dram_bytes", .unit = "B"};
  Run run;
  run.key.source = SourceKind::kMeasured;
  run.processes = 1;
  run.steps.steps = 50;
  for (uint64_t i = 0; i < 30; ++i) run.steps.duration_ns.Add(1'000'000 + i * 7919 % 5000);
  LaunchStats& stats = run.launches[{.phase = Phase::kForward, .op = "always"}];
  stats.launches = 50;
  for (uint64_t step = 0; step < 50; ++step) {
    if (step % 5 > 1) continue;
    const std::string metric = step % 5 == 0 ? "rf.time" : "rf.dram_bytes";
    const bool is_longer = std::ranges::find(longer, step) != longer.end();
    const uint64_t value = (is_longer ? 15'000 : 10'000) + step * step * 7919 % 53;
    run.sampled_steps[metric][step] = 1;
    stats.metrics[metric].Add(value);
    stats.step_sums[metric].push_back({step, value});
  }
  profile.runs.emplace(run.key, run);
  return profile;
}

// Three of ten are many for a kind of step that is rare; but two dozen other steps show none.
TEST(SampledRunTest, SlowStepsAreRareIfTheStepsBetweenShowNone) {
  const Report report = Fold(Window({6, 21, 36}));
  EXPECT_EQ(report.slow.set_aside, 3u);
  ASSERT_EQ(report.total.bytes.trust, Trust::kByStep);
  EXPECT_LT(report.total.bytes.relative, 0.01);
  EXPECT_EQ(report.total.time.trust, Trust::kByStep);
}

// What the steps' durations do not show may be a clock that the host hides, and slow for longer than the sampled
// step.
TEST(SampledRunTest, SlowSamplesAtAnEndOrInARowMayBeAnotherClock) {
  EXPECT_EQ(Fold(Window({20})).total.time.trust, Trust::kByStep);
  EXPECT_EQ(Fold(Window({0})).total.time.trust, Trust::kDrifting);
  EXPECT_EQ(Fold(Window({46})).total.time.trust, Trust::kDrifting);
  EXPECT_EQ(Fold(Window({20, 21})).total.time.trust, Trust::kDrifting);
  Profile profile = Window({0});
  profile.runs.begin()->second.steps.slow = 1;  // such steps are known by their durations
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kByStep);
}

// Twenty samples of a key in a thousand steps, of which it runs in every second: as textbooks have it.
TEST(SampledRunTest, StepsInTurnHaveTheDegreesOfFreedomOfEachKind) {
  Profile profile = Empty(1);
  AddKernel(&profile, "even", 0, 10'000);
  AddKernel(&profile, "odd", 1, 10'000);
  const Report report = Fold(profile);
  // Ten samples of each, a percent more and less in turn.
  const double deviation = 0.01 * std::sqrt(10 / 9.0), rest = std::sqrt(1 - 20.0 / 1000);
  const double of_one = deviation / std::sqrt(10) * rest;
  for (const Row& row : report.rows) EXPECT_NEAR(row.time.relative, 2.262 * of_one, 2e-5) << row.op;
  // Two equal variances of nine degrees of freedom each have eighteen.
  EXPECT_NEAR(report.total.time.relative, 2.101 * of_one / std::sqrt(2), 2e-5);
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
  EXPECT_EQ(report.total.time.trust, Trust::kByStep);
  EXPECT_NEAR(report.total.sums.time_ns(), 1000 * 10'000 + 62 * 1000, 1000);
}

TEST(SampledRunTest, WhatWasNeverSampledTakesTheIntervalOfItsSumsAway) {
  // Sampled steps are all even.
  Profile profile = Empty(0);
  AddKernel(&profile, "even", 0, 10'000);
  AddKernel(&profile, "odd", 1, 90'000);
  const Report report = Fold(profile);
  EXPECT_EQ(report.attribution.untimed_launches, 500u);
  EXPECT_EQ(report.attribution.untimed_keys, 1u);
  EXPECT_EQ(report.total.time.trust, Trust::kFewSteps);
  EXPECT_EQ(report.total.time.relative, 0);
  EXPECT_NEAR(report.total.time.lacks, 0.5, 1e-9);
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
  const double before = Fold(profile).total.time.relative;
  profile.runs.begin()->second.launches[{.phase = Phase::kForward, .op = "once"}].launches = 5;
  const Report report = Fold(profile);
  EXPECT_EQ(report.total.time.trust, Trust::kByStep);
  EXPECT_NEAR(report.total.time.relative, before + 2 * 5 / 1005.0, 1e-6);
}

// A key whose bytes were never sampled may move as many a second as the one that moves most.
TEST(SampledRunTest, BytesThatWereNeverSampledMayBeAsManyAsAnyOthers) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  AddKernel(&profile, "dense", 2, 100);
  auto& launches = profile.runs.begin()->second.launches;
  const auto add_bytes = [&](const char* op, uint64_t bytes) {
    LaunchStats& stats = launches[{.phase = Phase::kForward, .op = op}];
    for (const StepSum& one : stats.step_sums.at("rf.time")) {
      profile.runs.begin()->second.sampled_steps[std::string(kMetricDramBytes)][one.step] = 1;
      stats.metrics[std::string(kMetricDramBytes)].Add(bytes);
      stats.step_sums[std::string(kMetricDramBytes)].push_back({one.step, bytes});
    }
  };
  add_bytes("always", 10'000);
  add_bytes("dense", 300);  // three bytes a ns
  LaunchStats& uncounted = launches[{.phase = Phase::kForward, .op = "uncounted"}];
  uncounted = launches[{.phase = Phase::kForward, .op = "dense"}];
  uncounted.metrics.erase(std::string(kMetricDramBytes));
  uncounted.step_sums.erase(std::string(kMetricDramBytes));
  EXPECT_EQ(Fold(profile).total.bytes.trust, Trust::kFewSteps) << "100 ns of three bytes, beside 10,300 bytes";
  for (auto& sum : launches[{.phase = Phase::kForward, .op = "uncounted"}].step_sums.at("rf.time")) sum.sum /= 10;
  Stat& time = launches[{.phase = Phase::kForward, .op = "uncounted"}].metrics.at("rf.time");
  time.sum /= 10;
  EXPECT_NEAR(Fold(profile).total.bytes.relative, 30.0 / 10'300, 1e-4);
}

// Every second sampled step takes longer, and bytes are of the others only: nothing is known of what the longer move.
TEST(SampledRunTest, BytesOfOneKindOfStepsHaveNoInterval) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  LaunchStats& stats = profile.runs.begin()->second.launches.begin()->second;
  auto& counted = profile.runs.begin()->second.sampled_steps[std::string(kMetricDramBytes)];
  const auto count = [&](size_t which) {
    const uint64_t step = stats.step_sums.at("rf.time")[which].step;
    counted[step] = 1;
    stats.metrics[std::string(kMetricDramBytes)].Add(1000 + which % 3);
    stats.step_sums[std::string(kMetricDramBytes)].push_back({step, 1000 + which % 3});
  };
  for (size_t i = 0; i < stats.step_sums.at("rf.time").size(); i += 2) count(i);
  EXPECT_EQ(Fold(profile).total.bytes.trust, Trust::kByStep);
  stats.metrics.at("rf.time") = {};
  for (size_t i = 0; i < stats.step_sums.at("rf.time").size(); ++i) {
    StepSum& one = stats.step_sums.at("rf.time")[i];
    one.sum = i % 2 == 0 ? 10'000 : 20'000;
    stats.metrics.at("rf.time").Add(one.sum);
  }
  EXPECT_EQ(Fold(profile).total.bytes.trust, Trust::kFewSteps);
  // Also where the times of each kind weigh what the durations say.
  stats.metrics.at("rf.time") = {};
  for (size_t i = 0; i < stats.step_sums.at("rf.time").size(); ++i) {
    StepSum& one = stats.step_sums.at("rf.time")[i];
    one.sum = (i % 4 == 1 ? 20'000 : 10'000) + i * 7 % 5 * 10;
    stats.metrics.at("rf.time").Add(one.sum);
  }
  StepSums& steps = profile.runs.begin()->second.steps;
  steps.of_kinds = steps.in_rhythm = 980, steps.rarer_kind = 245;
  for (uint64_t i = 0; i < 980; ++i) steps.duration_ns.Add(i % 4 == 1 ? 40'000 : 20'000);
  ASSERT_EQ(Fold(profile).total.time.trust, Trust::kByStep);
  EXPECT_LT(Fold(profile).total.time.relative, 0.01);
  EXPECT_EQ(Fold(profile).total.bytes.trust, Trust::kFewSteps);
}

TEST(SampledRunTest, FewSamplesOfStepsOfTwoKindsHaveNoInterval) {
  // The durations say that a fifth of the steps is longer, but no sample is known to be of those.
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  StepSums& steps = profile.runs.begin()->second.steps;
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kByStep);
  steps.of_kinds = 900, steps.rarer_kind = 100;
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kFewSteps) << "two of 20 are expected";
  steps.rarer_kind = 180;
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kFewSteps) << "four are, and none is among the samples";
  steps.rarer_kind = 400;
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kByStep) << "which is the rarer one is not known";
  steps.steps = 60;
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kFewSteps) << "the window is short";
}

// The share of a kind in the run is that of the durations, and not that of the samples.
TEST(SampledRunTest, KindsOfStepsThatRunTheSameLaunchesWeighWhatTheirDurationsSay) {
  Profile profile = Empty(0);
  AddKernel(&profile, "always", 2, 10'000);
  cli::Run& run = profile.runs.begin()->second;
  LaunchStats& stats = run.launches.begin()->second;
  stats.metrics["rf.time"] = {};
  std::vector<StepSum>& sums = stats.step_sums["rf.time"];
  for (size_t i = 0; i < sums.size(); ++i) {
    if (i % 8 == 1) sums[i].sum = sums[i].sum * 3 / 2;  // three of twenty
    stats.metrics["rf.time"].Add(sums[i].sum);
  }
  run.steps.of_kinds = 980, run.steps.rarer_kind = 247;  // and 250 of the run
  for (uint64_t i = 0; i < 980; ++i) run.steps.duration_ns.Add(i % 4 == 1 ? 15'000 : 10'000);
  const Report report = Fold(profile);
  ASSERT_EQ(report.total.time.trust, Trust::kByStep);
  const double right = 0.75 * 10'000 + 0.25 * 15'000;
  EXPECT_NEAR(report.total.sums.time_ns() / kStepsOfRun / right, 1, report.total.time.relative);
  // A percent over the root of twenty; the difference of the kinds is no part of it.
  EXPECT_GT(report.total.time.relative, 0.003);
  EXPECT_LT(report.total.time.relative, 0.01);
  EXPECT_EQ(report.rows[0].time.relative, report.total.time.relative);
  // In a rhythm that is right of the steps that were not looked at, too, however many.
  run.steps.of_kinds = 500, run.steps.rarer_kind = 125;
  const double by_chance = Fold(profile).total.time.relative;
  run.steps.in_rhythm = 500;
  EXPECT_LT(Fold(profile).total.time.relative, by_chance);
  EXPECT_NEAR(Fold(profile).total.time.relative, report.total.time.relative, 1e-4);
  // It is right to a step, which is all that is uncertain where the steps of a kind are alike.
  for (size_t i = 0; i < sums.size(); ++i) sums[i].sum = i % 8 == 1 ? 15'000 : 10'000;
  EXPECT_GT(Fold(profile).total.time.relative, 5'000 / static_cast<double>(kStepsOfRun) / right);
  EXPECT_LT(Fold(profile).total.time.relative, 6'000 / static_cast<double>(kStepsOfRun) / right);
  run.steps.in_rhythm = 0;
  // Samples that are of one kind only say nothing of the other.
  for (StepSum& sum : sums) sum.sum = 10'000 + 20 * (sum.step * 5 % 7);
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kFewSteps);
}

// A key that was looked at in some of the sampled steps has its kinds as chance put them there.
TEST(SampledRunTest, KindsWeighAlsoInKeysThatWereSampledInSomeSteps) {
  Profile profile = Empty(0);
  cli::Run& run = profile.runs.begin()->second;
  run.sampled_steps.clear();
  for (const std::string name : {"always", "in parts"}) {
    LaunchStats& stats = run.launches[{.phase = Phase::kForward, .op = name}];
    stats.launches = kStepsOfRun;
    for (uint64_t i = 0; i < 50; ++i) {
      const bool longer = i % 4 == 1;  // of the others only every second is looked at in parts
      if (name == "in parts" && !longer && i % 2 == 0) continue;
      run.sampled_steps["rf.time"][i * 20] = 1;
      const uint64_t sample = (longer ? 15'000 : 10'000) + i * 7 % 5 * 10;
      stats.metrics["rf.time"].Add(sample);
      stats.step_sums["rf.time"].push_back({i * 20, sample});
    }
  }
  run.steps.of_kinds = run.steps.in_rhythm = 950, run.steps.rarer_kind = 237;
  for (uint64_t i = 0; i < 950; ++i) run.steps.duration_ns.Add(i % 4 == 1 ? 30'000 : 20'000);
  const Report report = Fold(profile);
  ASSERT_EQ(report.total.time.trust, Trust::kByStep);
  for (const Row& row : report.rows) {
    const double right = (713 * 10'020 + 237 * 15'020) / 950.0;
    EXPECT_NEAR(row.sums.time_ns() / kStepsOfRun / right, 1, 0.001) << row.op;
    EXPECT_LT(row.time.relative, 0.002) << row.op;
  }
}

TEST(SampledRunTest, KindsOfStepsThatDifferByWhatRunsInThemAreKnown) {
  Profile profile = Empty(1);
  AddKernel(&profile, "even", 0, 10'000);
  AddKernel(&profile, "odd", 1, 90'000);
  StepSums& steps = profile.runs.begin()->second.steps;
  steps.of_kinds = 900, steps.rarer_kind = 100;
  EXPECT_EQ(Fold(profile).total.time.trust, Trust::kByStep);
}

}  // namespace
}  // namespace rfinject::cli
