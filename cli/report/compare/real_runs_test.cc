// Pairs of runs of a real GPU, which lie beside the tree (../shared/h100) and not everywhere.
#include "cli/testing/real_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "cli/report/compare/diff.h"
#include "cli/report/machine.h"
#include "cli/testing/sanitized.h"

namespace rfinject::cli {
namespace {

class RealRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::RealRunsFolder().empty()) GTEST_SKIP() << "note: the runs of an H100 are not here";
  }
  static RunDiff CompareRuns(const Profile& a, const Profile& b) {
    return MakeDiff(a, b, MachineFor, {}).pairs.at(0);
  }
};

// Makes what one layer's kernels took `factor` times as long, in one phase.
void Lengthen(const LayerKey& layer, Phase phase, double factor, Profile* profile) {
  for (auto& [key, stats] : profile->runs.begin()->second.launches) {
    if (key.layer != layer || key.phase != phase) continue;
    const auto longer = [&](auto ns) { return static_cast<decltype(ns)>(static_cast<double>(ns) * factor); };
    Stat& time = stats.metrics.at("rf.time");
    time.sum = longer(time.sum);
    time.sum_squares = longer(longer(time.sum_squares));
    time.min = longer(time.min);
    time.max = longer(time.max);
    for (StepSum& one : stats.step_sums.at("rf.time")) one.sum = longer(one.sum);
  }
}

std::map<std::string, double> RealTimes(const RunDiff& diff) {
  std::map<std::string, double> real;
  for (const DiffRow& row : diff.rows) {
    const Change& time = row[Compared::kTime];
    if (time.verdict == Verdict::kReal) real[row.layer + " " + std::string(PhaseName(row.phase))] = time.ratio;
  }
  return real;
}

// Ten timed steps of ResNet-50 without counting, and five of it with: the same program.
TEST_F(RealRuns, OfOneProgramShowNoChange) {
  const RunDiff diff =
      CompareRuns(testing::ReadRealRun("resnet50-128-amp-times"), testing::ReadRealRun("resnet50-128-amp-default"));
  EXPECT_TRUE(RealTimes(diff).empty()) << ::testing::PrintToString(RealTimes(diff));
  const Change& total = diff.total[Compared::kTime];
  EXPECT_EQ(total.verdict, Verdict::kNoise);
  EXPECT_NEAR(total.ratio, 1, 0.005);
  size_t unknown = 0;
  for (const DiffRow& row : diff.rows) unknown += row[Compared::kTime].verdict == Verdict::kUnknown;
  EXPECT_EQ(unknown, 0u);
}

// One layer's kernels take 1 % longer: the row is real, alone, wherever ten timed steps and five can show it. They
// cannot where a row scatters by more, or the two runs themselves have another time (conv1's backward takes 0.8 %
// less).
TEST_F(RealRuns, AChangeOfOneLayerIsSeenAlone) {
  const Profile before = testing::ReadRealRun("resnet50-128-amp-times");
  const Profile after = testing::ReadRealRun("resnet50-128-amp-default");
  const RunDiff unchanged = CompareRuns(before, after);
  size_t rows = 0, taken = 0, seen = 0;
  for (const DiffRow& row : unchanged.rows) {
    const Change& time = row[Compared::kTime];
    if (time.after < 0.005 * unchanged.total[Compared::kTime].after) continue;
    if (rows++ % OneIn(10) != 0) continue;
    Profile changed = after;
    Lengthen({row.model, row.layer}, *row.phase, 1.01, &changed);
    const auto real = RealTimes(CompareRuns(before, changed));
    const std::string name = row.layer + " " + std::string(PhaseName(row.phase));
    for (const auto& [row_name, ratio] : real) EXPECT_EQ(row_name, name) << ratio;
    if (time.difference() + 0.01 * time.after > 5 * time.standard) {
      EXPECT_EQ(real.size(), 1u) << name;
    }
    ++taken;
    seen += real.size();
  }
  EXPECT_GT(rows, 50u);
  EXPECT_GE(seen, 24 * taken / rows) << "of " << taken;
}

// TF32 against AMP: nearly all rows became faster, and the pool in front, which computes in FP32 in both, did not.
TEST_F(RealRuns, WhatDidNotChangeIsNotRealBesideWhatDid) {
  const RunDiff diff = CompareRuns(testing::ReadRealRun("r18-range"), testing::ReadRealRun("r18-amp"));
  const auto real = RealTimes(diff);
  EXPECT_GT(real.size(), 60u);
  EXPECT_FALSE(real.contains("avgpool forward")) << ::testing::PrintToString(real);
  for (const auto& [name, ratio] : real) EXPECT_GT(std::fabs(ratio - 1), 0.05) << name;
}

TEST_F(RealRuns, AgainstThemselvesAreSilent) {
  for (const char* name : {"gpt", "r18-amp", "r18-range", "r18-user", "resnet18-256-fp32", "resnet50-128-amp-default",
                           "resnet50-128-amp-times"}) {
    const Profile run = testing::ReadRealRun(name);
    const RunDiff diff = CompareRuns(run, run);
    for (const DiffRow& row : diff.rows) EXPECT_FALSE(row.Changed()) << name << " " << row.layer;
    EXPECT_FALSE(diff.total.Changed()) << name;
  }
}

}  // namespace
}  // namespace rfinject::cli
