#include "cli/picture/text.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(TextWidth, GrowsWithTheTextAndCountsCodePoints) {
  EXPECT_GT(TextWidth("mmmm"), TextWidth("iiii"));
  EXPECT_DOUBLE_EQ(TextWidth("\xc3\xa9"), TextWidth("n"));
  EXPECT_DOUBLE_EQ(TextWidth(""), 0);
}

TEST(MakeText, KnowsItsExtentFromItsAnchor) {
  const Text start = MakeText("la", "word", {100, 50}, Anchor::kStart, 10);
  const double width = TextWidth("word") * 10;
  EXPECT_DOUBLE_EQ(start.box.x, 100);
  EXPECT_DOUBLE_EQ(start.box.width, width);
  EXPECT_LT(start.box.y, 50);         // a baseline has the letters above it
  EXPECT_GT(start.box.bottom(), 50);  // and their tails below
  EXPECT_DOUBLE_EQ(MakeText("la", "word", {100, 50}, Anchor::kEnd, 10).box.right(), 100);
  EXPECT_DOUBLE_EQ(MakeText("la", "word", {100, 50}, Anchor::kMiddle, 10).box.x, 100 - width / 2);
}

TEST(FitTo, LeavesOutTheMiddleUntilTheTextFits) {
  EXPECT_EQ(FitTo("short", 200, 10), "short");
  const std::string fitted = FitTo("a long title that does not fit into the picture", 120, 10);
  EXPECT_LE(TextWidth(fitted) * 10, 120);
  EXPECT_TRUE(fitted.starts_with("a long"));
  EXPECT_TRUE(fitted.ends_with("picture"));
}

}  // namespace
}  // namespace rfinject::cli
