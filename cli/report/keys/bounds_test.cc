#include "cli/report/keys/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/str_join.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;

// A network of many small layers: the GPU has done each before the host launches the next, whatever they do.
TEST(Bound, LaunchesThatTheGpuWaitsForAreBoundByLaunching) {
  const auto stats = [](uint64_t ns, uint64_t bytes) {
    LaunchStats made;
    made.launches = 10;
    for (int i = 0; i < 10; ++i) {
      made.metrics["rf.time"].Add(ns);
      made.metrics["rf.dram_bytes"].Add(bytes / 32);
      made.metrics["rf.flop.fp32"].Add(1000);
    }
    return made;
  };
  const Machine machine = testing::SampleA100();
  const auto sized = [&](double ns) { return static_cast<uint64_t>(ns * 1e-9 * machine.dram_bytes_per_s); };
  Profile profile =
      testing::OneKey({.layer = {.model = "Net", .path = "tiny"}, .kernel = "tiny"}, stats(3400, sized(100)));
  cli::Run& run = profile.runs.begin()->second;
  run.key.source = SourceKind::kEstimated;
  run.launches[{.layer = {.model = "Net", .path = "large"}, .kernel = "large"}] = stats(6000, sized(5000));
  const auto bound = [](const Report& report, std::string_view layer) {
    for (const Row& row : report.rows) {
      if (row.layer == layer) return std::string(BoundName(row.derived.bound));
    }
    return std::string("no such row");
  };
  const Report report = FoldRun(profile, run, machine, {});
  EXPECT_EQ(bound(report, "tiny"), "launch");
  EXPECT_EQ(bound(report, "large"), "launch") << "6 us are less than 10";
  EXPECT_DOUBLE_EQ(report.headline.launch_share, 1);
  EXPECT_DOUBLE_EQ(report.total.sums[Quantity::kLaunchBoundTime] + report.total.sums[Quantity::kMemoryBoundTime] +
                       report.total.sums[Quantity::kComputeBoundTime],
                   report.total.sums.time_ns());
  const std::string words = absl::StrJoin(HeadlineText(report), "\n");
  EXPECT_THAT(words, HasSubstr("Held back by launching 100 %"));
  EXPECT_THAT(words, HasSubstr("the host launches a kernel every 10.0 us at best (--launch-floor)"));
  // The floor is the user's to say: a kernel that takes longer, with the gap behind it, is not waited for.
  EXPECT_EQ(bound(FoldRun(profile, run, machine, {.launch_floor_ns = 4500}), "tiny"), "memory");
  const Report some = FoldRun(profile, run, machine, {.launch_floor_ns = 7000});
  EXPECT_EQ(bound(some, "tiny"), "launch");
  EXPECT_EQ(bound(some, "large"), "memory");
  // Beside work that takes long the host gets ahead, and the GPU waits for nothing.
  run.launches[{.layer = {.model = "Net", .path = "slow"}, .kernel = "slow"}] = stats(60'000, sized(2000));
  const Report hidden = FoldRun(profile, run, machine, {});
  EXPECT_EQ(bound(hidden, "tiny"), "memory");
  EXPECT_EQ(bound(hidden, "slow"), "memory");
  EXPECT_EQ(hidden.headline.launch_share, 0);
  // A measured step that takes longer than its kernels has gaps between them.
  run.key.source = SourceKind::kMeasured;
  run.steps.steps = 10;
  for (int i = 0; i < 10; ++i) run.steps.duration_ns.Add(694'000 / 5);
  EXPECT_THAT(absl::StrJoin(HeadlineText(FoldRun(profile, run, machine, {})), "\n"),
              HasSubstr("the GPU is idle for 50 % of a step"));
}

// FLOP of a kernel whose bytes were not counted say nothing of what it is bound by.
TEST(Bound, WithoutBytesIsNotKnown) {
  LaunchStats stats;
  stats.launches = 1;
  stats.metrics["rf.time"].Add(100'000);
  stats.metrics["rf.flop.fp32"].Add(1'000'000);
  Profile profile = testing::OneKey({.layer = {.model = "Net", .path = "norm"}, .kernel = "norm"}, stats);
  const Report report = FoldRun(profile, profile.runs.begin()->second, testing::SampleA100(), {});
  EXPECT_EQ(report.total.derived.bound, Bound::kUnknown);
  EXPECT_EQ(report.total.derived.attainable_share, 0);
  EXPECT_TRUE(report.headline.most_to_win.empty());
}

// A copy is held against PCIe and a collective against the link that its bytes went over, whatever the memory's is.
TEST(Bound, WhatLeavesTheGpuIsBoundByItsLink) {
  const auto stats = [](uint64_t ns, std::string_view metric, uint64_t bytes) {
    LaunchStats made;
    made.launches = 2;
    for (int i = 0; i < 2; ++i) {
      made.metrics["rf.time"].Add(ns);
      made.metrics["rf.dram_bytes"].Add(bytes / 100);
      made.metrics[std::string(metric)].Add(bytes);
    }
    return made;
  };
  Machine machine = testing::SampleA100();
  machine.pcie_bytes_per_s = 25e9;
  machine.nvlink_bytes_per_s = 250e9;
  Profile profile =
      testing::OneKey({.phase = Phase::kData, .kernel = "copy"}, stats(50'000, "rf.pcie_bytes", 1'000'000));
  cli::Run& run = profile.runs.begin()->second;
  run.launches[{.phase = Phase::kCommunication, .kernel = "nvlink"}] = stats(200'000, "rf.nvlink_bytes", 25'000'000);
  run.launches[{.phase = Phase::kCommunication, .kernel = "pcie"}] = stats(1'100'000, "rf.pcie_bytes", 25'000'000);
  const Report report = FoldRun(profile, run, machine, {.by = By::kKernel});
  ASSERT_EQ(report.rows.size(), 3u);
  for (const Row& row : report.rows) {
    SCOPED_TRACE(row.kernel);
    EXPECT_EQ(BoundName(row.derived.bound), row.kernel == "nvlink" ? "NVLink" : "PCIe");
    EXPECT_DOUBLE_EQ(row.sums.least_ns(), row.sums[Quantity::kLeastLink]);
    EXPECT_DOUBLE_EQ(row.sums.least_ns(), row.kernel == "copy" ? 80'000 : row.kernel == "nvlink" ? 200'000 : 2e6);
  }
  EXPECT_DOUBLE_EQ(report.total.sums[Quantity::kPcieBoundTime], 2'300'000);
  EXPECT_DOUBLE_EQ(report.total.sums[Quantity::kNvlinkBoundTime], 400'000);
  EXPECT_NEAR(report.headline.pcie_share, 23.0 / 27, 1e-9);
  EXPECT_THAT(absl::StrJoin(HeadlineText(report), "\n"), HasSubstr("Held back by PCIe 85 %, NVLink 15 %"));
  // Where the links are not known, the memory is what is left.
  const Report without_links = FoldRun(profile, run, testing::SampleA100(), {.by = By::kModel});
  EXPECT_EQ(BoundName(without_links.rows[0].derived.bound), "memory");
}

}  // namespace
}  // namespace rfinject::cli
