#include "cli/picture/diff_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/picture/testing/pictures.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"

namespace rfinject::cli {
namespace {

using testing::SampleA100;
using testing::SampleResNet18;

// ResNet-18 after a change that saves a third of all bytes, and before it; or the other way round.
Diff FewerBytes(bool saves = true) {
  const Profile more = SampleResNet18(SampleA100());
  Profile fewer = more;
  for (auto& [key, run] : fewer.runs) {
    for (auto& [launch, stats] : run.launches) {
      // DRAM bytes of an estimate are those of the compulsory ones that no cache has.
      for (const std::string_view name : {kMetricDramBytes, kMetricCompulsoryBytes}) {
        const auto bytes = stats.metrics.find(std::string(name));
        if (bytes != stats.metrics.end()) bytes->second = Stat::Same(bytes->second.min * 2 / 3, bytes->second.n);
      }
    }
  }
  return MakeDiff(saves ? more : fewer, saves ? fewer : more, [](const Run&) { return SampleA100(); }, {});
}

TEST(DiffPicture, KeepsTheLabelsOfMarksOffItsArrows) {
  for (const bool saves : {true, false}) {
    const Diff diff = FewerBytes(saves);
    ASSERT_EQ(diff.pairs.size(), 1u);
    for (const Size size : {Size{900, 660}, Size{700, 580}, Size{420, 560}}) {
      const std::vector<DiffPicture> pictures = LayOutDiff(diff.pairs[0], FramesFor(diff), size);
      ASSERT_EQ(pictures.size(), 1u);
      const Picture& picture = pictures[0].picture;
      size_t arrows = 0, labels = 0;
      for (const Line& line : picture.lines) {
        if (line.css != "dc" || line.points.size() != 2) continue;
        ++arrows;
        for (const Text& text : picture.texts) {
          if (text.css != "la" && text.css != "la bad") continue;
          EXPECT_FALSE(Crosses(line.points[0], line.points[1], text.box)) << text.text << " at " << size.width;
          ++labels;
        }
      }
      EXPECT_GE(arrows, 10u) << size.width;
      EXPECT_GE(labels, 3 * arrows) << size.width;
    }
  }
}

TEST(DiffPicture, MarksStandWhereTheyDoWithoutArrows) {
  const Diff diff = FewerBytes();
  const Frames frames = FramesFor(diff);
  const Picture picture = LayOutDiff(diff.pairs[0], frames)[0].picture;
  const Picture alone = LayOutRoofline(diff.pairs[0].after, frames, picture.size);
  ASSERT_EQ(picture.marks.size(), alone.marks.size());
  for (size_t i = 0; i < alone.marks.size(); ++i) {
    EXPECT_EQ(picture.marks[i].row, alone.marks[i].row);
    EXPECT_EQ(picture.marks[i].at.x, alone.marks[i].at.x);
    EXPECT_EQ(picture.marks[i].at.y, alone.marks[i].at.y);
  }
}

}  // namespace
}  // namespace rfinject::cli
