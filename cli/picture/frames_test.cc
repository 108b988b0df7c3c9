#include "cli/picture/frames.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "cli/format/testing/synthetic_report.h"
#include "cli/picture/testing/pictures.h"
#include "cli/testing/sample_report.h"

namespace rfinject::cli {
namespace {

using testing::HasText;
using testing::kSize;
using testing::Roofline;
using testing::SampleMeasuredReport;
using testing::SampleReports;
using testing::SmallReport;

TEST(FramesTest, ComesFromTheCeilingsAlone) {
  Report report = SmallReport();
  const Frames before = FramesFor({&report, 1});
  EXPECT_EQ(before.oi.low, -2);
  EXPECT_EQ(before.oi.high, 4);  // above ten times the ridge of 312 TFLOP/s, 201
  EXPECT_EQ(before.performance.high, 15);
  EXPECT_EQ(before.performance.low, 9);
  report.rows[0].derived.oi_flop_per_byte *= 1e6;
  report.rows[0].derived.performance_flop_per_s *= 1e6;
  const Frames after = FramesFor({&report, 1});
  EXPECT_EQ(after.oi.high, before.oi.high);
  EXPECT_EQ(after.performance.high, before.performance.high);
}

TEST(FramesTest, GivesAllReportsTheSameAxesAndPlaces) {
  std::vector<Report> reports = SampleReports();
  reports.push_back(SampleMeasuredReport());
  const Frames frames = FramesFor(reports);
  const Box first = LayOutRoofline(reports[0], frames, kSize).plot;
  const Box first_time = LayOutTimeView(reports[0], frames, kSize).plot;
  for (const Report& report : reports) {
    const Box plot = LayOutRoofline(report, frames, kSize).plot;
    EXPECT_EQ(plot.y, first.y);
    EXPECT_EQ(plot.height, first.height);
    EXPECT_EQ(plot.x, first.x);
    EXPECT_EQ(plot.width, first.width);
    EXPECT_EQ(LayOutTimeView(report, frames, kSize).plot.height, first_time.height);
  }
}

TEST(FramesTest, IsWholeWithoutRoofsOrRows) {
  const Report empty;
  const Frames frames = FramesFor({&empty, 1});
  EXPECT_LT(frames.oi.low, frames.oi.high);
  EXPECT_LT(frames.performance.low, frames.performance.high);
  EXPECT_LT(frames.time.low, frames.time.high);
  EXPECT_TRUE(HasText(Roofline(empty), "no roofs known"));
  EXPECT_TRUE(FramesFor(std::span<const Report>()).oi.high > FramesFor(std::span<const Report>()).oi.low);
}

}  // namespace
}  // namespace rfinject::cli
