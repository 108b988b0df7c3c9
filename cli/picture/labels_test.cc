#include "cli/picture/labels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

constexpr Box kFrame = {20, 30, 600, 400};

std::vector<Text> OnePlace(const std::string& text, Point at) {
  return {MakeText("la", text, at, Anchor::kStart, kText)};
}

// A label for each of `count` marks at places that look random and are always the same, in the order of the marks.
struct Placed {
  std::vector<Point> marks;
  std::vector<Text> texts;
  std::vector<size_t> mark_of;  // by text
};
Placed PlaceMany(size_t count) {
  Placed placed;
  Labels labels(kFrame);
  std::mt19937 random(7);
  const auto uniform = [&](double low, double size) {
    return low + size * static_cast<double>(random()) / 4294967296.0;
  };
  for (size_t i = 0; i < count; ++i) {
    const Point at{uniform(kFrame.x, kFrame.width), uniform(kFrame.y, kFrame.height)};
    placed.marks.push_back(at);
    const std::string name = "layer" + std::to_string(i) + ".conv fwd";
    const std::optional<Text> text = labels.Place(Around("la", name, at, 4, kText), &at);
    if (!text) continue;
    const Point near = NearestPoint(text->box, at);
    labels.BlockLeader(at, near);
    placed.texts.push_back(*text);
    placed.mark_of.push_back(i);
  }
  return placed;
}

TEST(Labels, OneLabelStandsBesideItsMark) {
  const Placed placed = PlaceMany(1);
  ASSERT_EQ(placed.texts.size(), 1u);
  const Point mark = placed.marks[0];
  EXPECT_LT(Distance(NearestPoint(placed.texts[0].box, mark), mark), 8);
  EXPECT_FALSE(Overlap(placed.texts[0].box, {mark.x - 4, mark.y - 4, 8, 8}));  // not on it
}

TEST(Labels, ManyNeitherOverlapNorLeaveTheFrame) {
  const Placed placed = PlaceMany(400);
  EXPECT_GT(placed.texts.size(), 60u);   // there is room for many,
  EXPECT_LT(placed.texts.size(), 400u);  // and not for all
  for (size_t i = 0; i < placed.texts.size(); ++i) {
    EXPECT_TRUE(Inside(placed.texts[i].box, kFrame)) << placed.texts[i].text;
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(Overlap(placed.texts[i].box, placed.texts[j].box))
          << placed.texts[i].text << " on " << placed.texts[j].text;
    }
  }
}

TEST(Labels, NoLeaderCrossesALabelOrAnotherLeader) {
  const Placed placed = PlaceMany(400);
  for (size_t i = 0; i < placed.texts.size(); ++i) {
    const Point mark = placed.marks[placed.mark_of[i]], end = NearestPoint(placed.texts[i].box, mark);
    for (size_t j = 0; j < placed.texts.size(); ++j) {
      if (i == j) continue;
      EXPECT_FALSE(Crosses(mark, end, placed.texts[j].box)) << placed.texts[i].text << ", " << placed.texts[j].text;
      const Point other = placed.marks[placed.mark_of[j]];
      EXPECT_FALSE(Meet(mark, end, other, NearestPoint(placed.texts[j].box, other)));
    }
  }
}

// What is placed later never moves what is there: the most important labels come first.
TEST(Labels, StayWhereTheyAreWhenOthersFollow) {
  const Placed few = PlaceMany(40), many = PlaceMany(400);
  ASSERT_LE(few.texts.size(), many.texts.size());
  for (size_t i = 0; i < few.texts.size(); ++i) {
    EXPECT_EQ(few.texts[i].text, many.texts[i].text);
    EXPECT_EQ(few.texts[i].at.x, many.texts[i].at.x);
    EXPECT_EQ(few.texts[i].at.y, many.texts[i].at.y);
  }
}

TEST(Labels, TheFirstFreeCandidateIsTaken) {
  Labels labels(kFrame);
  std::vector<Text> places;
  for (const double y : {100.0, 200.0, 300.0}) places.push_back(OnePlace("label", {100, y})[0]);
  EXPECT_EQ(labels.Place(places)->at.y, 100);
  EXPECT_EQ(labels.Place(places)->at.y, 200);
  EXPECT_EQ(labels.Place(places)->at.y, 300);
  EXPECT_FALSE(labels.Place(places));
}

TEST(Labels, OneWiderThanTheFrameHasNoPlace) {
  Labels labels(kFrame);
  const Point at{300, 200};
  const std::string name(200, 'm');
  ASSERT_GT(TextWidth(name) * kText, kFrame.width);
  EXPECT_FALSE(labels.Place(Around("la", name, at, 4, kText), &at));
  EXPECT_TRUE(labels.Place(Around("la", "short", at, 4, kText), &at));  // and it took none from others
}

TEST(Labels, OneAtTheEdgeTurnsInwards) {
  for (const Point at : {Point{kFrame.x, kFrame.y}, Point{kFrame.right(), kFrame.y}, Point{kFrame.x, kFrame.bottom()},
                         Point{kFrame.right(), kFrame.bottom()}}) {
    Labels labels(kFrame);
    const std::optional<Text> placed = labels.Place(Around("la", "corner of the frame", at, 4, kText), &at);
    ASSERT_TRUE(placed) << at.x << ", " << at.y;
    EXPECT_TRUE(Inside(placed->box, kFrame));
  }
}

TEST(Labels, BlockedPlacesStayFree) {
  Labels labels(kFrame);
  labels.Block({90, 80, 100, 40});
  EXPECT_FALSE(labels.Place(OnePlace("label", {100, 100})));
  EXPECT_TRUE(labels.Place(OnePlace("label", {100, 300})));
}

TEST(Labels, LinesAreCoveredBeforeMarksAre) {
  Labels labels(kFrame);
  labels.BlockLine({50, 96}, {300, 96}, 3);
  labels.BlockIfPossible({90, 180, 100, 40});
  const std::vector<Text> on_mark = OnePlace("label", {100, 200}), on_line = OnePlace("label", {100, 100});
  const std::vector<Text> both = {on_mark[0], on_line[0]};
  EXPECT_EQ(labels.Place(both)->at.y, 100);
  // Then only the mark is left. A label that spares marks goes without a place.
  EXPECT_FALSE(labels.Place(both, nullptr, true));
  EXPECT_EQ(labels.Place(both)->at.y, 200);
}

TEST(Labels, ASlantedLineIsKeptFreeAlongItsWayAndNotAroundIt) {
  Labels labels(kFrame);
  labels.BlockLine({100, 100}, {300, 300}, 3);
  EXPECT_FALSE(labels.Free({195, 195, 10, 10}, Labels::Avoid::kAll));
  EXPECT_TRUE(labels.Free({195, 195, 10, 10}, Labels::Avoid::kTextsAndMarks));
  EXPECT_TRUE(labels.Free({260, 120, 30, 30}, Labels::Avoid::kAll));  // within its bounding box
}

TEST(Labels, LeadersAreNeverCovered) {
  Labels labels(kFrame);
  labels.BlockLeader({110, 60}, {110, 180});
  EXPECT_FALSE(labels.Place(OnePlace("label", {100, 100})));
}

TEST(Around, OffersNearPlacesFirst) {
  const Point at{300, 200};
  const std::vector<Text> places = Around("la", "name", at, 10, kText);
  const auto away = [&](const Text& text) { return Distance(NearestPoint(text.box, at), at); };
  EXPECT_LT(away(places.front()), 16);
  EXPECT_GT(away(places.back()), 100);
  for (const Text& text : places) EXPECT_FALSE(Overlap(text.box, {at.x - 5, at.y - 5, 10, 10}));
}

}  // namespace
}  // namespace rfinject::cli
