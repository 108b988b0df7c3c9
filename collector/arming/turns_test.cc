#include "collector/arming/turns.h"

#include <gtest/gtest.h>

namespace rfinject::arming {
namespace {

TEST(Turns, SamplesComeFirstUntilThereAreEnoughWindows) {
  Turns turns(0);
  turns.Begin(100);
  EXPECT_FALSE(turns.IsRanges(100, 0, true, true));
  EXPECT_FALSE(turns.IsRanges(150, Turns::kWindows - 1, true, true));
  EXPECT_TRUE(turns.IsRanges(151, Turns::kWindows, true, true));
  EXPECT_TRUE(turns.IsRanges(300, Turns::kWindows, true, true));
  // All is known.
  EXPECT_FALSE(turns.IsRanges(301, Turns::kWindows, true, false));
  EXPECT_FALSE(turns.IsRanges(5000, 400, true, false));
  // Something new has come: samples have had a turn long enough.
  EXPECT_TRUE(turns.IsRanges(5001, 400, true, true));
}

TEST(Turns, WindowsThatGiveNothingDoNotKeepRangesWaiting) {
  Turns turns(0);
  turns.Begin(0);
  EXPECT_FALSE(turns.IsRanges(Turns::kLongestSamples - 1, 0, true, true));
  EXPECT_TRUE(turns.IsRanges(Turns::kLongestSamples, 0, true, true));
}

TEST(Turns, AShortRunKeepsTwoThirdsForRanges) {
  Turns turns(60);
  turns.Begin(10);
  EXPECT_FALSE(turns.IsRanges(29, 1, true, true));
  EXPECT_TRUE(turns.IsRanges(30, 1, true, true));
}

TEST(Turns, RangesThatNeverEndLeaveSamplesTheirTurn) {
  Turns turns(0);
  EXPECT_TRUE(turns.IsRanges(0, Turns::kWindows, true, true));
  EXPECT_TRUE(turns.IsRanges(Turns::kLongestRanges - 1, Turns::kWindows, true, true));
  EXPECT_FALSE(turns.IsRanges(Turns::kLongestRanges, Turns::kWindows, true, true));
  EXPECT_TRUE(turns.IsRanges(Turns::kLongestRanges + 1, 2 * Turns::kWindows, true, true));
}

TEST(Turns, WhatCannotBeSampledHasRangesAtOnce) {
  Turns turns(0);
  EXPECT_TRUE(turns.IsRanges(0, 0, false, true));
  EXPECT_TRUE(turns.IsRanges(1, 0, false, false));
}

}  // namespace
}  // namespace rfinject::arming
