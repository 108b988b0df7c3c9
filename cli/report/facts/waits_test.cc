#include "cli/report/facts/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_join.h"
#include "cli/format/testing/written.h"
#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMs = 1'000'000;

struct Ms {
  uint64_t wall, busy, data, gpu;
};

StepTimes TimesOf(Ms step, int steps = 20) {
  StepTimes times;
  for (int i = 0; i < steps; ++i) {
    times.Add({.wall_ns = step.wall * kMs,
               .data_wait_ns = step.data * kMs,
               .gpu_wait_ns = step.gpu * kMs,
               .gpu_busy_ns = step.busy * kMs,
               .launch_gap_ns = {}});
  }
  return times;
}

cli::Run RunOf(const std::vector<Ms>& ranks) {
  cli::Run run;
  run.key.source = SourceKind::kMeasured;
  run.key.gpu = "V100";
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    run.step_times[static_cast<uint32_t>(rank)] = TimesOf(ranks[rank]);
  }
  return run;
}

// On one line, wherever a terminal would break it.
std::string Text(const WaitTable& table) { return testing::Written(WaitDocument({table}), "table", {.width = 1000}); }

TEST(Waits, PartsOfAStepAndTheRest) {
  const StepWaits waits = WaitsOf(RunOf({{.wall = 100, .busy = 31, .data = 55, .gpu = 20}}));
  EXPECT_EQ(waits.steps, 20u);
  EXPECT_EQ(*waits.wall.mean_ns, 100 * kMs);
  EXPECT_NEAR(*waits.wall.p95_ns, 100 * kMs, kMs);
  EXPECT_NEAR(*waits.Share(waits.gpu_busy), 0.31, 1e-9);
  EXPECT_EQ(*waits.own.mean_ns, 25 * kMs);
  EXPECT_NEAR(*waits.own.p50_ns, 25 * kMs, kMs);
  // Of the 69 ms in which nothing runs, the loader explains 55.
  EXPECT_NEAR(*waits.launch_gaps.p95_ns, 14 * kMs, kMs);
  EXPECT_EQ(*waits.GainWithout(waits.data_wait), 55 * kMs);
}

TEST(Waits, WhatTheGpuWorksMeanwhileIsNoGain) {
  const StepWaits waits = WaitsOf(RunOf({{.wall = 100, .busy = 90, .data = 0, .gpu = 60}}));
  EXPECT_EQ(*waits.GainWithout(waits.gpu_wait), 10 * kMs);
  // A virtual GPU that its host never waits for lags behind.
  const StepWaits lags = WaitsOf(RunOf({{.wall = 50, .busy = 90, .data = 20, .gpu = 0}}));
  EXPECT_EQ(lags.step_ns(), 90 * kMs);
  EXPECT_EQ(*lags.idle_ns(), 0);
  EXPECT_EQ(*lags.GainWithout(lags.data_wait), 0);
}

TEST(Waits, WhatNobodyWatchedIsUnknownAndNotNone) {
  cli::Run run;
  run.step_times[0].wall_ns.Add(5 * kMs);
  const StepWaits waits = WaitsOf(run);
  EXPECT_FALSE(waits.data_wait.mean_ns.has_value());
  EXPECT_FALSE(waits.idle_ns().has_value());
  EXPECT_FALSE(waits.own.mean_ns.has_value());
  EXPECT_THAT(Text(FoldWaits(run)), HasSubstr("is not known"));
  EXPECT_THAT(Text(FoldWaits(cli::Run{})), HasSubstr("No step has a time"));
}

// The quantile of what is left of each step, and not what is left of the quantiles.
TEST(Waits, QuantilesAreOfSteps) {
  cli::Run run;
  for (int i = 0; i < 10; ++i) {
    const uint64_t waited = i < 5 ? 80 : 10;
    run.step_times[0].Add({.wall_ns = 100 * kMs,
                           .data_wait_ns = waited * kMs,
                           .gpu_wait_ns = 0,
                           .gpu_busy_ns = 10 * kMs,
                           .launch_gap_ns = {}});
  }
  const StepWaits waits = WaitsOf(run);
  EXPECT_NEAR(*waits.own.p50_ns, 20 * kMs, kMs);
  EXPECT_NEAR(*waits.own.p95_ns, 90 * kMs, kMs);
  EXPECT_NEAR(*waits.launch_gaps.p50_ns, 10 * kMs, kMs);
  EXPECT_NEAR(*waits.launch_gaps.p95_ns, 80 * kMs, kMs);
  // The later steps of an older trace, which has no sums of what was left.
  run.step_times[0].wall_ns.Add(100 * kMs);
  EXPECT_FALSE(WaitsOf(run).own.p50_ns.has_value());
  EXPECT_TRUE(WaitsOf(run).own.mean_ns.has_value());
}

// A measured step, whose parts are of different clocks: what runs on the GPU, what of its idle time the host waits
// for data, and the rest are the step, whatever was watched.
TEST(Waits, PartsOfAMeasuredStepAddUp) {
  for (const uint64_t data : {0, 3, 20, 200}) {
    for (const uint64_t busy : {1, 60, 99, 120}) {
      cli::Run run = RunOf({{.wall = 90, .busy = busy, .data = data, .gpu = 1}});
      run.step_times[0].usual_ns.Add(100 * kMs);
      run.step_times[0].usual_busy_ns.Add(busy * kMs);
      const StepWaits waits = WaitsOf(run);
      EXPECT_EQ(waits.clock, StepClockOf::kUndisturbed);
      EXPECT_EQ(*waits.wall.mean_ns, 100 * kMs);
      EXPECT_NEAR(*waits.gpu_busy.mean_ns + *waits.data_idle.mean_ns + *waits.launch_gaps.mean_ns, 100 * kMs, 1);
      EXPECT_EQ(*waits.data_idle.mean_ns, std::min(100 - std::min<uint64_t>(busy, 100), data) * kMs);
      if (waits.own.mean_ns) {
        EXPECT_NEAR(*waits.own.mean_ns + *waits.gpu_wait.mean_ns + *waits.data_wait.mean_ns, 100 * kMs, 1);
      }
    }
  }
}

// A host that runs ahead waits in launches, which no call tells apart from launching.
TEST(Waits, AHostThatIsNeverLateIsNotSaidToWaitForNothing) {
  cli::Run run = RunOf({{.wall = 100, .busy = 99, .data = 0, .gpu = 0}});
  run.step_times[0].usual_ns.Add(100 * kMs);
  run.step_times[0].usual_busy_ns.Add(99 * kMs);
  EXPECT_FALSE(WaitsOf(run).gpu_wait.mean_ns.has_value());
  EXPECT_FALSE(WaitsOf(run).own.mean_ns.has_value());
  EXPECT_THAT(Text(FoldWaits(run)), Not(HasSubstr("host waits for the GPU")));
  run = RunOf({{.wall = 100, .busy = 40, .data = 0, .gpu = 0}});
  run.step_times[0].usual_ns.Add(100 * kMs);
  run.step_times[0].usual_busy_ns.Add(40 * kMs);
  run.step_times[0].by_gpu_clock = 1;
  EXPECT_EQ(*WaitsOf(run).own.mean_ns, 100 * kMs);
  EXPECT_THAT(Text(FoldWaits(run)), HasSubstr("by the GPU's clock"));
}

// Where a collector times launches, a host that waits in none of them waits for nothing.
TEST(Waits, WhatLaunchesWaitForIsWhatTheHostWaitsFor) {
  cli::Run run = RunOf({{.wall = 100, .busy = 99, .data = 0, .gpu = 0}});
  run.step_times[0].usual_ns.Add(100 * kMs);
  run.step_times[0].usual_busy_ns.Add(99 * kMs);
  run.step_times[0].launch_waits = 1;
  EXPECT_EQ(*WaitsOf(run).gpu_wait.mean_ns, 0);
  EXPECT_EQ(*WaitsOf(run).own.mean_ns, 100 * kMs);
  run = RunOf({{.wall = 100, .busy = 99, .data = 0, .gpu = 60}});
  run.step_times[0].usual_ns.Add(100 * kMs);
  run.step_times[0].usual_busy_ns.Add(99 * kMs);
  run.step_times[0].launch_waits = 1;
  EXPECT_EQ(*WaitsOf(run).gpu_wait.mean_ns, 60 * kMs);
  EXPECT_EQ(*WaitsOf(run).own.mean_ns, 40 * kMs);
}

// A run whose steps take 100 ms and were timed, each by itself.
cli::Run TimedRun(const std::vector<uint64_t>& busy_ms, uint64_t data_ms) {
  cli::Run run = RunOf({{.wall = 100, .busy = 1, .data = data_ms, .gpu = 0}});
  run.step_times[0].usual_ns.Add(100 * kMs);
  uint64_t sum = 0;
  for (size_t i = 0; i < busy_ms.size(); ++i) {
    run.kept.gpu_step.Add({.step = i, .period_ns = 100 * kMs, .busy_ns = busy_ms[i] * kMs});
    sum += busy_ms[i];
  }
  run.step_times[0].usual_busy_ns.Add(sum * kMs / busy_ms.size());
  return run;
}

TEST(Waits, WhatTheGpuWaitsForIsNamed) {
  const auto waits_for = [](const std::vector<uint64_t>& busy_ms, uint64_t data_ms) {
    return WaitsOf(TimedRun(busy_ms, data_ms)).gpu_waits_for();
  };
  const std::vector<uint64_t> busy(16, 99), idle(16, 50);
  std::vector<uint64_t> in_turn = busy;
  for (size_t i = 0; i < in_turn.size(); i += 2) in_turn[i] = 50;
  std::vector<uint64_t> once = busy;
  once[3] = 50;
  EXPECT_EQ(waits_for(busy, 0), "nothing");
  EXPECT_EQ(waits_for(busy, 60), "nothing") << "batches come while the GPU works";
  EXPECT_EQ(waits_for(once, 0), "nothing");
  EXPECT_EQ(waits_for(idle, 0), "launches");
  EXPECT_EQ(waits_for(idle, 45), "data");
  EXPECT_EQ(waits_for(in_turn, 0), "launches, in part of the steps");
  EXPECT_EQ(WaitsOf(RunOf({{.wall = 100, .busy = 50, .data = 0, .gpu = 0}})).gpu_waits_for(), "");
  EXPECT_THAT(Text(FoldWaits(TimedRun(in_turn, 0))),
              HasSubstr("it was idle for more than a tenth of 50 % of the steps that were timed"));
}

// The GPU goes on with what it has when the host begins to wait, and waits for launches when the batch is there.
TEST(Waits, TimedStepsSayHowMuchOfTheIdleTimeIsAWaitForData) {
  cli::Run run = TimedRun(std::vector<uint64_t>(16, 50), 45);
  EXPECT_EQ(*WaitsOf(run).data_idle.mean_ns, 45 * kMs);
  StepTimes& times = run.step_times[0];
  times.launch_waits = 1;
  times.timed_idle_ns = 16 * 50 * kMs;
  times.timed_data_idle_ns = 16 * 20 * kMs;
  EXPECT_NEAR(*WaitsOf(run).data_idle.mean_ns, 20 * kMs, 1);
  EXPECT_NEAR(*WaitsOf(run).launch_gaps.mean_ns, 30 * kMs, 1);
  EXPECT_EQ(WaitsOf(run).gpu_waits_for(), "launches");
}

TEST(Waits, IdleTimeIsDividedAmongTheLayersThatItIsBefore) {
  cli::Run run = TimedRun(std::vector<uint64_t>(16, 60), 0);
  const auto add = [&](const char* layer, Phase phase, uint64_t launches, std::vector<uint64_t> samples) {
    LaunchStats& stats = run.launches[{.layer = {layer[0] == 0 ? "" : "Net", layer}, .phase = phase}];
    stats.launches = launches;
    for (const uint64_t ns : samples) stats.metrics["rf.idle_before"].Add(ns);
  };
  add("conv", Phase::kForward, 1000, {20, 0, 10});
  add("conv", Phase::kBackward, 500, {0, 0});
  add("fc", Phase::kBackward, 2000, {15});
  add("", Phase::kOptimizer, 100, {});
  const WaitTable table = FoldWaits(run);
  ASSERT_EQ(table.idle.size(), 2u);
  EXPECT_EQ(table.idle[0].layer.path, "fc");
  EXPECT_NEAR(table.idle[0].ns, 30 * kMs, 1) << "of the 40 ms that the GPU is idle";
  EXPECT_NEAR(table.idle[1].ns, 10 * kMs, 1);
  EXPECT_THAT(Text(table), HasSubstr("fc"));
  run.key.source = SourceKind::kEstimated;
  EXPECT_TRUE(FoldWaits(run).idle.empty());
}

TEST(Waits, TheSlowestRankIsNamed) {
  const WaitTable table = FoldWaits(RunOf({{100, 50, 1, 0}, {140, 50, 1, 0}, {102, 50, 1, 0}}));
  ASSERT_TRUE(table.slowest.has_value());
  EXPECT_EQ(table.ranks[*table.slowest].rank, "1");
  EXPECT_NEAR(table.spread, 0.4, 0.02);
  EXPECT_FALSE(table.waits_most.has_value());
  EXPECT_THAT(Text(table), HasSubstr("Rank 1 is the slowest"));
}

TEST(Waits, OfRanksThatWaitForEachOtherTheOneThatWaitsForDataIsNamed) {
  const WaitTable table = FoldWaits(RunOf({{100, 50, 2, 0}, {100, 50, 2, 0}, {101, 50, 60, 0}, {100, 50, 3, 0}}));
  EXPECT_FALSE(table.slowest.has_value());
  ASSERT_TRUE(table.waits_most.has_value());
  const std::string text = Text(table);
  EXPECT_THAT(text, HasSubstr("Rank 2 waits longest for data: 60.0 ms a step, where others wait 2.00 ms"));
  EXPECT_THAT(text, Not(HasSubstr("slowest")));
}

TEST(Waits, OneRankIsComparedWithNone) {
  const WaitTable table = FoldWaits(RunOf({{100, 50, 40, 0}}));
  EXPECT_FALSE(table.slowest.has_value());
  EXPECT_FALSE(table.waits_most.has_value());
  EXPECT_EQ(RowsOf(table).size, 1u);
}

TEST(Waits, AGpuThatLagsBehindItsHostIsSaid) {
  EXPECT_THAT(Text(FoldWaits(RunOf({{.wall = 50, .busy = 90, .data = 0, .gpu = 0}}))),
              HasSubstr("takes the 90.0 ms that the GPU is busy"));
  EXPECT_THAT(Text(FoldWaits(RunOf({{.wall = 100, .busy = 31, .data = 0, .gpu = 0}}))),
              HasSubstr("the GPU is busy for 31 % of it"));
}

TEST(Waits, TablesFitATerminal) {
  std::vector<Ms> ranks(50, Ms{100, 50, 2, 0});
  const WaitTable table = FoldWaits(RunOf(ranks));
  const std::string parts = testing::Written(WaitDocument({table}), "table");
  const std::string by_rank = testing::Written(RankDocument({table}), "table");
  std::istringstream lines(parts + by_rank);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(by_rank, HasSubstr("(10 more: --rows 0)"));
}

}  // namespace
}  // namespace rfinject::cli
