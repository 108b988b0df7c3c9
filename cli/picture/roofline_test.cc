#include "cli/picture/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/format/testing/synthetic_report.h"
#include "cli/picture/mark_shape.h"
#include "cli/picture/roof_labels.h"
#include "cli/picture/testing/pictures.h"
#include "cli/testing/sample_report.h"

namespace rfinject::cli {
namespace {

using testing::FindMark;
using testing::HasText;
using testing::LargeReport;
using testing::LinesOf;
using testing::Roofline;
using testing::SampleMeasuredReport;
using testing::SampleReports;
using testing::SmallReport;

TEST(Roofline, DrawsOnePolylineARoofWithItsKneeAtTheRidge) {
  const Report report = SmallReport();
  const Frames frames = FramesFor({&report, 1});
  const Picture picture = Roofline(report);
  const Box& plot = picture.plot;
  // FP32: 19.5e12 / 1555e9 = 12.54 FLOP/B.
  const std::vector<const Line*> fp32 = LinesOf(picture, "p1");
  ASSERT_EQ(fp32.size(), 1u);
  ASSERT_EQ(fp32[0]->points.size(), 3u);
  const Point knee = fp32[0]->points[1];
  EXPECT_NEAR(knee.x, LogPosition(frames.oi, 12.5402, plot.x, plot.right()), 0.01);
  EXPECT_NEAR(knee.y, LogPosition(frames.performance, 19.5e12, plot.bottom(), plot.y), 0.01);
  EXPECT_NEAR(fp32[0]->points[2].y, knee.y, 1e-9);  // flat to the right end
  EXPECT_NEAR(fp32[0]->points[0].y, LogPosition(frames.performance, 1555e7, plot.bottom(), plot.y), 0.01);
  // TF32 by datasheet, measured clock and measurement: three lines, solid, dashed, dotted.
  EXPECT_EQ(LinesOf(picture, "p3").size(), 3u);
  std::vector<std::string> styles;
  for (const Line* line : LinesOf(picture, "p3")) styles.push_back(line->css);
  EXPECT_THAT(styles, ::testing::UnorderedElementsAre("ro p3", "ro p3 dash", "ro p3 dot"));
  // FP16 and BF16 tensor are not used: faint.
  EXPECT_EQ(LinesOf(picture, "faint").size(), 3u);  // and their line in the legend
}

TEST(Roofline, LabelsPeaksAndRidgesWithTheirValues) {
  const Picture picture = Roofline(SmallReport());
  EXPECT_TRUE(HasText(picture, "FP32, 19.5 TFLOP/s"));
  EXPECT_TRUE(HasText(picture, "FP16, BF16 tensor, 312 TFLOP/s"));  // one line, one label
  EXPECT_TRUE(HasText(picture, "TF32 tensor, 156 TFLOP/s, 140 T measured clock, 125 T empirical"));
  EXPECT_TRUE(HasText(picture, "ridge 12.5 FLOP/B"));
  EXPECT_TRUE(HasText(picture, "ridge 100 FLOP/B"));
  EXPECT_TRUE(HasText(picture, "DRAM 1.5"));
}

TEST(Roofline, SaysWhatItIsOn) {
  const Picture measured = Roofline(SmallReport());
  EXPECT_TRUE(HasText(measured, "Net on NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(HasText(measured, "batch 8"));
  EXPECT_TRUE(HasText(measured, "TF32: convolution on, matmul off"));
  EXPECT_TRUE(HasText(measured, "10 steps"));
  EXPECT_TRUE(HasText(measured, "MEASURED"));
  EXPECT_FALSE(HasText(measured, "ESTIMATED"));
  EXPECT_TRUE(HasText(Roofline(SampleReports()[0]), "ESTIMATED"));
}

TEST(Roofline, PutsAPointAtItsIntensityAndPerformance) {
  const Report report = SmallReport();
  const Frames frames = FramesFor({&report, 1});
  const Picture picture = Roofline(report);
  const Mark* conv = FindMark(report, picture, "features.conv");
  ASSERT_NE(conv, nullptr);
  // 4e11 FLOP, 2e9 bytes, 4 ms: OI 200, 100 TFLOP/s; attainable: 156 TFLOP/s.
  EXPECT_NEAR(conv->at.x, LogPosition(frames.oi, 200, picture.plot.x, picture.plot.right()), 0.01);
  EXPECT_NEAR(conv->at.y, LogPosition(frames.performance, 1e14, picture.plot.bottom(), picture.plot.y), 0.01);
  ASSERT_TRUE(conv->has_target);
  EXPECT_NEAR(conv->target.x, conv->at.x, 1e-9);
  EXPECT_NEAR(conv->target.y, LogPosition(frames.performance, 156e12, picture.plot.bottom(), picture.plot.y), 0.01);
  EXPECT_EQ(conv->precision, static_cast<int>(Precision::kTf32Tensor));
  EXPECT_EQ(conv->phase, static_cast<int>(Phase::kForward));
  EXPECT_TRUE(HasText(picture, "features.conv fwd · 64 %"));
}

TEST(Roofline, MakesAreaProportionalToTime) {
  const Report report = SmallReport();
  const Picture picture = Roofline(report);
  const Mark* conv = FindMark(report, picture, "features.conv");  // 4 ms
  const Mark* norm = FindMark(report, picture, "features.norm");  // 2 ms
  EXPECT_NEAR(conv->radius * conv->radius / (norm->radius * norm->radius), 2, 1e-9);
}

TEST(Roofline, KeepsRowsWithoutFlopInTheGutter) {
  const Report report = SmallReport();
  const Picture picture = Roofline(report);
  const Mark* copy = FindMark(report, picture, "features.copy");
  const Mark* lost = FindMark(report, picture, "features.lost");
  ASSERT_NE(copy, nullptr);
  ASSERT_NE(lost, nullptr);
  for (const Mark* mark : {copy, lost}) {
    EXPECT_TRUE(mark->in_gutter);
    EXPECT_GE(mark->at.x, picture.gutter.x);
    EXPECT_LE(mark->at.x, picture.gutter.right());
  }
  // 1 TB/s of 1.555 is 64 % of the roof; nothing is known of the other one.
  EXPECT_LT(copy->at.y, picture.gutter.y + picture.gutter.height / 4);
  EXPECT_GT(lost->at.y, picture.gutter.bottom() - 18);
  EXPECT_TRUE(HasText(picture, "no FLOP: 15 %"));  // 1.5 of 10.1 ms
}

TEST(Roofline, NeverDropsARow) {
  for (const Report& report : {SmallReport(), SampleReports()[1], SampleMeasuredReport(), LargeReport(700)}) {
    size_t with_time = 0;
    for (const Row& row : PictureRows(report)) with_time += row.sums.time_ns() > 0 ? 1 : 0;
    EXPECT_EQ(Roofline(report).marks.size(), with_time);
  }
}

TEST(Roofline, FlagsWhatIsAboveItsRoof) {
  const Report report = SmallReport();
  const Picture picture = Roofline(report);
  for (const Mark& mark : picture.marks) {
    EXPECT_EQ(mark.above_roof, PictureRows(report)[mark.row].layer == "head.impossible");
  }
  EXPECT_TRUE(HasText(picture, "R001"));
}

TEST(Roofline, BothTensorPathsOfAUsedPrecisionAreLabelled) {
  Report report = SmallReport();
  const auto roof = [&](Precision precision, std::string path, double peak, bool used) {
    report.roofs.push_back({.precision = precision,
                            .path = std::move(path),
                            .peak_flop_per_s = peak,
                            .bytes_per_s = 3350e9,
                            .used = used});
  };
  report.roofs.clear();
  for (const bool legacy_used : {false, true}) {
    report.roofs.clear();
    roof(Precision::kFp32, "", 66.9e12, true);
    roof(Precision::kTf32Tensor, "wgmma", 494.7e12, false);
    roof(Precision::kTf32Tensor, "mma", 329.8e12, false);
    roof(Precision::kFp16Tensor, "wgmma", 989.4e12, !legacy_used);
    roof(Precision::kFp16Tensor, "mma", 659.6e12, legacy_used);
    const Picture picture = Roofline(report);
    EXPECT_TRUE(HasText(picture, "FP16 tensor (wgmma), 989.4 TFLOP/s"));
    EXPECT_TRUE(HasText(picture, "FP16 tensor (mma), 659.6 TFLOP/s"));
    EXPECT_FALSE(HasText(picture, "TF32 tensor (mma), 329.8 TFLOP/s"));  // no FLOP ran in TF32
  }
}

TEST(Roofline, EveryRoofThatIsDrawnHasALabel) {
  for (const Report& report : {SmallReport(), SampleReports()[0], SampleReports()[1], SampleMeasuredReport(),
                               LargeReport(700), LargeReport(3000)}) {
    for (const Size size : {testing::kSize}) {
      const Picture picture = LayOutRoofline(report, FramesFor({&report, 1}), size);
      for (const RoofLabel& label : RoofLabels(report.roofs)) {
        EXPECT_TRUE(HasText(picture, label.text)) << label.text << ", " << size.width;
      }
      EXPECT_TRUE(HasText(picture, "DRAM ")) << size.width;
    }
  }
}

TEST(Roofline, BandwidthsOfCachesAreLinesOfTheirOwn) {
  Report report = SmallReport();
  const size_t before = Roofline(report).lines.size();
  report.roofs.push_back({.level = MemoryLevel::kL2, .kind = RoofKind::kEmpirical, .bytes_per_s = 5.4e12});
  const Picture picture = Roofline(report);
  EXPECT_TRUE(HasText(picture, "L2 5.40 TB/s (empirical)"));
  EXPECT_EQ(picture.lines.size(), before + 1);
  // With the bytes known, a mark says where it stands in them: a line to it and a tick.
  for (Row& row : report.rows) row.sums[Quantity::kL2Bytes] = 2 * row.sums.dram_bytes();
  EXPECT_GT(Roofline(report).lines.size(), before + 3);
}

TEST(Roofline, ClampsToTheFrameAndSaysSo) {
  Report report = SmallReport();
  report.rows[0].derived.oi_flop_per_byte = 1e9;
  report.rows[1].derived.performance_flop_per_s = 1;
  report.rows[2].derived.oi_flop_per_byte = INFINITY;  // FLOP without bytes
  const Picture picture = Roofline(report);
  for (const Mark& mark : picture.marks) {
    const Box& box = mark.in_gutter ? picture.gutter : picture.plot;
    EXPECT_GE(mark.at.x, box.x);
    EXPECT_LE(mark.at.x, box.right());
    EXPECT_GE(mark.at.y, box.y);
    EXPECT_LE(mark.at.y, box.bottom());
    EXPECT_EQ(mark.clipped, mark.row < 3) << mark.row;
  }
}

TEST(Roofline, DrawsMarksFromOutsideWholeInsideTheFrame) {
  Report report = SmallReport();
  report.rows[2].derived.performance_flop_per_s = 641e6;  // a large optimizer, below the frame
  report.rows[0].derived.oi_flop_per_byte = 1e9;
  report.rows[0].derived.performance_flop_per_s = 1e30;  // beyond a corner
  const Picture picture = Roofline(report);
  size_t clipped = 0;
  for (const Mark& mark : picture.marks) {
    if (!mark.clipped || mark.in_gutter) continue;
    ++clipped;
    Box box = MarkExtent(mark.phase, mark.radius);
    box.x += mark.at.x, box.y += mark.at.y;
    EXPECT_TRUE(Inside(
        box, {picture.plot.x - 0.01, picture.plot.y - 0.01, picture.plot.width + 0.02, picture.plot.height + 0.02}))
        << mark.row;
  }
  EXPECT_EQ(clipped, 2u);
  const Mark* optimizer = FindMark(report, picture, "", Phase::kOptimizer);
  ASSERT_NE(optimizer, nullptr);
  EXPECT_EQ(optimizer->pin.y, picture.plot.bottom());
  EXPECT_EQ(optimizer->at.x, optimizer->pin.x);  // its intensity is inside the frame, and stays
}

TEST(Roofline, DrawsConfidenceIntervals) {
  const Report report = SmallReport();
  const Frames frames = FramesFor({&report, 1});
  const Picture picture = Roofline(report);
  const Mark* conv = FindMark(report, picture, "features.conv");
  // Bytes 30 % up or down: OI 200/1.3 to 200/0.7. Time 20 %: performance 100/1.2 to 100/0.8 TFLOP/s.
  const auto x = [&](double oi) { return LogPosition(frames.oi, oi, picture.plot.x, picture.plot.right()); };
  const auto y = [&](double p) { return LogPosition(frames.performance, p, picture.plot.bottom(), picture.plot.y); };
  EXPECT_NEAR(conv->ci_left, x(200 / 1.3), 0.01);
  EXPECT_NEAR(conv->ci_right, x(200 / 0.7), 0.01);
  EXPECT_NEAR(conv->ci_bottom, y(1e14 / 1.2), 0.01);
  EXPECT_NEAR(conv->ci_top, y(1e14 / 0.8), 0.01);
  const Mark* norm = FindMark(report, picture, "features.norm");
  EXPECT_EQ(norm->ci_left, norm->ci_right);
}

TEST(Roofline, IsBelowTheRoofWhereTheNumbersAre) {
  for (const Report& report : {SampleReports()[0], SampleReports()[1], LargeReport(2000)}) {
    for (const Mark& mark : Roofline(report).marks) {
      EXPECT_FALSE(mark.above_roof);
      // A convolution by Winograd may be faster than what its FLOP allow.
      if (mark.has_target && PictureRows(report)[mark.row].sums[Quantity::kWinogradTime] <= 0) {
        EXPECT_GE(mark.at.y, mark.target.y);
      }
    }
  }
}

}  // namespace
}  // namespace rfinject::cli
