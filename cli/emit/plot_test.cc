#include "cli/emit/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/emit/emit.h"
#include "cli/emit/testing/synthetic_report.h"
#include "cli/testing/sample_report.h"

namespace rfinject::cli {
namespace {

using testing::LargeReport;
using testing::SampleMeasuredReport;
using testing::SampleReports;
using testing::SmallReport;

constexpr Size kSize = {820, 640};

Picture Roofline(const Report& report) { return LayOutRoofline(report, FramesFor({&report, 1}), kSize); }
Picture TimeView(const Report& report) { return LayOutTimeView(report, FramesFor({&report, 1}), kSize); }

const Mark* FindMark(const Report& report, const Picture& picture, const std::string& layer,
                     const std::string& phase = "") {
  const std::span<const Row> rows = PictureRows(report);
  for (const Mark& mark : picture.marks) {
    const Row& row = rows[mark.row];
    if (row.layer == layer && (phase.empty() || row.phase == phase)) return &mark;
  }
  return nullptr;
}

std::vector<const Line*> LinesOf(const Picture& picture, const std::string& css) {
  std::vector<const Line*> found;
  for (const Line& line : picture.lines) {
    if ((" " + line.css + " ").find(" " + css + " ") != std::string::npos) found.push_back(&line);
  }
  return found;
}

bool HasText(const Picture& picture, const std::string& part) {
  return std::any_of(picture.texts.begin(), picture.texts.end(),
                     [&](const Text& text) { return text.text.find(part) != std::string::npos; });
}

TEST(LogPosition, PutsDecadesAtEqualDistances) {
  const Decades axis{-2, 4};
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1e-2, 100, 700), 100);
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1, 100, 700), 300);
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1e4, 100, 700), 700);
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1, 600, 0), 400);  // upwards
}

TEST(FramesFor, ComesFromTheCeilingsAlone) {
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

TEST(FramesFor, GivesAllReportsTheSameAxesAndPlaces) {
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

TEST(FramesFor, IsWholeWithoutRoofsOrRows) {
  const Report empty;
  const Frames frames = FramesFor({&empty, 1});
  EXPECT_LT(frames.oi.low, frames.oi.high);
  EXPECT_LT(frames.performance.low, frames.performance.high);
  EXPECT_LT(frames.time.low, frames.time.high);
  EXPECT_TRUE(HasText(Roofline(empty), "no roofs known"));
  EXPECT_TRUE(FramesFor({}).oi.high > FramesFor({}).oi.low);
}

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
  const auto roof = [&](std::string label, Precision precision, std::string path, double peak, bool used) {
    report.roofs.push_back({.label = std::move(label),
                            .precision = precision,
                            .path = std::move(path),
                            .level = "DRAM",
                            .kind = "datasheet",
                            .peak_flop_per_s = peak,
                            .bytes_per_s = 3350e9,
                            .ridge_flop_per_byte = peak / 3350e9,
                            .used = used});
  };
  report.roofs.clear();
  for (const bool legacy_used : {false, true}) {
    report.roofs.clear();
    roof("FP32, 66.9 TFLOP/s", Precision::kFp32, "", 66.9e12, true);
    roof("TF32 tensor (wgmma), 494.7 TFLOP/s", Precision::kTf32Tensor, "wgmma", 494.7e12, false);
    roof("TF32 tensor (mma), 329.8 TFLOP/s", Precision::kTf32Tensor, "mma", 329.8e12, false);
    roof("FP16 tensor (wgmma), 989.4 TFLOP/s", Precision::kFp16Tensor, "wgmma", 989.4e12, !legacy_used);
    roof("FP16 tensor (mma), 659.6 TFLOP/s", Precision::kFp16Tensor, "mma", 659.6e12, legacy_used);
    const Picture picture = Roofline(report);
    EXPECT_TRUE(HasText(picture, "FP16 tensor (wgmma), 989.4 TFLOP/s"));
    EXPECT_TRUE(HasText(picture, "FP16 tensor (mma), 659.6 TFLOP/s"));
    EXPECT_FALSE(HasText(picture, "TF32 tensor (mma), 329.8 TFLOP/s"));  // no FLOP ran in TF32
  }
}

TEST(Roofline, BandwidthsOfCachesAreLinesOfTheirOwn) {
  Report report = SmallReport();
  const size_t before = Roofline(report).lines.size();
  report.roofs.push_back({.label = "L2, 5.4 TB/s", .level = "L2", .kind = "empirical", .bytes_per_s = 5.4e12});
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
      if (mark.has_target) {
        EXPECT_GE(mark.at.y, mark.target.y);
      }
    }
  }
}

TEST(TimeView, PutsARowAtItsLeastTimesAndPointsToTheTimeTaken) {
  const Report report = SmallReport();
  const Frames frames = FramesFor({&report, 1});
  const Picture picture = TimeView(report);
  const Box& plot = picture.plot;
  const auto x = [&](double ns) { return LogPosition(frames.time, ns, plot.x, plot.right()); };
  const auto y = [&](double ns) { return LogPosition(frames.time, ns, plot.bottom(), plot.y); };
  // A step: 4e10 FLOP at 156 TFLOP/s are 256.4 us, 2e8 bytes at 1555 GB/s are 128.6 us; taken: 400 us.
  const Mark* conv = FindMark(report, picture, "features.conv");
  ASSERT_NE(conv, nullptr);
  EXPECT_NEAR(conv->at.x, x(256410), 0.01);
  EXPECT_NEAR(conv->at.y, y(128617), 0.01);
  EXPECT_NEAR(conv->target.x, x(400000), 0.01);  // compute-bound: meets the line of 400 us from the right
  EXPECT_NEAR(conv->target.y, y(400000.0 * 128617 / 256410), 0.01);
  EXPECT_TRUE(HasText(picture, "features.conv fwd · 400 µs"));
  // Without FLOP: in the strip at the left, at the same height scale.
  const Mark* copy = FindMark(report, picture, "features.copy");
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(copy->in_gutter);
  EXPECT_NEAR(copy->at.y, y(64309), 0.01);
  // Neither FLOP nor bytes: has no place here, and the picture says so.
  EXPECT_EQ(FindMark(report, picture, "features.lost"), nullptr);
  EXPECT_TRUE(HasText(picture, "not drawn, neither FLOP nor bytes: 1 row, 5.0 % of GPU time"));
  EXPECT_TRUE(HasText(picture, "shortest launch 2.00 µs"));
}

class EveryPicture : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<Report> Reports() {
    std::vector<Report> reports = SampleReports();
    reports.push_back(SampleMeasuredReport());
    reports.push_back(SampleMeasuredReport(By::kKernel));
    reports.push_back(SampleMeasuredReport(By::kPhase));
    reports.push_back(SampleReports(By::kOp)[0]);
    reports.push_back(SampleReports(By::kModel)[0]);
    reports.push_back(SmallReport());
    reports.push_back(LargeReport(3000));
    reports.push_back(testing::HostileReport());
    reports.push_back(Report{});
    return reports;
  }
  static std::vector<Picture> Pictures() {
    std::vector<Picture> pictures;
    const Size size = GetParam() == 0 ? Size{820, 640} : GetParam() == 1 ? Size{660, 580} : Size{1200, 900};
    for (const Report& report : Reports()) {
      const Frames frames = FramesFor({&report, 1});
      pictures.push_back(LayOutRoofline(report, frames, size));
      pictures.push_back(LayOutTimeView(report, frames, size));
    }
    return pictures;
  }
};

TEST_P(EveryPicture, HasNoTextOnAnother) {
  for (const Picture& picture : Pictures()) {
    for (size_t i = 0; i < picture.texts.size(); ++i) {
      for (size_t j = i + 1; j < picture.texts.size(); ++j) {
        const Text &a = picture.texts[i], &b = picture.texts[j];
        if (a.rotate != 0 || b.rotate != 0) continue;  // their boxes are not the text's outline
        EXPECT_FALSE(Overlap(a.box, b.box))
            << picture.title << ", " << picture.kind << ": \"" << a.text << "\" and \"" << b.text << "\"";
      }
    }
  }
}

TEST_P(EveryPicture, HasEverythingInsideItsEdges) {
  for (const Picture& picture : Pictures()) {
    for (const Text& text : picture.texts) {
      if (text.rotate != 0) continue;
      EXPECT_GE(text.box.x, 0) << text.text;
      EXPECT_LE(text.box.right(), picture.size.width) << picture.title << ": " << text.text;
      EXPECT_LE(text.box.bottom(), picture.size.height) << text.text;
    }
    for (const Line& line : picture.lines) {
      for (const Point& point : line.points) {
        EXPECT_TRUE(std::isfinite(point.x) && std::isfinite(point.y)) << line.css;
        EXPECT_GE(point.x, 0) << line.css;
        EXPECT_LE(point.x, picture.size.width) << line.css;
        EXPECT_GE(point.y, 0) << line.css;
        EXPECT_LE(point.y, picture.size.height) << line.css;
      }
    }
    for (const Mark& mark : picture.marks) EXPECT_TRUE(std::isfinite(mark.at.x) && std::isfinite(mark.at.y));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryPicture, ::testing::Values(0, 1, 2));

TEST(MarkPath, HasTheAreaOfTheCircleForEveryPhase) {
  for (int phase = 0; phase < static_cast<int>(kPhaseNames.size()); ++phase) {
    if (phase == static_cast<int>(Phase::kForward)) continue;  // the circle itself
    std::string path = MarkPath(phase, {0, 0}, 100);
    std::replace_if(
        path.begin(), path.end(), [](char c) { return c == 'M' || c == 'L' || c == 'Z'; }, ' ');
    std::istringstream in(path);
    const std::vector<double> v{std::istream_iterator<double>(in), {}};
    double twice = 0;
    for (size_t i = 0; i < v.size(); i += 2) {
      const size_t j = (i + 2) % v.size();
      twice += v[i] * v[j + 1] - v[j] * v[i + 1];
    }
    EXPECT_NEAR(std::fabs(twice) / 2, M_PI * 1e4, M_PI * 100) << kPhaseNames[static_cast<size_t>(phase)];
  }
}

TEST(RowName, IsWhatTheRowDiffersIn) {
  Report report;
  const auto name = [&](const Row& row, By by) {
    report.by = by;
    return RowName(row, report);
  };
  Row row;
  row.model = "Net", row.layer = "a.b", row.op = "aten::relu", row.kernel = "void ns::relu_kernel<float>(float*)";
  EXPECT_EQ(name(row, By::kLayer), "a.b");
  EXPECT_EQ(name(row, By::kKernel), "a.b: relu");
  EXPECT_EQ(name(row, By::kOp), "aten::relu");
  row.layer.clear();
  EXPECT_EQ(name(row, By::kLayer), "Net");
  EXPECT_EQ(name(row, By::kKernel), "relu_kernel");
  row = Row{};
  EXPECT_EQ(name(row, By::kLayer), "(no layer)");
  row.phase = "optimizer";
  EXPECT_EQ(name(row, By::kLayer), "optimizer");
}

TEST(RowName, NamesTheModelWhereThereAreSeveral) {
  Report report;
  report.run.models = {"Generator", "Discriminator"};
  Row row;
  row.model = "Generator", row.layer = "features.0";
  EXPECT_EQ(RowName(row, report), "Generator features.0");
}

TEST(RowName, KeepsTheEndOfALongPath) {
  Row row;
  row.model = "Net", row.layer = "encoder.layers.encoder_layer_11.self_attention.out_proj";
  EXPECT_TRUE(RowName(row, Report{}).ends_with("self_attention.out_proj"));
}

TEST(ShortKernelName, DropsNamespacesTemplatesAndParameters) {
  EXPECT_EQ(ShortKernelName("void at::native::copy_kernel<4, float>(int)"), "copy_kernel");
  EXPECT_EQ(ShortKernelName("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
  EXPECT_EQ(ShortKernelName("<lambda>"), "<lambda>");
  EXPECT_EQ(ShortKernelName(""), "");
}

// WCAG 2.1, 1.4.11: graphics need a contrast of 3:1; relative luminance after 1.4.3.
double Luminance(const std::string& colour) {
  const auto channel = [&](size_t at) {
    const double c = static_cast<double>(std::stoul(colour.substr(at, 2), nullptr, 16)) / 255;
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

TEST(PictureStyle, HasContrastInLightAndDark) {
  const std::string css = PictureStyle(false);
  const size_t dark_at = css.find("@media");
  ASSERT_NE(dark_at, std::string::npos);
  for (const std::string& part : {css.substr(0, dark_at), css.substr(dark_at)}) {
    const auto colour = [&](const std::string& selector, const std::string& property) {
      const size_t at = part.find(selector);
      EXPECT_NE(at, std::string::npos) << selector;
      return part.substr(part.find(property + ":#", at) + property.size() + 1, 7);
    };
    const double ground = Luminance(colour(".pic .bg", "fill"));
    const auto contrast = [&](const std::string& c) {
      const double l = Luminance(c);
      return (std::max(l, ground) + 0.05) / (std::min(l, ground) + 0.05);
    };
    for (size_t p = 0; p < kPrecisionCount; ++p) {
      EXPECT_GE(contrast(colour("text.p" + std::to_string(p), "fill")), 4.5) << p;  // they colour text too
    }
    EXPECT_GE(contrast(colour("text{fill", "fill")), 7);
    EXPECT_GE(contrast(colour(".pic .mu", "fill")), 4.5);
    EXPECT_GE(contrast(colour("text.faint", "fill")), 3);
    EXPECT_GE(contrast(colour("text.bad", "fill")), 4.5);
    EXPECT_GE(contrast(colour(".pic .ms", "fill")), 4.5);
    EXPECT_GE(contrast(colour(".so2{fill", "fill")), 4.5);
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// RFINJECT_UPDATE_GOLDEN=1 writes the file anew; look at the picture before committing it.
TEST(EmitSvg, EqualsTheGoldenPicture) {
  const Report report = SmallReport();
  std::ostringstream out;
  EmitSvg({&report, 1}, out);
  const std::string path = RFINJECT_TESTDATA "/small.svg";
  if (std::getenv("RFINJECT_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << out.str();
  const std::string golden = ReadFile(path);
  ASSERT_FALSE(golden.empty()) << path;
  std::istringstream have(out.str()), want(golden);
  std::string have_line, want_line;
  for (int line = 1; std::getline(want, want_line); ++line) {
    ASSERT_TRUE(std::getline(have, have_line)) << "ends at line " << line << " of " << path;
    ASSERT_EQ(have_line, want_line) << "line " << line << " of " << path;
  }
  EXPECT_FALSE(std::getline(have, have_line)) << "more than in " << path;
}

TEST(EmitSvg, IsOneDocumentWithTwoPicturesAReport) {
  std::ostringstream out;
  const std::vector<Report> reports = SampleReports();
  EmitSvg(reports, out);
  const std::string svg = out.str();
  const auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = svg.find(word); at != std::string::npos; at = svg.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("data-kind=\"roofline\""), 2u);
  EXPECT_EQ(count("data-kind=\"time\""), 2u);
  EXPECT_EQ(count("<script"), 0u);
  EXPECT_EQ(count("<svg"), count("</svg>"));
  std::ostringstream none;
  EmitSvg({}, none);
  EXPECT_NE(none.str().find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace rfinject::cli
