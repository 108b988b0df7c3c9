#include "cli/picture/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/format/testing/synthetic_report.h"
#include "cli/picture/roof_labels.h"
#include "cli/picture/testing/pictures.h"
#include "cli/report/rows/roofs.h"
#include "cli/testing/sample_report.h"

namespace rfinject::cli {
namespace {

using testing::LargeReport;
using testing::SampleMeasuredReport;
using testing::SampleReports;
using testing::SmallReport;

class EveryPicture : public ::testing::TestWithParam<int> {
 protected:
  static std::vector<Report> Reports() {
    std::vector<Report> reports = SampleReports();
    reports.push_back(SampleMeasuredReport());
    reports.push_back(SampleMeasuredReport(By::kKernel));
    reports.push_back(SampleMeasuredReport(By::kPhase));
    reports.push_back(SampleReports(By::kOp)[0]);
    reports.push_back(SampleReports(By::kModel)[0]);
    reports.push_back(SampleReports(By::kClass)[0]);
    reports.push_back(SmallReport());
    reports.push_back(LargeReport(3000));
    reports.push_back(testing::HostileReport());
    reports.push_back(Report{});
    return reports;
  }
  static std::vector<Picture> Pictures() {
    std::vector<Picture> pictures;
    constexpr Size kSizes[] = {{820, 640}, {660, 580}, {1200, 900}, {420, 560}};  // the last for phones
    const Size size = kSizes[GetParam()];
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

// A roof must be named, and its label covers such a line where it has no other place; a mark's never does.
TEST_P(EveryPicture, KeepsLabelsOffTheLinesToTargets) {
  size_t labels = 0, struck = 0;
  for (const Picture& picture : Pictures()) {
    for (const Text& text : picture.texts) {
      if (!text.css.starts_with("la") || text.rotate != 0) continue;
      const bool crossed = std::any_of(picture.lines.begin(), picture.lines.end(), [&](const Line& line) {
        return line.css == "dr" && line.points[0].y < picture.plot.bottom() &&  // not the legend's
               Crosses(line.points[0], line.points[1], text.box);
      });
      const bool of_mark = text.css == "la" || text.css == "la bad";
      if (of_mark && !text.text.starts_with("shortest launch")) {
        EXPECT_FALSE(crossed) << picture.title << ": " << text.text;
      }
      ++labels;
      struck += crossed ? 1 : 0;
    }
  }
  EXPECT_GT(labels, 80u);
  EXPECT_LE(struck * 25, labels) << struck << " of " << labels;
}

TEST_P(EveryPicture, NamesEveryRoofThatItDraws) {
  for (const Report& report : Reports()) {
    constexpr Size kSizes[] = {{820, 640}, {660, 580}, {1200, 900}, {420, 560}};
    const Picture picture = LayOutRoofline(report, FramesFor({&report, 1}), kSizes[GetParam()]);
    for (const RoofLabel& wanted : RoofLabels(report.roofs)) {
      if (!(wanted.roof->peak_flop_per_s > 0) || !(wanted.roof->bytes_per_s > 0)) continue;
      const bool any_used = std::any_of(report.roofs.begin(), report.roofs.end(),
                                        [](const RoofLine& roof) { return roof.used && roof.peak_flop_per_s > 0; });
      if (IsNarrow(picture.size) && any_used && !wanted.used) continue;  // not drawn
      EXPECT_TRUE(std::any_of(
          picture.texts.begin(), picture.texts.end(),
          [&](const Text& text) { return text.text == wanted.text || text.text == RoofTitleAndRate(*wanted.roof); }))
          << picture.title << " lacks " << wanted.text;
    }
  }
}

// Farther away it would be taken for something else's.
TEST_P(EveryPicture, RidgesAreNamedAtTheirPlace) {
  for (const Picture& picture : Pictures()) {
    for (const Text& text : picture.texts) {
      if (text.css.find(" rt ") == std::string::npos) continue;
      constexpr double kNear = 30;
      double nearest = INFINITY;
      for (const Symbol& symbol : picture.symbols) {
        if (symbol.css.starts_with("ri "))
          nearest = std::min(nearest, Distance(symbol.at, NearestPoint(text.box, symbol.at)));
      }
      const bool led = std::any_of(picture.lines.begin(), picture.lines.end(), [&](const Line& line) {
        return line.css == "le" && Distance(NearestPoint(text.box, line.points.back()), line.points.back()) < 4;
      });
      EXPECT_TRUE(nearest < kNear || led) << picture.title << ": " << text.text << " is " << nearest << " away";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryPicture, ::testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace rfinject::cli
