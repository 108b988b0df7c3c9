#include "cli/report/facts/memory.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

cli::Run WithPeak() {
  cli::Run run;
  run.layers[{"Net", "a"}].class_name = "Conv2d";
  run.memory_peak = {{.step = 3, .allocated_bytes = 1000, .reserved_bytes = 1200, .part = {}}, {}, {}};
  run.memory_peak.parts = {{{.layer = {"Net", "a"}, .phase = Phase::kForward}, 300},
                           {{.layer = {"Net", "a"}, .phase = Phase::kBackward}, 100},
                           {{.layer = {"Net", "b"}, .phase = Phase::kForward}, 350},
                           {{.phase = Phase::kOther}, 250}};
  return run;
}

TEST(FoldMemory, ByPhaseAndByLayer) {
  const MemoryTable table = FoldMemory(WithPeak());
  EXPECT_TRUE(table.known);
  EXPECT_EQ(table.allocated_bytes, 1000u);
  ASSERT_EQ(table.phases.size(), 3u);
  EXPECT_EQ(table.phases[0].phase, Phase::kForward);
  EXPECT_EQ(table.phases[0].bytes, 650u);
  EXPECT_DOUBLE_EQ(table.phases[0].share, 0.65);
  EXPECT_EQ(table.phases[1].phase, Phase::kOther);
  EXPECT_EQ(table.phases[2].bytes, 100u);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[0].layer, "b");
  EXPECT_EQ(table.rows[1].layer, "a");
  EXPECT_EQ(table.rows[1].class_name, "Conv2d");
  EXPECT_EQ(table.rows[2].model, "");
  EXPECT_EQ(table.rows[3].bytes, 100u);
}

TEST(FoldMemory, WhatNobodyWatchedIsNotKnown) {
  cli::Run run = WithPeak();
  run.memory_peak = {};
  run.steps.memory_peak_bytes = 77;
  run.models["Net"] = {.class_name = "Net", .parameters = 100, .parameter_bytes = 400, .trainable_parameters = 25};
  const MemoryTable table = FoldMemory(run);
  EXPECT_FALSE(table.known);
  EXPECT_EQ(table.parameter_bytes, 400u);
  EXPECT_EQ(table.gradient_bytes, 100u);
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(table.in_use_bytes, 77u);
}

// Of a trace that somebody made.
TEST(FoldMemory, NoMoreIsTrainedThanThereIs) {
  cli::Run run;
  run.models["Net"] = {.parameters = 2, .parameter_bytes = UINT64_MAX, .trainable_parameters = 9};
  run.models["Other"] = {.parameters = 3, .parameter_bytes = 900, .trainable_parameters = 2};
  const MemoryTable table = FoldMemory(run);
  EXPECT_EQ(table.parameter_bytes, UINT64_MAX);
  EXPECT_EQ(table.gradient_bytes, UINT64_MAX);
}

TEST(FoldMemory, WhatWasRefusedStandsBeforeAHigherPeak) {
  Profile refused, high;
  cli::Run run = WithPeak();
  const RunKey key = run.key;
  high.runs.emplace(key, run);
  run.memory_peak.allocated_bytes = 900;
  run.memory_peak.refused_bytes = 200;
  run.memory_peak.refused_in = {.layer = {"Net", "a"}, .phase = Phase::kForward};
  run.devices = {{.index = 0, .memory_bytes = 1024}};
  refused.runs.emplace(key, run);
  ASSERT_TRUE(high.Merge(refused).ok());
  const MemoryTable table = FoldMemory(high.runs.at(key));
  EXPECT_EQ(table.allocated_bytes, 900u);
  EXPECT_EQ(table.memory_bytes, 1024u);
  EXPECT_EQ(table.refused.bytes, 200u);
  EXPECT_EQ(table.refused.class_name, "Conv2d");
  EXPECT_EQ(FoldMemory(WithPeak()).refused.bytes, 0u);
}

TEST(FoldMemory, OfSeveralProcessesTheHighestPeakStands) {
  Profile low, high;
  cli::Run run = WithPeak();
  const RunKey key = run.key;
  low.runs.emplace(key, run);
  run.memory_peak.allocated_bytes = 1001;
  run.memory_peak.parts.begin()->second += 1;
  high.runs.emplace(key, run);
  Profile one = low, other = high;
  ASSERT_TRUE(one.Merge(high).ok());
  ASSERT_TRUE(other.Merge(low).ok());
  EXPECT_EQ(one.runs.at(key).memory_peak, run.memory_peak);
  EXPECT_EQ(other.runs.at(key).memory_peak, run.memory_peak);
}

}  // namespace
}  // namespace rfinject::cli
