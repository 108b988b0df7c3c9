// Pairs of runs of a real GPU, which lie beside the tree (../shared/h100) and not everywhere.
#include "cli/testing/real_runs.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "cli/report/compare/diff.h"
#include "cli/report/machine.h"

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

// Runs of one program differ by 0.3 % of a layer's time and more, so that 1 % is seen in the steadier of the layers.
TEST_F(RealRuns, AChangeOfOneLayerIsSeenAlone) {
  const Profile before = testing::ReadRealRun("resnet50-128-amp-times");
  const Profile after = testing::ReadRealRun("resnet50-128-amp-default");
  const std::pair<std::string, Phase> layers[] = {
      {"bn1", Phase::kForward}, {"maxpool", Phase::kForward}, {"layer1.1.bn3", Phase::kBackward}};
  for (const auto& [path, phase] : layers) {
    Profile changed = after;
    Lengthen({"ResNet", path}, phase, 1.01, &changed);
    const auto real = RealTimes(CompareRuns(before, changed));
    ASSERT_EQ(real.size(), 1u) << path << ::testing::PrintToString(real);
    EXPECT_EQ(real.begin()->first, path + " " + std::string(PhaseName(phase)));
  }
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
