#include "collector/arming/wanted_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace rfinject::arming {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(WantedCounts, OneSampleOfEachWorkIsEnough) {
  WantedCounts wanted({false, false});
  wanted.AddKey(3, 100);
  wanted.AddKey(4, 100);
  wanted.AddKey(5, 200);
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(3, 5));
  wanted.AddCount(3, 0, 7);
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(5));
  EXPECT_THAT(wanted.Twins(4), ElementsAre(3, 4));
  EXPECT_TRUE(wanted.IsCounted(4, 0));
  EXPECT_FALSE(wanted.IsCounted(4, 1));
  wanted.AddCount(4, 1, 8);
  EXPECT_TRUE(wanted.IsCounted(3, 1));
  wanted.AddCount(5, 0, 1);
  wanted.AddCount(5, 1, 1);
  EXPECT_TRUE(wanted.Complete());
  wanted.AddKey(7, 300);
  EXPECT_FALSE(wanted.Complete());
}

// What was counted was given to the keys that there were.
TEST(WantedCounts, TwinsThatComeWhenTheWorkWasCountedAreCountedByThemselves) {
  WantedCounts wanted({false, false});
  wanted.AddKey(1, 100);
  wanted.AddCount(1, 0, 7);
  wanted.AddKey(2, 100);
  wanted.AddKey(3, 100);
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(2));
  EXPECT_THAT(wanted.Wanted(1), ElementsAre(1, 2));
  EXPECT_THAT(wanted.Twins(2), ElementsAre(2, 3));
  EXPECT_FALSE(wanted.IsCounted(2, 0));
}

TEST(WantedCounts, TheCheckIsOfAnotherKey) {
  WantedCounts wanted({false});
  wanted.AddKey(1, 9);
  wanted.AddKey(2, 9);
  wanted.AddCount(1, 0, 50);
  wanted.BeginCheck();
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(2));
  wanted.AddCount(2, 0, 50.01);
  EXPECT_TRUE(wanted.Complete());
}

TEST(WantedCounts, WorkThatFailsTheCheckIsSampledKeyByKey) {
  WantedCounts wanted({false});
  wanted.AddKey(1, 9);
  wanted.AddKey(2, 9);
  wanted.AddCount(1, 0, 50);
  wanted.BeginCheck();
  wanted.AddCount(2, 0, 60);
  EXPECT_THAT(wanted.Twins(2), ElementsAre(2));
  EXPECT_THAT(wanted.Twins(1), ElementsAre(1));
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(2, 1));
  for (uint32_t i = 2; i < WantedCounts::kSamplesOfMean; ++i) wanted.AddCount(2, 0, 60 + i);
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(1));
}

TEST(WantedCounts, WhatVariesIsSampledUntilAMeanIsKnown) {
  WantedCounts wanted({true});
  wanted.AddKey(1, 9);
  for (uint32_t i = 0; i < WantedCounts::kSamplesOfMean; ++i) {
    EXPECT_THAT(wanted.Wanted(0), ElementsAre(1));
    wanted.AddCount(1, 0, i);
  }
  EXPECT_THAT(wanted.Wanted(0), IsEmpty());
}

TEST(WantedCounts, WhatIsNotLaunchedAnyMoreIsNotWaitedFor) {
  WantedCounts wanted({false});
  wanted.AddKey(1, 9);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(wanted.Complete());
    wanted.Missed(1);
  }
  EXPECT_TRUE(wanted.Complete());
  wanted.AddKey(1, 9);  // it was launched again
  EXPECT_FALSE(wanted.Complete());
}

TEST(WantedCounts, WhatIsLaunchedWhereItCannotBeCountedIsGivenUp) {
  WantedCounts wanted({false});
  int asked = 0;
  for (; asked < 100; ++asked) {
    wanted.AddKey(1, 9);
    if (wanted.Complete()) break;
    for (int i = 0; i < 3; ++i) wanted.Missed(1);
  }
  EXPECT_EQ(asked, 5);
}

// Two threads that launch at once spoil each other's ranges, now and then or always.
TEST(WantedCounts, WhatIsSpoiledInARowRestsLongerEachTime) {
  WantedCounts wanted({false});
  wanted.AddKey(1, 9);
  std::vector<int> turns;  // until it was wanted again
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 8; ++i) {
      ASSERT_THAT(wanted.Wanted(0), ElementsAre(1));
      wanted.Spoiled(1);
    }
    for (turns.push_back(0); turns.back() < 100 && wanted.Complete(); ++turns.back()) wanted.AddKey(1, 9);
  }
  EXPECT_THAT(turns, ElementsAre(2, 4, 8));
  wanted.AddCount(1, 0, 5);
  wanted.BeginCheck();
  for (int i = 0; i < 7; ++i) wanted.Spoiled(1);
  EXPECT_THAT(wanted.Wanted(0), ElementsAre(1)) << "what was counted since is forgotten";
}

TEST(WantedCounts, WhatVariesIsSampledOfEveryTwin) {
  WantedCounts wanted({false, true});
  for (const uint32_t key : {1u, 2u, 3u}) wanted.AddKey(key, 7);
  wanted.AddCount(1, 0, 100);  // counts for all
  EXPECT_THAT(wanted.Wanted(0), IsEmpty());
  std::map<uint32_t, uint32_t> samples;
  while (!wanted.Complete()) {
    const std::vector<uint32_t> keys = wanted.Wanted(1);
    ASSERT_EQ(keys.size(), 1u);
    ++samples[keys[0]];
    wanted.AddCount(keys[0], 1, 5);
  }
  EXPECT_THAT(samples, ElementsAre(Pair(1, WantedCounts::kSamplesOfMean), Pair(2, WantedCounts::kSamplesOfMean),
                                   Pair(3, WantedCounts::kSamplesOfMean)));
}

TEST(WantedCounts, AGroupThatOnlyChecksIsWantedWhenChecksBegin) {
  WantedCounts wanted({false, false}, {false, true});
  wanted.AddKey(1, 7);
  wanted.AddCount(1, 0, 100);
  EXPECT_TRUE(wanted.Complete());
  wanted.BeginCheck();
  EXPECT_THAT(wanted.Wanted(1), ElementsAre(1));
}

}  // namespace
}  // namespace rfinject::arming
