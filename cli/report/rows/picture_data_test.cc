#include "cli/report/rows/picture_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

// Of 1 ms and `flop` in FP32, with `least_ns` as its least time.
Row MakeRow(std::optional<Phase> phase, double flop, double bytes, double least_ns) {
  Row row;
  row.phase = phase;
  row.sums.launches = 1;
  row.sums[Quantity::kTime] = 1e6;
  row.sums[FlopIn(Precision::kFp32)] = flop;
  row.sums[Quantity::kDramBytes] = bytes;
  row.sums[Quantity::kLeastMemory] = row.sums[Quantity::kLeast] = least_ns;
  row.derived = Derive(row.sums);
  row.time_share = 0.25;
  return row;
}

TEST(PictureRows, AreSplitByPhaseWhereTheReportHasThat) {
  Report report;
  report.rows = {MakeRow({}, 1, 1, 1)};
  EXPECT_EQ(PictureRows(report).data(), report.rows.data());
  report.layer_phases = {MakeRow(Phase::kForward, 1, 1, 1), MakeRow(Phase::kBackward, 1, 1, 1)};
  EXPECT_EQ(PictureRows(report).size(), 2u);
  report.by = By::kPhase;
  EXPECT_EQ(PictureRows(report).size(), 1u);
}

TEST(PerStep, IsTheSumWhereStepsAreUnknown) {
  Report report;
  EXPECT_EQ(PerStep(report, 100), 100);
  report.steps.count = 8;
  EXPECT_EQ(PerStep(report, 100), 12.5);
}

TEST(DominantPrecision, IsTheOneOfMostFlop) {
  FlopByPrecision flop{};
  EXPECT_EQ(DominantPrecision(flop), -1);
  flop[2] = 5, flop[4] = 7;
  EXPECT_EQ(DominantPrecision(flop), 4);
}

TEST(RidgeOf, NeedsPeakAndBandwidth) {
  RoofLine roof;
  EXPECT_EQ(RidgeOf(roof), 0);
  roof.peak_flop_per_s = 100, roof.bytes_per_s = 8;
  EXPECT_EQ(RidgeOf(roof), 12.5);
}

TEST(BandwidthRoof, IsTheDatasheetsElseTheHighestRoofs) {
  Report report;
  const Row row = MakeRow(Phase::kForward, 0, 1e6, 0);  // 1 GB/s
  EXPECT_EQ(BandwidthRoof(report), 0);
  EXPECT_EQ(ShareOfBandwidth(report, row), 0);
  report.roofs.push_back({.level = MemoryLevel::kDram, .bytes_per_s = 4e9});
  report.roofs.push_back({.level = MemoryLevel::kL2, .bytes_per_s = 9e9});
  EXPECT_EQ(BandwidthRoof(report), 4e9);
  EXPECT_DOUBLE_EQ(ShareOfBandwidth(report, row), 0.25);
  report.machine.dram_bytes_per_s = 2e9;
  EXPECT_EQ(BandwidthRoof(report), 2e9);
}

TEST(AboveRoof, BeginsBeyondTheTolerance) {
  Report report;
  report.machine.dram_bytes_per_s = 1e9;
  EXPECT_FALSE(AboveRoof(report, MakeRow(Phase::kForward, 1e6, 1e6, 1.02e6)));  // 2 % faster than its least time
  EXPECT_TRUE(AboveRoof(report, MakeRow(Phase::kForward, 1e6, 1e6, 1.04e6)));
  EXPECT_FALSE(AboveRoof(report, MakeRow(Phase::kForward, 1e6, 1e6, 0)));  // no roofs known
  EXPECT_FALSE(AboveRoof(report, MakeRow(Phase::kForward, 0, 1.02e6, 0)));
  EXPECT_TRUE(AboveRoof(report, MakeRow(Phase::kForward, 0, 1.04e6, 0)));
}

TEST(Intervals, AreTheValueWhereTheHalfWidthIsUnknown) {
  Row row = MakeRow(Phase::kForward, 4e6, 2e6, 1);
  EXPECT_EQ(IntensityInterval(row).low, 2);
  EXPECT_EQ(IntensityInterval(row).high, 2);
  row.bytes.relative = 0.25, row.time.relative = 0.6;
  EXPECT_DOUBLE_EQ(IntensityInterval(row).low, 1.6);
  EXPECT_DOUBLE_EQ(IntensityInterval(row).high, 2 / 0.75);
  EXPECT_DOUBLE_EQ(PerformanceInterval(row).low, 4e9 / 1.6);
  EXPECT_DOUBLE_EQ(PerformanceInterval(row).high, 4e9 / 0.4);
  row.time.relative = 1;  // as large as the value: no upper end
  EXPECT_EQ(PerformanceInterval(row).low, PerformanceInterval(row).high);
}

TEST(RowShares, CountRowsThatHaveNoPlace) {
  Report report;
  report.rows = {MakeRow(Phase::kForward, 1e6, 1e6, 1), MakeRow(Phase::kForward, 0, 1e6, 1),
                 MakeRow(Phase::kForward, 0, 0, 0)};
  report.rows.push_back(MakeRow(Phase::kForward, 0, 0, 0));
  report.rows.back().sums[Quantity::kTime] = 0;
  EXPECT_EQ(WithoutFlop(report).rows, 2u);
  EXPECT_DOUBLE_EQ(WithoutFlop(report).time_share, 0.5);
  EXPECT_EQ(WithoutLeastTimes(report).rows, 1u);
  EXPECT_DOUBLE_EQ(WithoutLeastTimes(report).time_share, 0.25);
  EXPECT_EQ(IntensityOver(report.rows[0].sums, 5e5), 2);
  EXPECT_EQ(IntensityOver(report.rows[0].sums, 0), 0);
}

TEST(PhaseTotals, AddTheModelsUp) {
  Report report;
  report.phases = {MakeRow(Phase::kForward, 4e6, 1e6, 5e5), MakeRow(Phase::kBackward, 8e6, 1e6, 5e5),
                   MakeRow(Phase::kForward, 2e6, 1e6, 2.5e5)};
  const std::vector<Row> phases = PhaseTotals(report);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].phase, Phase::kForward);
  EXPECT_DOUBLE_EQ(phases[0].sums.total_flop(), 6e6);
  EXPECT_DOUBLE_EQ(phases[0].time_share, 0.5);
  EXPECT_DOUBLE_EQ(phases[0].derived.oi_flop_per_byte, 3);  // of the sums, not the sum of two
}

TEST(Shares, AddUpToOneOrAreNone) {
  const std::vector<double> values = {1, 0, 3};
  EXPECT_EQ(Shares(values), (std::vector<double>{0.25, 0, 0.75}));
  EXPECT_TRUE(Shares(std::vector<double>{0, 0}).empty());
  EXPECT_TRUE(Shares({}).empty());
}

}  // namespace
}  // namespace rfinject::cli
