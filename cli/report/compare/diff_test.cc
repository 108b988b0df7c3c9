#include "cli/report/compare/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

#include "cli/format/testing/written.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/view/compare_views.h"

namespace rfinject::cli {
namespace {

Machine OnA100(const Run&) { return testing::SampleA100(); }
Machine OwnMachine(const Run& run) {
  return run.key.gpu.find("V100") != std::string::npos ? testing::SampleV100() : testing::SampleA100();
}

// One kernel in layer "conv", measured with these times.
Profile Measured(const std::vector<uint64_t>& times, const std::string& layer = "conv", uint64_t launches = 0) {
  Profile profile;
  for (const std::string_view name : {kMetricTime, kMetricDramBytes}) {
    profile.metrics.emplace(std::string(name), MetricInfo{.name = std::string(name), .unit = "ns"});
  }
  Run run;
  run.key.source = SourceKind::kMeasured;
  run.key.models = {"Net"};
  run.key.parameters = 10;
  run.key.training = true;
  run.processes = 1;
  run.steps.steps = 1;
  LaunchStats& stats = run.launches[LaunchKey{.layer = {"Net", layer}, .phase = Phase::kForward, .op = "aten::conv"}];
  stats.launches = launches > 0 ? launches : times.size();
  for (const uint64_t time : times) {
    stats.metrics[std::string(kMetricTime)].Add(time);
    stats.metrics[std::string(kMetricDramBytes)].Add(1000);
  }
  RunKey key = run.key;
  profile.runs.emplace(std::move(key), std::move(run));
  return profile;
}

const Change& TimeOf(const Diff& diff) { return diff.pairs.at(0).rows.at(0)[Compared::kTime]; }

TEST(DiffTest, BothSidesAreOneStepInEveryQuantity) {
  Profile profile = Measured({1000, 1000});
  RunKey key = profile.runs.begin()->first;
  cli::Run run = profile.runs.begin()->second;
  run.steps.steps = 2;
  run.devices = {DeviceInfo{.name = "H100", .chip = "GH100"}};
  for (const char* name : {"sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum", "lts__t_bytes.sum"}) {
    profile.metrics.emplace(name, MetricInfo{.name = name});
    for (int launch = 0; launch < 2; ++launch) run.launches.begin()->second.metrics[name].Add(512);
  }
  profile.runs[key] = run;
  const Diff diff = MakeDiff(profile, profile, OnA100, {});
  const Sums& step = diff.pairs.at(0).total.after;
  EXPECT_EQ(step.time_ns(), 1000);
  EXPECT_EQ(step.l2_bytes(), 512);
  EXPECT_EQ(step.total_legacy_flop(), step.total_flop());
  EXPECT_EQ(step.total_legacy_flop(), 512);
}

TEST(DiffTest, OfAnythingWithItselfIsEmpty) {
  for (const By by : {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel}) {
    for (const Profile& profile :
         {testing::SampleResNet18(testing::SampleA100(), 3), testing::SampleMeasured(testing::SampleA100())}) {
      const Diff diff = MakeDiff(profile, profile, OnA100, {.by = by});
      ASSERT_EQ(diff.pairs.size(), 1u);
      EXPECT_TRUE(diff.pairs[0].caveats.empty());
      for (const DiffRow& row : diff.pairs[0].rows)
        EXPECT_FALSE(row.Changed()) << row.layer << " " << PhaseName(row.phase);
      EXPECT_FALSE(diff.pairs[0].total.Changed());
      const std::string text = testing::Written(DiffDocument(diff), "table");
      EXPECT_NE(text.find("No difference"), std::string::npos) << text;
    }
  }
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Profile profile = testing::RandomProfile(seed);
    const Diff diff = MakeDiff(profile, profile, OnA100, {});
    for (const RunDiff& pair : diff.pairs) {
      for (const DiffRow& row : pair.rows) ASSERT_FALSE(row.Changed()) << seed;
    }
  }
}

TEST(DiffTest, ChangesTurnAround) {
  const Profile a = testing::SampleResNet18(testing::SampleV100(), 2);
  const Profile b = testing::SampleResNet18(testing::SampleA100(), 3);
  const Diff there = MakeDiff(a, b, OwnMachine, {}), back = MakeDiff(b, a, OwnMachine, {});
  ASSERT_EQ(there.pairs[0].rows.size(), back.pairs[0].rows.size());
  for (size_t i = 0; i < there.pairs[0].rows.size(); ++i) {
    const Change &forth = there.pairs[0].rows[i][Compared::kTime], &reverse = back.pairs[0].rows[i][Compared::kTime];
    EXPECT_DOUBLE_EQ(forth.difference(), -reverse.difference());
    EXPECT_EQ(forth.verdict, reverse.verdict);
  }
}

// What is compared is what the reports of both sides show.
TEST(DiffTest, EstimatesAreComparedByTheirExpectedTimes) {
  const Profile a = testing::SampleResNet18(testing::SampleV100(), 2);
  Profile b = testing::SampleResNet18(testing::SampleA100(), 3);
  const auto step = [](const Profile& profile, const Machine& machine) {
    return FoldRun(profile, profile.runs.begin()->second, machine, {}).clock.gpu_ns;
  };
  const auto time = [](const Diff& diff) { return diff.pairs.at(0).total[Compared::kTime]; };
  const Diff diff = MakeDiff(a, b, OwnMachine, {});
  EXPECT_TRUE(diff.pairs[0].expected);
  EXPECT_DOUBLE_EQ(time(diff).before, step(a, testing::SampleV100()));
  EXPECT_DOUBLE_EQ(time(diff).after, step(b, testing::SampleA100()));
  EXPECT_LT(diff.pairs[0].total.before.ideal_ns(), time(diff).before);
  std::string text = testing::Written(DiffDocument(diff), "table");
  EXPECT_NE(text.find("GPU time a step, expected: "), std::string::npos) << text;
  EXPECT_NE(text.find("ideal, by"), std::string::npos) << text;

  // What to expect of the other side's GPU is not known: an ideal time beside an expected one would look like a gain.
  rfinject::cli::Run unknown = b.runs.begin()->second;
  b.runs.clear();
  unknown.key.estimated_gpu = "T1000000";
  RunKey key = unknown.key;
  b.runs.emplace(std::move(key), std::move(unknown));
  const Diff ideal = MakeDiff(a, b, OwnMachine, {});
  EXPECT_FALSE(ideal.pairs[0].expected);
  Profile recorded = a;  // the times of its trace, with the interval of launches
  recorded.runs.begin()->second.key.source = SourceKind::kMeasured;
  EXPECT_DOUBLE_EQ(time(ideal).before, step(recorded, testing::SampleV100()));
  EXPECT_GT(time(ideal).before, diff.pairs[0].total.before.ideal_ns());
  text = testing::Written(DiffDocument(ideal), "table");
  EXPECT_NE(text.find("GPU time a step, ideal: "), std::string::npos) << text;
}

// Numbers are a step's, so runs of different length compare.
TEST(DiffTest, RunsOfDifferentLengthAreEqualPerStep) {
  const Diff diff = MakeDiff(testing::SampleResNet18(testing::SampleA100(), 2),
                             testing::SampleResNet18(testing::SampleA100(), 5), OnA100, {});
  ASSERT_EQ(diff.pairs.size(), 1u);
  EXPECT_TRUE(diff.pairs[0].per_step);
  for (const DiffRow& row : diff.pairs[0].rows) EXPECT_FALSE(row.Changed()) << row.layer;
}

TEST(DiffTest, RowsAddUpToTheTotalAndAreSorted) {
  const Diff diff = MakeDiff(testing::SampleResNet18(testing::SampleV100(), 2),
                             testing::SampleResNet18(testing::SampleA100(), 2), OwnMachine, {});
  double before = 0, after = 0, last = INFINITY;
  for (const DiffRow& row : diff.pairs[0].rows) {
    before += row[Compared::kTime].before;
    after += row[Compared::kTime].after;
    const double change = std::fabs(row[Compared::kTime].difference());
    EXPECT_LE(change, last);
    last = change;
  }
  EXPECT_NEAR(before, diff.pairs[0].total[Compared::kTime].before, 1e-6 * before);
  EXPECT_NEAR(after, diff.pairs[0].total[Compared::kTime].after, 1e-6 * after);
  EXPECT_EQ(diff.pairs[0].total[Compared::kTime].verdict, Verdict::kReal);
}

// Means 110 and 120, variance 50 of each, 5 samples: Welch's half width is 2.306 * sqrt(50/5 + 50/5) = 10.3 a launch.
TEST(DiffTest, WelchDecides) {
  const Profile before = Measured({100, 105, 110, 115, 120});
  const Change noise = TimeOf(MakeDiff(before, Measured({110, 115, 120, 125, 130}), OnA100, {}));
  EXPECT_EQ(noise.verdict, Verdict::kNoise);
  EXPECT_NEAR(noise.half_width, 5 * 2.306 * std::sqrt(2 * 62.5 / 5), 0.05);
  EXPECT_EQ(TimeOf(MakeDiff(before, Measured({130, 135, 140, 145, 150}), OnA100, {})).verdict, Verdict::kReal);
}

// A kernel of 100 us in 20 sampled steps of 2000, one launch each, with a clock that all have in common.
Profile SampledProfile(uint64_t seed, double factor, double drift = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Profile profile;
  profile.metrics["rf.time"] = {.name = "rf.time", .unit = "ns"};
  Run run;
  run.key.source = SourceKind::kMeasured;
  run.processes = 1;
  run.steps.steps = 2000;
  for (uint64_t step = 100; step < 2000; step += 100) {
    run.sampled_steps["rf.time"][step] = 1;
    const double common = 1 + 0.01 * normal(random) + drift * static_cast<double>(step);
    for (const char* op : {"a", "b", "c"}) {
      LaunchStats& stats = run.launches[{.phase = Phase::kForward, .op = op}];
      stats.launches = 2000;
      const auto ns = static_cast<uint64_t>(1e5 * factor * common * (1 + 0.003 * normal(random)));
      stats.metrics["rf.time"].Add(ns);
      stats.step_sums["rf.time"].push_back({step, ns});
    }
  }
  profile.runs.emplace(run.key, run);
  return profile;
}

TEST(DiffTest, EqualRunsShowSomethingInOneOfTwentyAtMost) {
  int any = 0;
  constexpr int kPairs = 300;
  for (int i = 0; i < kPairs; ++i) {
    const uint64_t seed = 2 * static_cast<uint64_t>(i);
    const Diff diff = MakeDiff(SampledProfile(seed, 1), SampledProfile(seed + 1, 1), OnA100, {.by = By::kOp});
    any += std::any_of(diff.pairs[0].rows.begin(), diff.pairs[0].rows.end(),
                       [](const DiffRow& row) { return row[Compared::kTime].verdict == Verdict::kReal; });
    EXPECT_TRUE(diff.pairs[0].paired);
  }
  EXPECT_LE(any, kPairs / 20 + 8);  // two deviations
}

TEST(DiffTest, WhereNoStepIsKnownTheTotalIsRealInOneOfTwentyAtMost) {
  // The kernels have a clock in common, as those of a file of ncu have that was not locked.
  const auto without_steps = [](uint64_t seed) {
    Profile profile = SampledProfile(seed, 1);
    auto run = profile.runs.begin()->second;
    run.key.source = SourceKind::kImported;
    run.sampled_steps.clear();
    for (auto& [key, stats] : run.launches) stats.step_sums.clear();
    profile.runs.clear();
    profile.runs.emplace(run.key, run);
    return profile;
  };
  int real = 0;
  constexpr int kPairs = 300;
  for (int i = 0; i < kPairs; ++i) {
    const uint64_t seed = 2 * static_cast<uint64_t>(i);
    const Diff diff = MakeDiff(without_steps(seed), without_steps(seed + 1), OnA100, {.by = By::kOp});
    real += diff.pairs[0].total[Compared::kTime].verdict == Verdict::kReal;
  }
  EXPECT_LE(real, kPairs / 20 + 8);  // two deviations
}

TEST(DiffTest, SaysFromWhereOnAChangeWouldHaveBeenSeen) {
  const Diff diff = MakeDiff(SampledProfile(1, 1), SampledProfile(2, 1), OnA100, {.by = By::kOp});
  const Change& time = diff.pairs[0].total[Compared::kTime];
  ASSERT_EQ(time.verdict, Verdict::kNoise);
  EXPECT_GT(time.visible, time.half_width);
  int seen = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Diff changed = MakeDiff(SampledProfile(seed, 1), SampledProfile(100 + seed, 1 + time.visible / time.before),
                                  OnA100, {.by = By::kOp});
    seen += changed.pairs[0].total[Compared::kTime].verdict == Verdict::kReal;
  }
  EXPECT_GT(seen, 36);
}

TEST(DiffTest, NamesWhatHasNoInterval) {
  const Diff diff = MakeDiff(SampledProfile(1, 1), SampledProfile(2, 1, 1e-4), OnA100, {.by = By::kOp});
  const Change& time = diff.pairs[0].total[Compared::kTime];
  EXPECT_EQ(time.verdict, Verdict::kUnknown);
  EXPECT_EQ(time.trust, Trust::kDrifting);
}

// Six steps side by side, as a recording has them, say how large a difference chance makes at least.
TEST(DiffTest, WhatStepsDifferByIsChance) {
  const auto recorded = [](double factor) {
    Profile profile = Measured({});
    cli::Run& run = profile.runs.begin()->second;
    LaunchStats& stats = run.launches.begin()->second;
    run.steps.steps = 6;
    const std::vector<uint64_t> times = {1000, 1030, 990, 1010, 1020, 980};
    for (uint64_t step = 0; step < times.size(); ++step) {
      const auto time = static_cast<uint64_t>(factor * static_cast<double>(times[step]));
      ++stats.launches;
      stats.metrics[std::string(kMetricTime)].Add(time);
      stats.step_sums[std::string(kMetricTime)].push_back({step, time});
      run.sampled_steps[std::string(kMetricTime)][step] = 1;
    }
    return profile;
  };
  const Change chance = TimeOf(MakeDiff(recorded(1), recorded(1.01), OnA100, {}));
  EXPECT_EQ(chance.verdict, Verdict::kNoise);
  EXPECT_TRUE(std::isinf(chance.half_width));
  EXPECT_EQ(TimeOf(MakeDiff(recorded(1.01), recorded(1), OnA100, {})).verdict, Verdict::kNoise);
  const Change larger = TimeOf(MakeDiff(recorded(1), recorded(1.2), OnA100, {}));
  EXPECT_EQ(larger.verdict, Verdict::kUnknown);
  EXPECT_EQ(larger.trust, Trust::kFewSteps);
  EXPECT_NE(testing::Written(DiffDocument(MakeDiff(recorded(1), recorded(1.01), OnA100, {})), "table").find("chance"),
            std::string::npos);
}

TEST(DiffTest, GatesFailForRealChangesBeyondTheirLimit) {
  Gate gate;
  EXPECT_FALSE(ParseGate("step_time", &gate));
  EXPECT_FALSE(ParseGate("step_time>5", &gate));
  EXPECT_FALSE(ParseGate("speed>+5%", &gate));
  EXPECT_EQ(GateNames(), "step_time, step_flop, step_bytes and oi");
  ASSERT_TRUE(ParseGate("step_time>+5%", &gate));
  EXPECT_DOUBLE_EQ(gate.limit, 0.05);
  const auto outcome = [&](const Profile& after) {
    return MakeDiff(SampledProfile(1, 1), after, OnA100, {.gates = {gate}}).gates[0].outcome;
  };
  EXPECT_EQ(outcome(SampledProfile(2, 1.2)), Gate::Outcome::kFails);
  EXPECT_EQ(outcome(SampledProfile(2, 1.03)), Gate::Outcome::kHolds);
  EXPECT_EQ(outcome(SampledProfile(2, 0.8)), Gate::Outcome::kHolds);
  EXPECT_EQ(outcome(SampledProfile(2, 1.2, 1e-4)), Gate::Outcome::kUnknown);
}

TEST(DiffTest, OneSampleSaysNothing) {
  EXPECT_EQ(TimeOf(MakeDiff(Measured({100}), Measured({200}), OnA100, {})).verdict, Verdict::kUnknown);
}

// Two samples of one distribution are called different in about 5 of 100 cases.
TEST(DiffTest, FalseAlarmsAreRare) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(1e5, 3e3);
  const auto sample = [&] {
    std::vector<uint64_t> times;
    for (int i = 0; i < 8; ++i) times.push_back(static_cast<uint64_t>(normal(random)));
    return Measured(times);
  };
  int real = 0;
  for (int i = 0; i < 400; ++i) real += TimeOf(MakeDiff(sample(), sample(), OnA100, {})).verdict == Verdict::kReal;
  EXPECT_GT(real, 4);
  EXPECT_LT(real, 44);
}

TEST(DiffTest, WhatIsOnOneSideOnlyIsListed) {
  const Diff diff = MakeDiff(Measured({100, 101}, "old"), Measured({100, 101}, "new"), OnA100, {});
  ASSERT_EQ(diff.pairs[0].rows.size(), 2u);
  for (const DiffRow& row : diff.pairs[0].rows) {
    EXPECT_EQ(row[Compared::kTime].verdict, Verdict::kOneSide);
    EXPECT_EQ(row.in_before, row.layer == "old");
    EXPECT_EQ(row.in_after, row.layer == "new");
  }
  const std::string text = testing::Written(DiffDocument(diff), "table");
  EXPECT_NE(text.find("only A"), std::string::npos);
  EXPECT_NE(text.find("only B"), std::string::npos);
}

TEST(DiffTest, RunsArePairedByWhatTheyHaveInCommon) {
  const auto with = [](uint64_t batch, uint64_t parameters) {
    Profile profile = Measured({100, 101});
    rfinject::cli::Run run = profile.runs.begin()->second;
    profile.runs.clear();
    run.key.batch_size = batch;
    run.key.parameters = parameters;
    RunKey key = run.key;
    profile.runs.emplace(key, run);
    return profile;
  };
  Profile before = with(8, 10), after = with(16, 10);
  ASSERT_TRUE(before.Merge(with(16, 10)).ok());
  ASSERT_TRUE(before.Merge(with(8, 99)).ok());
  ASSERT_TRUE(after.Merge(with(8, 10)).ok());
  const Diff diff = MakeDiff(before, after, OnA100, {});
  ASSERT_EQ(diff.pairs.size(), 2u);
  for (const RunDiff& pair : diff.pairs) EXPECT_EQ(pair.before.run.batch_size, pair.after.run.batch_size);
  EXPECT_EQ(diff.only_before.size(), 1u);
  EXPECT_TRUE(diff.only_after.empty());
}

TEST(DiffEmitTest, TablesFitEightyColumns) {
  for (const auto& [a, b] :
       {std::pair(testing::SampleResNet18(testing::SampleV100(), 2),
                  testing::SampleResNet18(testing::SampleA100(), 2)),
        std::pair(testing::SampleMeasured(testing::SampleV100()), testing::SampleMeasured(testing::SampleA100()))}) {
    std::istringstream lines(testing::Written(DiffDocument(MakeDiff(a, b, OwnMachine, {})), "table"));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(DiffEmitTest, ArrowsOnOneFrame) {
  const Profile a = testing::SampleResNet18(testing::SampleV100(), 2),
                b = testing::SampleResNet18(testing::SampleA100(), 2);
  const auto pictures = [](const Diff& diff) {
    const std::string svg = testing::Written(DiffDocument(diff), "svg");
    size_t count = 0;
    for (size_t at = svg.find("data-kind="); at != std::string::npos; at = svg.find("data-kind=", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(pictures(MakeDiff(a, b, OwnMachine, {})), 2u);  // another GPU
  EXPECT_EQ(pictures(MakeDiff(a, a, OwnMachine, {})), 1u);
}

TEST(DiffEmitTest, EveryCsvLineHasAllColumns) {
  std::istringstream lines(
      testing::Written(DiffDocument(MakeDiff(testing::SampleResNet18(testing::SampleV100(), 2),
                                             testing::SampleMeasured(testing::SampleA100()), OwnMachine, {})),
                       "csv"));
  std::string head;
  std::getline(lines, head);
  const auto fields = [](const std::string& line) {
    size_t count = 1;
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      count += c == ',' && !quoted;
    }
    return count;
  };
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(fields(line), fields(head)) << line;
}

// A run of ten layers in `steps` sampled steps, each of one launch. `clock` (relative) differs from step to step,
// launches by a thousandth. The first layer takes `factor` times as long.
Profile Stepwise(uint64_t seed, double clock, double factor, uint64_t apart, uint64_t steps = 20) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Profile profile;
  const std::string metric(kMetricTime);
  profile.metrics[metric] = {.name = metric, .unit = "ns"};
  Run run;
  run.key.source = SourceKind::kMeasured;
  run.key.models = {"Net"};
  run.key.training = true;
  run.processes = 1;
  run.steps.steps = 2000;
  for (uint64_t step = seed % apart; step < apart * steps; step += apart) {
    run.sampled_steps[metric][step] = 1;
    const double factor_of_step = 1 + clock * normal(random);
    for (int layer = 0; layer < 10; ++layer) {
      const double ns = (layer == 0 ? factor : 1) * 1e6 * (layer + 5) * factor_of_step * (1 + 0.001 * normal(random));
      LaunchStats& stats =
          run.launches[{.layer = {"Net", "layer" + std::to_string(layer)}, .phase = Phase::kForward}];
      stats.launches = run.steps.steps;
      stats.metrics[metric].Add(static_cast<uint64_t>(ns));
      stats.step_sums[metric].push_back({step, static_cast<uint64_t>(ns)});
    }
  }
  RunKey key = run.key;
  profile.runs.emplace(std::move(key), std::move(run));
  return profile;
}

TEST(DiffTest, ALayersSmallChangeIsSeenBesideTheStepsClock) {
  int found = 0, wrong = 0;
  constexpr int kPairs = 20;
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    const Diff diff = MakeDiff(Stepwise(2 * seed, 0.02, 1, 50), Stepwise(2 * seed + 1, 0.02, 1.01, 50), OnA100, {});
    for (const DiffRow& row : diff.pairs.at(0).rows) {
      const bool real = row[Compared::kTime].verdict == Verdict::kReal;
      (row.layer == "layer0" ? found : wrong) += real;
    }
  }
  EXPECT_GE(found, kPairs - 4);  // some runs drift by chance
  EXPECT_LE(wrong, kPairs / 2);
}

// Steps of a real GPU are within 0.1 % of each other.
TEST(DiffTest, TenTimedStepsResolveHalfAPercent) {
  int found = 0, wrong = 0;
  constexpr int kPairs = 40;
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    const Diff diff =
        MakeDiff(Stepwise(2 * seed, 0.0005, 1, 50, 10), Stepwise(2 * seed + 1, 0.0005, 1.005, 50, 10), OnA100, {});
    for (const DiffRow& row : diff.pairs.at(0).rows) {
      const bool real = row[Compared::kTime].verdict == Verdict::kReal;
      (row.layer == "layer0" ? found : wrong) += real;
    }
  }
  EXPECT_GE(found, kPairs * 3 / 4);  // some runs drift by chance
  EXPECT_LE(wrong, kPairs / 10);
}

// Of a copy in which one layer is slower all others are equal: they say best what the clock did.
TEST(DiffTest, RowsThatAreEqualAreAmongTheOthersOfTheirSteps) {
  const Profile before = Stepwise(2, 0.001, 1, 50, 10);
  Profile after = before;
  for (auto& [key, stats] : after.runs.begin()->second.launches) {
    if (key.layer.path != "layer0") continue;
    Stat longer;
    for (StepSum& one : stats.step_sums.at(std::string(kMetricTime))) {
      one.sum += one.sum / 50;
      longer.Add(one.sum);
    }
    stats.metrics.at(std::string(kMetricTime)) = longer;
  }
  const Diff diff = MakeDiff(before, after, OnA100, {});
  EXPECT_TRUE(diff.pairs.at(0).within_steps);
  for (const DiffRow& row : diff.pairs.at(0).rows) {
    EXPECT_EQ(row[Compared::kTime].verdict, row.layer == "layer0" ? Verdict::kReal : Verdict::kSame) << row.layer;
  }
}

TEST(DiffTest, ALayerIsNoDifferentBecauseTheClockOfOneRunIs) {
  // One run's clock differs by more from step to step than the other's, and no layer changed.
  const Diff diff = MakeDiff(Stepwise(2, 0.02, 1, 50), Stepwise(5, 0.05, 1, 50), OnA100, {});
  for (const DiffRow& row : diff.pairs.at(0).rows) {
    EXPECT_NE(row[Compared::kTime].verdict, Verdict::kReal) << row.layer;
  }
}

// A clock changes all layers alike. Where most of them became faster by a change of the program, one that stayed as
// it was did not become slower.
TEST(DiffTest, ALayerThatDidNotChangeIsNotSlowerThanTheOthers) {
  Profile after = Stepwise(3, 0.001, 1, 50, 10);
  for (auto& [key, stats] : after.runs.begin()->second.launches) {
    if (key.layer.path == "layer0") continue;
    const double factor = 0.5 + 0.02 * (key.layer.path.back() - '0');
    const auto scale = [&](uint64_t& ns) { ns = static_cast<uint64_t>(static_cast<double>(ns) * factor); };
    Stat shorter;
    for (StepSum& one : stats.step_sums.at(std::string(kMetricTime))) {
      scale(one.sum);
      shorter.Add(one.sum);
    }
    stats.metrics.at(std::string(kMetricTime)) = shorter;
  }
  const Diff diff = MakeDiff(Stepwise(2, 0.001, 1, 50, 10), after, OnA100, {});
  for (const DiffRow& row : diff.pairs.at(0).rows) {
    EXPECT_EQ(row[Compared::kTime].verdict == Verdict::kReal, row.layer != "layer0") << row.layer;
  }
}

TEST(DiffTest, LaunchesOfARecordingWithoutStepsAreNotIndependent) {
  // Forty launches in four steps, whose clocks differ by 2 %: both runs are of one program.
  const auto recording = [](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<uint64_t> times;
    for (int step = 0; step < 4; ++step) {
      const double clock = 1 + 0.02 * normal(random);
      for (int i = 0; i < 10; ++i) {
        times.push_back(static_cast<uint64_t>(1e6 * clock * (1 + 0.002 * normal(random))));
      }
    }
    Profile profile = Measured(times);
    cli::Run run = profile.runs.begin()->second;
    run.key.source = SourceKind::kImported;
    run.steps.steps = 0;
    profile.runs.clear();
    RunKey key = run.key;
    profile.runs.emplace(std::move(key), std::move(run));
    return profile;
  };
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    wrong += TimeOf(MakeDiff(recording(2 * seed), recording(2 * seed + 1), OnA100, {})).verdict == Verdict::kReal;
  }
  EXPECT_LE(wrong, 10);
}

}  // namespace
}  // namespace rfinject::cli
