#include "cli/picture/geometry.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(LogPosition, PutsDecadesAtEqualDistances) {
  const Decades axis{-2, 4};
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1e-2, 100, 700), 100);
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1, 100, 700), 300);
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1e4, 100, 700), 700);
  EXPECT_DOUBLE_EQ(LogPosition(axis, 1, 600, 0), 400);  // upwards
}

TEST(Overlap, TakesMoreThanACommonEdge) {
  EXPECT_TRUE(Overlap({0, 0, 10, 10}, {9, 9, 10, 10}));
  EXPECT_FALSE(Overlap({0, 0, 10, 10}, {10, 0, 10, 10}));
  EXPECT_FALSE(Overlap({0, 0, 10, 10}, {0, 10, 10, 10}));
  EXPECT_TRUE(Overlap({0, 0, 10, 10}, {2, 2, 1, 1}));
}

TEST(Crosses, SeesASegmentThatTouchesOrPassesTheBox) {
  const Box box{10, 10, 10, 10};
  EXPECT_TRUE(Crosses({0, 0}, {30, 30}, box));
  EXPECT_TRUE(Crosses({15, 0}, {15, 30}, box));   // upright
  EXPECT_TRUE(Crosses({12, 12}, {13, 13}, box));  // within
  EXPECT_FALSE(Crosses({0, 0}, {9, 9}, box));     // ends before it
  EXPECT_FALSE(Crosses({0, 15}, {9, 15}, box));
  EXPECT_FALSE(Crosses({0, 25}, {30, 40}, box));
}

TEST(Meet, WantsBothEndsOnDifferentSides) {
  EXPECT_TRUE(Meet({0, 0}, {10, 10}, {0, 10}, {10, 0}));
  EXPECT_FALSE(Meet({0, 0}, {10, 10}, {20, 0}, {11, 9}));
  EXPECT_FALSE(Meet({0, 0}, {10, 0}, {0, 1}, {10, 1}));  // parallel
}

TEST(ClampTo, SaysWhetherThePointMoved) {
  const Box box{0, 0, 100, 100};
  Point inside{50, 50}, near{100.2, 50}, outside{150, -20};
  EXPECT_FALSE(ClampTo(box, &inside));
  EXPECT_FALSE(ClampTo(box, &near));  // by less than half a pixel
  EXPECT_TRUE(ClampTo(box, &outside));
  EXPECT_EQ(outside.x, 100);
  EXPECT_EQ(outside.y, 0);
}

TEST(Decades, HoldTheValueBetweenThem) {
  EXPECT_EQ(DecadeBelow(2e-3), -3);
  EXPECT_EQ(DecadeAbove(2e-3), -2);
  EXPECT_EQ(DecadeBelow(1e12), 12);
  EXPECT_EQ(DecadeAbove(1e12), 12);
}

}  // namespace
}  // namespace rfinject::cli
