#include "cli/picture/time_view.h"

#include <gtest/gtest.h>

#include "cli/format/testing/synthetic_report.h"
#include "cli/picture/testing/pictures.h"
#include "cli/testing/sample_report.h"

namespace rfinject::cli {
namespace {

using testing::FindMark;
using testing::HasText;
using testing::SmallReport;
using testing::TimeView;

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
  EXPECT_TRUE(HasText(picture, "features.conv fwd · 400 us"));
  // Without FLOP: in the strip at the left, at the same height scale.
  const Mark* copy = FindMark(report, picture, "features.copy");
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(copy->in_gutter);
  EXPECT_NEAR(copy->at.y, y(64309), 0.01);
  // Neither FLOP nor bytes: has no place here, and the picture says so.
  EXPECT_EQ(FindMark(report, picture, "features.lost"), nullptr);
  EXPECT_TRUE(HasText(picture, "not drawn, neither FLOP nor bytes: 1 row, 5.0 % of GPU time"));
  EXPECT_TRUE(HasText(picture, "shortest launch 2.00 us"));
}

}  // namespace
}  // namespace rfinject::cli
