#include "cli/report/facts/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_join.h"
#include "cli/model/launch_queue.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/words/words.h"
#include "proto/wire/step_times.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;

wire::StepTime StepOf(uint64_t wall_ns, uint64_t data_ns, uint64_t gpu_wait_ns, uint64_t busy_ns) {
  return {.wall_ns = wall_ns,
          .data_wait_ns = data_ns,
          .gpu_wait_ns = gpu_wait_ns,
          .gpu_busy_ns = busy_ns,
          .launch_gap_ns = {}};
}

// ResNet-18 on a V100, two steps, as it would be on a virtual GPU whose host takes `own_ns` a step.
Profile OnVirtualGpu(const Machine& machine, uint64_t own_ns, uint64_t gpu_wait_ns) {
  Profile profile = testing::SampleResNet18(machine, 2);
  cli::Run run = profile.runs.begin()->second;
  run.key.collector = kVirtualGpuCollector;
  run.step_times.clear();
  for (int i = 0; i < 2; ++i) {
    run.step_times[0].Add(
        StepOf(own_ns + gpu_wait_ns + 3 * kMillisecond, 3 * kMillisecond, gpu_wait_ns, kMillisecond));
  }
  profile.runs.clear();
  const RunKey key = run.key;
  profile.runs.emplace(key, std::move(run));
  return profile;
}

Report FoldOnly(const Profile& profile, const Machine& machine, const FoldOptions& options = {}) {
  return FoldRun(profile, profile.runs.begin()->second, machine, options);
}

// Of a trace that somebody made; the sanitizer tells.
TEST(LaunchWaits, ALayersPlaceMayBeAnyNumber) {
  const Machine machine = testing::SampleV100();
  Profile profile = OnVirtualGpu(machine, 100 * kMillisecond, 0);
  const Report usual = FoldOnly(profile, machine);
  cli::Run& run = profile.runs.begin()->second;
  const auto key =
      std::ranges::find_if(run.launches, [](const auto& one) { return one.first.phase == Phase::kBackward; });
  ASSERT_NE(key, run.launches.end());
  run.layers.at(key->first.layer).order = uint64_t{1} << 63;
  EXPECT_EQ(FoldOnly(profile, machine).queue.launch_bound, usual.queue.launch_bound);
}

TEST(LaunchWaits, BesideAVirtualGpuTheHostIsThatOfThisMachineAndThatIsSaid) {
  const Machine machine = testing::SampleV100();
  const Report report = FoldOnly(OnVirtualGpu(machine, 100 * kMillisecond, 0), machine);
  EXPECT_EQ(report.queue.host_of, HostTime::kThisMachine);
  // The wait for data is no launching.
  EXPECT_NEAR(report.queue.host_ns, 100.0 * kMillisecond, 1.0 * kMillisecond);
  EXPECT_NEAR(report.queue.step_ns, report.queue.host_ns, 1);
  EXPECT_TRUE(report.queue.launch_bound);
  EXPECT_NEAR(report.queue.gpu_waits_share,
              1 - (report.clock.gpu_ns + report.queue.launches * kKernelGapNs) / report.queue.host_ns, 1e-6);
  const std::string words = absl::StrJoin(HeadlineText(report), "\n");
  EXPECT_THAT(words, HasSubstr("With the host that it ran on here, a step takes"));
  EXPECT_THAT(words, HasSubstr("That host is not the GPU's"));
  // What holds the rows back is said of no host in particular, so that it is the same wherever the program runs.
  EXPECT_EQ(report.queue.interval.of, HostTime::kUnknown);
  EXPECT_EQ(report.queue.interval.ns, kLaunchIntervalNs);
}

TEST(LaunchWaits, AFastHostIsAheadOfTheGpu) {
  const Machine machine = testing::SampleV100();
  const Report report = FoldOnly(OnVirtualGpu(machine, kMillisecond, 0), machine);
  EXPECT_NEAR(report.queue.step_ns, report.clock.gpu_ns + report.queue.launches * kKernelGapNs, 1);
  EXPECT_FALSE(report.queue.launch_bound);
  // One that waits at the end of each step starts again with nothing launched.
  const Report waits = FoldOnly(OnVirtualGpu(machine, kMillisecond, 5 * kMillisecond), machine);
  EXPECT_GT(waits.queue.step_ns, report.queue.step_ns);
  EXPECT_LT(waits.queue.step_ns, report.queue.step_ns + 0.1 * kMillisecond);
}

TEST(LaunchWaits, WhatTheUserGivesCounts) {
  const Machine machine = testing::SampleV100();
  const Profile profile = OnVirtualGpu(machine, 100 * kMillisecond, 0);
  const Report report = FoldOnly(profile, machine, {.host_ns_per_launch = 50'000});
  EXPECT_EQ(report.queue.host_of, HostTime::kGiven);
  EXPECT_EQ(report.queue.interval.of, HostTime::kGiven);
  EXPECT_NEAR(report.queue.host_ns, report.queue.launches * 50'000, 1);
  EXPECT_THAT(absl::StrJoin(HeadlineText(report), "\n"), Not(HasSubstr("ran on here")));
}

// What ran on a GPU is bound by what it does, however long nothing ran before it: that is a launch gap of the step.
TEST(LaunchWaits, AMeasuredKernelIsBoundByWhatItDoes) {
  const Machine machine = testing::SampleA100();
  LaunchStats stats;
  stats.launches = 20;
  for (int i = 0; i < 20; ++i) {
    stats.metrics["rf.time"].Add(15 * kMicrosecond);
    stats.metrics["rf.dram_bytes"].Add(1000);
    stats.metrics["rf.flop.fp32"].Add(1000);
  }
  Profile profile = testing::OneKey({.layer = {.model = "Net", .path = "a"}, .kernel = "k"}, stats);
  cli::Run& run = profile.runs.begin()->second;
  run.steps.steps = 2;
  for (int i = 0; i < 2; ++i) run.step_times[0].Add(StepOf(800 * kMicrosecond, 0, 0, 150 * kMicrosecond));
  for (const SourceKind source : {SourceKind::kMeasured, SourceKind::kImported}) {
    run.key.source = source;
    const Report report = FoldRun(profile, run, machine, {.launch_floor_ns = 1e6});
    EXPECT_EQ(BoundName(report.total.derived.bound), "memory");
    EXPECT_EQ(report.headline.launch_share, 0);
    EXPECT_EQ(report.queue.step_ns, 0) << "it has a wall time";
    EXPECT_THAT(absl::StrJoin(HeadlineText(report), "\n"), HasSubstr("launch gaps are at least 81 % of it"));
  }
}

// The forward's long layers let the host get ahead of the short ones that follow, and not of those before.
TEST(LaunchWaits, TheQueueGoesByPhaseAndLayer) {
  const Machine machine = testing::SampleA100();
  const auto stats = [](uint64_t launches, uint64_t ns) {
    LaunchStats made;
    made.launches = launches;
    for (uint64_t i = 0; i < launches; ++i) {
      made.metrics["rf.time"].Add(ns);
      made.metrics["rf.dram_bytes"].Add(1000);
      made.metrics["rf.flop.fp32"].Add(1000);
    }
    return made;
  };
  Profile profile = testing::OneKey({.layer = {.model = "Net", .path = "c"}, .phase = Phase::kForward, .kernel = "k"},
                                    stats(100, 2 * kMicrosecond));
  cli::Run& run = profile.runs.begin()->second;
  run.key.source = SourceKind::kEstimated;
  run.launches[{.layer = {.model = "Net", .path = "a"}, .phase = Phase::kForward, .kernel = "k"}] =
      stats(300, 2 * kMicrosecond);
  run.launches[{.layer = {.model = "Net", .path = "b"}, .phase = Phase::kForward, .kernel = "k"}] =
      stats(10, 100 * kMicrosecond);
  uint64_t order = 0;
  for (const char* path : {"a", "b", "c"}) run.layers[LayerKey{"Net", path}].order = order++;
  const Report report = FoldRun(profile, run, machine, {});
  std::string bounds;
  for (const Row& row : report.rows) bounds += row.layer + " " + std::string(BoundName(row.derived.bound)) + ", ";
  EXPECT_EQ(bounds, "a launch, b memory, c memory, ");
}

}  // namespace
}  // namespace rfinject::cli
