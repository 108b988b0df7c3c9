#include "cli/report/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/roofs.h"
#include "cli/testing/sample_profile.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;

constexpr By kGroupings[] = {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel};

Report Fold(const Profile& profile, const Machine& machine, By by = By::kLayer) {
  return FoldRun(profile, profile.runs.begin()->second, machine, {.by = by});
}
Report Estimated(By by = By::kLayer) {
  const Machine machine = testing::SampleA100();
  return Fold(testing::SampleResNet18(machine), machine, by);
}
Report Measured(By by = By::kLayer) {
  const Machine machine = testing::SampleA100();
  return Fold(testing::SampleMeasured(machine), machine, by);
}

const Row& Find(const std::vector<Row>& rows, const std::string& layer, std::optional<Phase> phase = std::nullopt) {
  for (const Row& row : rows) {
    if (row.layer == layer && row.phase == phase && row.model == "ResNet") return row;
  }
  ADD_FAILURE() << "no row " << layer << " " << PhaseName(phase);
  return rows.front();
}

TEST(Fold, WhatIsOfNoModelIsNamedInTheHeadline) {
  Profile profile = testing::SampleResNet18(testing::SampleA100(), 2);
  cli::Run& run = profile.runs.begin()->second;
  run.key.source = SourceKind::kMeasured;  // the times below are no operator's
  const auto headline = [&] {
    std::string text;
    for (const std::string& line : HeadlineText(FoldRun(profile, run, testing::SampleA100(), {})))
      text += line + "\n";
    return text;
  };
  EXPECT_EQ(headline().find("of no model"), std::string::npos);
  for (const char* op : {"aten::normal_", "aten::fill_"}) {
    LaunchStats& stats = run.launches[LaunchKey{.phase = Phase::kOther, .op = op, .kernel = op}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(op[6] == 'n' ? 900'000'000 : 100'000'000);
  }
  EXPECT_NE(headline().find("of GPU time is of no model: aten::normal_, aten::fill_"), std::string::npos)
      << headline();
  EXPECT_NE(headline().find("--skip 1"), std::string::npos);
  // It has more time to win than any layer.
  EXPECT_NE(headline().find("1. at most -500 ms (99.6 %): other (in no layer)"), std::string::npos) << headline();
}

// What a training loop does between the model's backward and the optimizer's step, and before its backward.
TEST(Fold, WhatALoopDoesOutsideOfItsModelHasNames) {
  Profile profile = testing::SampleResNet18(testing::SampleA100(), 2);
  cli::Run& run = profile.runs.begin()->second;
  run.key.source = SourceKind::kMeasured;
  const auto add = [&run](const char* op, uint64_t ns) {
    LaunchStats& stats = run.launches[LaunchKey{.phase = Phase::kOther, .op = op, .kernel = op}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(ns);
  };
  add("aten::_log_softmax", 200'000'000);
  add("aten::nll_loss_forward", 200'000'000);
  add("aten::linalg_vector_norm", 300'000'000);
  add("aten::zero_", 350'000'000);
  add("aten::_amp_foreach_non_finite_check_and_unscale_", 100'000'000);
  add("aten::fill_", 90'000'000);
  const auto headline = [&] {
    return absl::StrJoin(HeadlineText(FoldRun(profile, run, testing::SampleA100(), {})), "\n");
  };
  EXPECT_THAT(headline(), HasSubstr("of GPU time is of no model: loss, zero_grad, clip_grad_norm\n"));
  add("aten::_amp_update_scale_", 500'000'000);
  EXPECT_THAT(headline(), HasSubstr("of GPU time is of no model: gradient scaling, loss, zero_grad\n"));
}

TEST(Fold, KernelsOfInductorsSayThatTheProgramIsCompiled) {
  for (const auto& [kernel, compiled] : std::map<std::string, bool>{
           {"triton_poi_fused_add_relu_3", true}, {"triton_mine", false}, {"aten::relu", false}}) {
    Profile profile = testing::SampleMeasured(testing::SampleA100());
    cli::Run& run = profile.runs.begin()->second;
    LaunchStats& stats = run.launches[LaunchKey{.phase = Phase::kForward, .kernel = kernel}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(1000);
    EXPECT_EQ(FoldRun(profile, run, testing::SampleA100(), {}).attribution.compiled, compiled) << kernel;
  }
}

TEST(Fold, CopiesOfPinnedMemoryAreKnownByTheirNames) {
  for (const auto& [kernel, pinned] : std::map<std::string, bool>{{"Memcpy HtoD (Pinned -> Device)", true},
                                                                  {"Memcpy HtoD (Pageable -> Device)", false},
                                                                  {"Memcpy HtoD", false}}) {
    Profile profile = testing::SampleMeasured(testing::SampleA100());
    LaunchStats& stats = profile.runs.begin()->second.launches[{.phase = Phase::kData, .kernel = kernel}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(1000);
    const cli::Run& run = profile.runs.begin()->second;
    EXPECT_EQ(FoldRun(profile, run, testing::SampleA100(), {}).attribution.pinned, pinned) << kernel;
  }
}

TEST(Fold, WhatIsInNoLayerNamesWhoLaunchedMostOfIt) {
  Profile profile = testing::SampleMeasured(testing::SampleA100());
  cli::Run& run = profile.runs.begin()->second;
  const auto add = [&](const char* kernel, const char* function, uint64_t ns) {
    LaunchStats& stats = run.launches[LaunchKey{.phase = Phase::kCommunication, .kernel = kernel}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(ns);
    stats.stack = std::make_shared<const NativeStackInfo>(NativeStackInfo{{.module = "a.out", .function = function}});
  };
  add("k1", "Net::first", 1000);
  add("k2", "Net::second", 900);
  add("k3", "Net::second", 900);
  add("k4", "Net::third", 100);
  for (const By by : {By::kLayer, By::kPhase, By::kKernel}) {
    const Report report = Fold(profile, testing::SampleA100(), by);
    size_t seen = 0;
    for (const Row& row : report.rows) {
      if (row.phase != Phase::kCommunication) {
        EXPECT_EQ(row.caller, "") << PhaseName(row.phase);
        continue;
      }
      ++seen;
      EXPECT_EQ(row.other_callers, by == By::kKernel ? 0u : 2u);
      EXPECT_TRUE(by == By::kKernel || row.caller == "Net::second") << row.caller;
    }
    EXPECT_EQ(seen, by == By::kKernel ? 4u : 1u);
  }
}

TEST(Fold, LinesOfTheProgramStandForAllPhases) {
  Profile profile = testing::SampleMeasured(testing::SampleA100());
  cli::Run& run = profile.runs.begin()->second;
  run.launches.clear();
  const auto add = [&](Phase phase, const char* file, uint32_t line, const char* function, uint64_t ns) {
    const std::string kernel = absl::StrCat("k", run.launches.size());
    LaunchStats& stats = run.launches[LaunchKey{.layer = {"Net", "a"}, .phase = phase, .kernel = kernel}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(ns);
    if (line == 0) return;
    stats.line =
        std::make_shared<const SourceLineInfo>(SourceLineInfo{.file = file, .function = function, .line = line});
  };
  add(Phase::kForward, "model.py", 9, "f", 100);
  add(Phase::kBackward, "model.py", 9, "f", 250);
  add(Phase::kForward, "model.py", 10, "f", 900);
  add(Phase::kForward, "model.py", 9, "g", 10);
  add(Phase::kBackward, "", 0, "", 5000);
  add(Phase::kForward, "", 0, "", 1);
  const Report report = Fold(profile, testing::SampleA100(), By::kSource);
  std::vector<std::string> rows;
  for (const Row& row : report.rows) {
    rows.push_back(absl::StrCat(row.line, " ", row.function, " ", std::string(PhaseName(row.phase)), " ",
                                row.sums.time_ns(), row.model));
  }
  // What has no line comes last, a row a phase.
  EXPECT_THAT(rows, ::testing::ElementsAre("model.py:10 f  900", "model.py:9 f  350", "model.py:9 g  10",
                                           "  backward 5000", "  forward 1"));
}

TEST(Fold, AnEstimateHasAnExpectedTimeBesideTheIdealOne) {
  Profile profile = testing::SampleResNet18(testing::SampleA100(), 2);
  cli::Run& run = profile.runs.begin()->second;
  const Report estimated = FoldRun(profile, run, testing::SampleA100(), {});
  run.key.source = SourceKind::kMeasured;
  const Report recorded = FoldRun(profile, run, testing::SampleA100(), {});
  EXPECT_EQ(recorded.total.sums.ideal_ns(), 0);
  EXPECT_EQ(recorded.total.sums[Quantity::kTimeHigh], 0);
  EXPECT_FALSE(recorded.headline.expected);
  // What was recorded has the interval of launches and every operand moved; the ideal time is the kernels' own, of
  // what no cache has.
  EXPECT_GT(estimated.total.sums.ideal_ns(), 0.3 * recorded.total.sums.time_ns());
  EXPECT_LT(estimated.total.sums.ideal_ns(), recorded.total.sums.time_ns());
  EXPECT_LT(estimated.total.sums.dram_bytes(), recorded.total.sums.dram_bytes());
  EXPECT_NE(estimated.total.sums.time_ns(), recorded.total.sums.time_ns());
  ASSERT_TRUE(estimated.headline.expected);
  EXPECT_DOUBLE_EQ(estimated.headline.expected->ns * 2, estimated.total.sums.time_ns());  // of two steps
  for (const Row& row : estimated.rows) {
    EXPECT_GT(row.sums.ideal_ns(), 0) << row.layer;
    if (row.sums[Quantity::kWinogradTime] == 0) {
      EXPECT_LE(row.sums.ideal_ns(), row.sums.time_ns() * (1 + 1e-9)) << row.layer;
      EXPECT_LE(row.sums.least_ns(), row.sums.time_ns() * (1 + 1e-9)) << row.layer;
    }
    EXPECT_LT(row.sums[Quantity::kTimeLow], row.sums.time_ns()) << row.layer;
    EXPECT_GT(row.sums[Quantity::kTimeHigh], row.sums.time_ns()) << row.layer;
  }
}

TEST(Fold, AnEstimateForAGpuThatIsInNoTableKeepsItsRecordedTimes) {
  Profile profile = testing::SampleResNet18(testing::SampleA100(), 2);
  cli::Run& run = profile.runs.begin()->second;
  run.key.estimated_gpu = "no such GPU";
  const Report report = FoldRun(profile, run, testing::SampleA100(), {});
  EXPECT_EQ(report.total.sums.ideal_ns(), 0);
  EXPECT_GT(report.total.sums.time_ns(), 0);
}

// A program that turns TF32 on in the middle: of ten launches four have FLOP in FP32 and six in TF32.
TEST(Fold, WhatAnEstimateDoesNotSayOfALaunchItDidNotDo) {
  LaunchStats stats{.launches = 10, .metrics = {}};
  for (int i = 0; i < 10; ++i) {
    stats.metrics["rf.time"].Add(100);
    stats.metrics[i < 4 ? "rf.flop.fp32" : "rf.flop.tf32_tc"].Add(1000);
  }
  Profile profile = testing::OneKey({.phase = Phase::kForward, .op = "aten::mm"}, stats);
  profile.metrics["rf.flop.tf32_tc"] = {.name = "rf.flop.tf32_tc", .unit = "flop", .scale = 1};
  const Report sampled = Fold(profile, {});
  EXPECT_EQ(sampled.total.sums.total_flop(), 20'000);
  auto run = profile.runs.extract(profile.runs.begin());
  run.key().source = run.mapped().key.source = SourceKind::kEstimated;
  profile.runs.insert(std::move(run));
  const Report estimated = Fold(profile, {});
  EXPECT_EQ(estimated.total.sums[FlopIn(Precision::kFp32)], 4'000);
  EXPECT_EQ(estimated.total.sums[FlopIn(Precision::kTf32Tensor)], 6'000);
}

TEST(Fold, ResNet18HasItsExactModelFlop) {
  for (const By by : kGroupings) {
    const Report report = Estimated(by);
    double forward = 0, backward = 0;
    for (const Row& row : report.phases) {
      if (row.phase == Phase::kForward) forward += row.sums.model_flop();
      if (row.phase == Phase::kBackward) backward += row.sums.model_flop();
    }
    const auto images = static_cast<double>(report.steps.samples);
    EXPECT_EQ(forward, 3628146688.0 * images);
    EXPECT_EQ(backward, 7020265472.0 * images);
  }
}

// Two kernels of a layer whose counters were taken as one sum, 900 FLOP and 60 bytes in each of 3 of 10 steps: one
// launch of the first, two of the second a step.
TEST(Fold, SharesOfALayersSumAreExactByLayerAndMarkedByKernel) {
  const auto of = [](const std::string& kernel, uint64_t launches_a_step) {
    LaunchStats stats{.launches = 10 * launches_a_step, .metrics = {}};
    for (uint64_t i = 0; i < 3 * launches_a_step; ++i) {
      stats.metrics["rf.flop.fp32"].Add(300);
      stats.metrics["rf.dram_bytes"].Add(20 + i % 2);
    }
    for (uint64_t i = 0; i < 10 * launches_a_step; ++i) stats.metrics["rf.time"].Add(1);
    for (const char* name : {"rf.flop.fp32", "rf.dram_bytes"}) stats.metrics[name].shared_sums = 3;
    return std::pair(LaunchKey{.layer = {"Net", "fc"}, .phase = Phase::kForward, .op = "aten::mm", .kernel = kernel},
                     stats);
  };
  const auto [first, first_stats] = of("gemm_tensorop", 1);
  const auto [second, second_stats] = of("relu", 2);
  Profile profile = testing::OneKey(first, first_stats);
  cli::Run run = profile.runs.begin()->second;
  run.launches[second] = second_stats;
  profile.runs.clear();
  profile.runs.emplace(run.key, run);
  Machine slow = testing::SampleA100();
  slow.peak.fill(1e10);  // 300 FLOP a nanosecond are above it, for either kernel alone

  const Report layers = Fold(profile, slow, By::kLayer);
  ASSERT_EQ(layers.rows.size(), 1u);
  EXPECT_EQ(layers.rows[0].sums.total_flop(), 9000);
  EXPECT_FALSE(layers.rows[0].bytes.shared);
  const Report kernels = Fold(profile, slow, By::kKernel);
  ASSERT_EQ(kernels.rows.size(), 2u);
  for (const Row& row : kernels.rows) EXPECT_TRUE(row.bytes.shared);
  EXPECT_THAT(HeadlineText(kernels), ::testing::Contains(HasSubstr("not split between kernels")));
  EXPECT_THAT(HeadlineText(layers), ::testing::Not(::testing::Contains(HasSubstr("not split"))));
  // A share against one kernel's time is no evidence of anything.
  for (const Alarm& alarm : kernels.alarms) EXPECT_THAT(alarm.id, ::testing::Not(::testing::AnyOf("R001", "R003")));

  // Three independent samples, not nine; and shares of one sum err together, so the layer's half-width is the sum of
  // its kernels'.
  double width = 0;
  for (const Row& row : kernels.rows) width += row.bytes.relative * row.sums.dram_bytes();
  EXPECT_NEAR(layers.rows[0].bytes.relative * layers.rows[0].sums.dram_bytes(), width, 1e-9 * width);
  Stat stat = second_stats.metrics.at("rf.dram_bytes");
  const double as_shares = ErrorSquared(stat, 20);
  stat.shared_sums = 0;
  EXPECT_GT(as_shares, 2 * ErrorSquared(stat, 20));
}

TEST(Fold, RowsAddUpToTheTotal) {
  for (const By by : kGroupings) {
    for (const Report& report : {Estimated(by), Measured(by)}) {
      Sums sum;
      double share = 0;
      for (const Row& row : report.rows) {
        sum.Add(row.sums);
        share += row.time_share;
      }
      EXPECT_EQ(sum.launches, report.total.sums.launches);
      EXPECT_NEAR(sum.time_ns(), report.total.sums.time_ns(), 1e-9 * sum.time_ns());
      EXPECT_NEAR(sum.total_flop(), report.total.sums.total_flop(), 1e-9 * sum.total_flop());
      EXPECT_NEAR(sum.least_ns(), report.total.sums.least_ns(), 1e-9 * sum.least_ns());
      EXPECT_NEAR(share, 1, 1e-9);
    }
  }
}

TEST(Fold, LayersComeAsTheProgramRunsThem) {
  const Report report = Estimated();
  std::vector<std::string> first;
  for (size_t i = 0; i < 5; ++i) first.push_back(report.rows[i].layer);
  EXPECT_EQ(first, (std::vector<std::string>{"conv1", "bn1", "relu", "maxpool", "layer1.0"}));
  // What is in no layer is there, last, a row a phase.
  ASSERT_GT(report.rows.size(), 2u);
  const Row& optimizer = report.rows[report.rows.size() - 2];
  const Row& data = report.rows.back();
  EXPECT_EQ(optimizer.model + optimizer.layer + std::string(PhaseName(optimizer.phase)), "optimizer");
  EXPECT_EQ(data.model + data.layer + std::string(PhaseName(data.phase)), "data");
}

TEST(Fold, OtherRowsComeByTime) {
  for (const By by : {By::kOp, By::kKernel}) {
    const Report report = Estimated(by);
    EXPECT_TRUE(std::is_sorted(report.rows.begin(), report.rows.end(),
                               [](const Row& a, const Row& b) { return a.sums.time_ns() > b.sums.time_ns(); }));
  }
}

TEST(Fold, PhasesComeAsAStepGoes) {
  std::vector<std::string> phases;
  for (const Row& row : Estimated(By::kModel).phases) {
    if (phases.empty() || phases.back() != PhaseName(row.phase)) phases.emplace_back(PhaseName(row.phase));
  }
  EXPECT_EQ(phases, (std::vector<std::string>{"forward", "backward", "optimizer", "data"}));
}

TEST(Fold, LayersSplitByPhaseAddUpToTheLayers) {
  const Report report = Estimated();
  const Row& layer = Find(report.rows, "layer1.0.conv1");
  const Row& forward = Find(report.layer_phases, "layer1.0.conv1", Phase::kForward);
  const Row& backward = Find(report.layer_phases, "layer1.0.conv1", Phase::kBackward);
  EXPECT_EQ(forward.sums.time_ns() + backward.sums.time_ns(), layer.sums.time_ns());
  EXPECT_EQ(2 * forward.sums.model_flop(), backward.sums.model_flop());
}

TEST(Fold, ALayersFactsAreInItsRow) {
  const Report report = Estimated();
  const Row& row = Find(report.rows, "layer1.0.conv1");
  EXPECT_EQ(row.class_name, "Conv2d");
  EXPECT_EQ(row.parameters, 36864u);
  EXPECT_EQ(row.input_shape, "f32[8,64,56,56]");
}

TEST(Fold, SamplesStandForAllLaunches) {
  LaunchStats stats{.launches = 10, .metrics = {}};
  for (uint64_t value : {90, 100, 110}) stats.metrics["rf.time"].Add(value);
  stats.metrics["rf.dram_bytes"].Add(7);
  const Report report = Fold(testing::OneKey({.phase = Phase::kForward, .op = "aten::mm"}, stats), {});
  EXPECT_DOUBLE_EQ(report.total.sums.time_ns(), 1000);
  EXPECT_DOUBLE_EQ(report.total.sums.dram_bytes(), 10 * 7 * 32);
  ASSERT_EQ(report.rows.size(), 1u);
  // t(2) * s / sqrt(3) relative to the mean: 4.303 * 10 / 1.732 / 100.
  EXPECT_NEAR(report.rows[0].time.relative, 0.2484, 1e-4);
  EXPECT_EQ(report.rows[0].bytes.relative, 0);  // one sample says nothing about spread
}

TEST(Fold, WhatWasMeasuredEveryTimeIsExact) {
  LaunchStats stats{.launches = 3, .metrics = {}};
  // Odd, and too large for a division in doubles to come back exactly.
  for (int i = 0; i < 3; ++i) stats.metrics["rf.flop.fp32"].Add(1'000'000'000'000'001);
  for (uint64_t value : {90, 100, 110}) stats.metrics["rf.time"].Add(value);
  const Report report = Fold(testing::OneKey({.phase = Phase::kForward}, stats), {});
  EXPECT_EQ(report.total.sums.total_flop(), 3'000'000'000'000'003);
  EXPECT_EQ(report.rows[0].time.relative, 0);
}

TEST(Fold, SharesOfAttributionAndCounters) {
  const Report report = Measured();
  EXPECT_EQ(report.attribution.without_layer, 40u);  // the sample hides layer3.0.relu: 2 calls, 2 phases, 10 steps
  EXPECT_LT(report.attribution.share, 1);
  EXPECT_GT(report.attribution.share, 0.9);
  EXPECT_LT(report.attribution.counters_share, 1);
  double with = 0;
  for (const Row& row : report.rows) with += row.sums.time_with_counters_ns();
  EXPECT_NEAR(with / report.total.sums.time_ns(), report.attribution.counters_share, 1e-12);
  const Report estimated = Estimated();
  EXPECT_EQ(estimated.attribution.share, 1);
  EXPECT_EQ(estimated.attribution.without_layer, 0u);
  EXPECT_EQ(estimated.attribution.counters_share, 1);
}

TEST(Fold, AttainableIsTheSumOfTheKernelsLeastTimes) {
  const Report report = Estimated();
  for (const Row& row : report.rows) {
    EXPECT_GE(row.sums.least_ns(), std::max(row.sums.least_compute_ns(), row.sums.least_memory_ns()) - 1e-6);
    EXPECT_LE(row.sums.least_ns(), row.sums.time_ns());
    EXPECT_NEAR(row.derived.slack_ns, row.sums.time_ns() - row.sums.least_ns(), 1e-6);
  }
  const Row& conv = Find(report.rows, "layer1.0.conv1");
  EXPECT_EQ(conv.derived.bound, Bound::kCompute);
  EXPECT_NEAR(conv.derived.attainable_flop_per_s / 156e12, 1, 1e-9);  // TF32, compute bound
  EXPECT_EQ(Find(report.rows, "bn1").derived.bound, Bound::kMemory);
}

TEST(Fold, KernelsBelowAnOperatorAreCountedByTheirShortNames) {
  LaunchStats stats;
  stats.launches = 3;
  for (int i = 0; i < 3; ++i) stats.metrics["rf.time"].Add(5000);
  stats.metrics["rf.kernel:void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"]
      .Add(2);
  stats.metrics["rf.kernel:void at::native::vectorized_elementwise_kernel<2, at::native::FillFunctor<float> >(int)"]
      .Add(3);
  stats.metrics["rf.kernel:standin_gemm"].Add(1);
  stats.metrics["rf.kernem"].Add(100);
  Profile profile = testing::OneKey({.phase = Phase::kForward, .op = "aten::mm", .kernel = "aten::mm"}, stats);
  for (const By by : {By::kOp, By::kKernel, By::kPhase}) {
    const Report report = Fold(profile, testing::SampleA100(), by);
    ASSERT_EQ(report.rows.size(), 1u);
    const Row& row = report.rows[0];
    ASSERT_EQ(row.kernels.size(), 2u);
    EXPECT_EQ(row.kernels[0].name, "vectorized_elementwise_kernel<FillFunctor>");
    EXPECT_EQ(row.kernels[0].launches, 5u);
    EXPECT_EQ(row.kernels[1].name, "standin_gemm");
    EXPECT_EQ(row.sums.launches, 3u) << "the operator's own";
  }
}

TEST(Fold, WithoutAMachineThereAreNoRoofs) {
  const Report report = Fold(testing::SampleMeasured(testing::SampleA100()), {});
  EXPECT_TRUE(report.roofs.empty());
  EXPECT_EQ(report.total.sums.least_ns(), 0);
  EXPECT_EQ(report.total.derived.attainable_flop_per_s, 0);
  EXPECT_THAT(FactsText(report)[0], HasSubstr("no roofs are known"));
  EXPECT_THAT(HeadlineText(report)[1], HasSubstr("cannot be told"));
}

TEST(Fold, RoofsSayWhichAreUsed) {
  const Report report = Estimated();
  size_t used = 0;
  for (const RoofLine& roof : report.roofs) {
    if (!roof.used) continue;
    ++used;
    EXPECT_TRUE(roof.precision == Precision::kTf32Tensor || roof.precision == Precision::kFp32) << RoofTitle(roof);
  }
  EXPECT_EQ(used, 2u);
  EXPECT_EQ(report.roofs.size(), 7u);
}

TEST(Fold, HeadlineSaysWhatAReaderMustKnow) {
  const Report report = Estimated();
  const std::vector<std::string> facts = FactsText(report);
  ASSERT_EQ(facts.size(), 5u);
  EXPECT_THAT(facts[0], HasSubstr("ESTIMATED on A100-SXM4-40GB"));
  EXPECT_THAT(facts[1], HasSubstr("80 % interval"));
  EXPECT_EQ(facts[2], "99.6 % of FLOP in TF32 tensor, 0.4 % in FP32");
  EXPECT_EQ(facts[3], "100 % of forward and backward GPU time is attributed to layers");
  EXPECT_THAT(facts[4], HasSubstr("1.93 times the model FLOP"));  // 7020265472 / 3628146688
  const Report measured = Measured();
  EXPECT_THAT(FactsText(measured)[0], HasSubstr("Measured on NVIDIA A100-SXM4-40GB"));
  EXPECT_THAT(FactsText(measured)[2], HasSubstr("(40 launches are not)"));
  EXPECT_THAT(FactsText(measured)[2], HasSubstr("has counters"));
}

TEST(Fold, PmSamplingIsHeldAgainstTheKernels) {
  const Machine machine = testing::SampleA100();
  Profile profile = testing::SampleMeasured(machine);
  EXPECT_EQ(Fold(profile, machine, By::kLayer).sampling.windows, 0u);
  StepSums& steps = profile.runs.begin()->second.steps;
  for (uint64_t bytes : {1'000'000'000u, 3'000'000'000u}) {
    steps.pm_dram_bytes.Add(bytes);
    steps.pm_duration_ns.Add(1000);
    steps.pm_tensor_active_ns.Add(250);
  }
  const Report report = Fold(profile, machine, By::kLayer);
  EXPECT_EQ(report.sampling.windows, 2u);
  EXPECT_EQ(report.sampling.dram_bytes, 2e9);
  EXPECT_EQ(report.sampling.tensor_share, 0.25);
  EXPECT_THAT(HeadlineText(report), ::testing::Contains(::testing::AllOf(
                                        HasSubstr("DRAM bytes a step by PM sampling 2.00 GB (2 steps), by kernels "),
                                        HasSubstr("; tensor pipes active 25 % of the time"))));
  // Bytes only: nothing is known of the tensor pipes.
  steps.pm_tensor_active_ns = {};
  EXPECT_LT(Fold(profile, machine, By::kLayer).sampling.tensor_share, 0);
}

TEST(Fold, TracesWithoutAnEndAreSaid) {
  Profile profile = testing::SampleResNet18(testing::SampleA100());
  profile.runs.begin()->second.unfinished = 1;
  const Report report = Fold(profile, testing::SampleA100());
  EXPECT_EQ(report.process.unfinished, 1u);
  const std::vector<DiagnosticInfo> diagnostics = DiagnosticsText(report);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_THAT(diagnostics[0].text, HasSubstr("1 of 1 processes left no end"));
}

TEST(Fold, EqualProfilesFoldEqually) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Profile a = testing::RandomProfile(seed), b = testing::RandomProfile(seed + 1);
    Profile ab = a, ba = b;
    ASSERT_TRUE(ab.Merge(b).ok());
    ASSERT_TRUE(ba.Merge(a).ok());
    const auto machine = [](const cli::Run&) { return testing::SampleV100(); };
    const auto one = FoldProfile(ab, machine, {.by = By::kLayer}), two = FoldProfile(ba, machine, {.by = By::kLayer});
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_EQ(one[i].rows.size(), two[i].rows.size());
      for (size_t r = 0; r < one[i].rows.size(); ++r) {
        ASSERT_EQ(one[i].rows[r].layer, two[i].rows[r].layer);
        ASSERT_EQ(one[i].rows[r].sums.time_ns(), two[i].rows[r].sums.time_ns());
      }
      ASSERT_EQ(HeadlineText(one[i]), HeadlineText(two[i]));
    }
  }
}

TEST(Fold, AnEmptyRunIsNoDivisionByZero) {
  Profile profile;
  profile.runs.emplace(RunKey{}, cli::Run{});
  for (const By by : kGroupings) {
    const Report report = Fold(profile, testing::SampleA100(), by);
    EXPECT_TRUE(report.rows.empty());
    EXPECT_EQ(report.attribution.share, 0);
    EXPECT_FALSE(HeadlineText(report).empty());
  }
}

TEST(FoldByClass, AddsUpLayersThatAreAlike) {
  const Profile profile = testing::SampleResNet18(testing::SampleA100());
  const Report layers = Fold(profile, testing::SampleA100(), By::kLayer);
  const Report classes = Fold(profile, testing::SampleA100(), By::kClass);
  EXPECT_LT(classes.rows.size(), layers.rows.size());
  std::map<std::string, std::pair<uint64_t, double>> expected;  // layers, GPU time
  for (const Row& row : layers.rows) {
    if (row.model.empty()) continue;
    auto& [count, time_ns] = expected[row.model + "/" + row.group];
    ++count;
    time_ns += row.sums.time_ns();
  }
  double all = 0;
  for (const Row& row : classes.rows) {
    all += row.sums.time_ns();
    if (row.model.empty()) continue;
    const auto& [count, time_ns] = expected.at(row.model + "/" + row.group);
    EXPECT_EQ(row.layers, count) << row.group;
    EXPECT_NEAR(row.sums.time_ns() / time_ns, 1, 1e-12) << row.group;
  }
  EXPECT_NEAR(all / layers.total.sums.time_ns(), 1, 1e-12);
  EXPECT_NE(std::find_if(classes.rows.begin(), classes.rows.end(),
                         [](const Row& row) { return row.group == "Conv2d 3x3 512->512" && row.layers == 3; }),
            classes.rows.end());
}

TEST(FoldByLayer, FoldsNamesToADepth) {
  const Profile profile = testing::SampleResNet18(testing::SampleA100());
  const auto at_depth = [&](size_t depth) {
    return FoldProfile(profile, [](const cli::Run&) { return testing::SampleA100(); },
                       {.by = By::kLayer, .depth = depth})
        .front();
  };
  const Report whole = at_depth(0), folded = at_depth(1);
  EXPECT_LT(folded.rows.size(), whole.rows.size() / 2);
  for (const Row& row : folded.rows) EXPECT_EQ(row.layer.find('.'), std::string::npos) << row.layer;
  EXPECT_EQ(folded.total.sums.launches, whole.total.sums.launches);
  const Row& layer1 = Find(folded.rows, "layer1");
  double time_ns = 0;
  for (const Row& row : whole.rows) {
    if (row.layer == "layer1" || row.layer.starts_with("layer1.")) time_ns += row.sums.time_ns();
  }
  EXPECT_NEAR(layer1.sums.time_ns() / time_ns, 1, 1e-12);
}

TEST(SortRows, PutsWhatHasNoValueLast) {
  Report report = Fold(testing::SampleResNet18(testing::SampleA100()), testing::SampleA100(), By::kLayer);
  const size_t rows = report.rows.size();
  const ReportColumn* const oi = FindColumn("OI_flop_per_byte");  // in any case
  ASSERT_NE(oi, nullptr);
  EXPECT_EQ(FindColumn("nothing"), nullptr);
  EXPECT_EQ(FindColumn(""), nullptr);
  SortRows(*oi, &report);
  ASSERT_EQ(report.rows.size(), rows);
  for (size_t i = 1; i < rows; ++i) {
    const Derived &before = report.rows[i - 1].derived, &here = report.rows[i].derived;
    EXPECT_GE(before.oi_flop_per_byte, here.oi_flop_per_byte) << i;
  }
  SortRows(*FindColumn("layer"), &report);
  for (size_t i = 1; i < rows; ++i) {
    if (report.rows[i].model.empty()) continue;  // of no layer, which is no value
    EXPECT_LE(report.rows[i - 1].layer, report.rows[i].layer) << i;
    EXPECT_FALSE(report.rows[i - 1].model.empty()) << i;
  }
}

}  // namespace
}  // namespace rfinject::cli
