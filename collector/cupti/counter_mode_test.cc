#include "collector/cupti/counter_mode.h"

#include <gtest/gtest.h>

namespace rfinject::cupti {
namespace {

TEST(CounterMode, KernelByKernelOnlyWhereNothingCanWaitForALaterLaunch) {
  EXPECT_EQ(ChooseCounterMode({}).mode, CounterMode::kKernels);
  EXPECT_EQ(ChooseCounterMode({.forced = "auto"}).mode, CounterMode::kKernels);
  EXPECT_EQ(ChooseCounterMode({.ranks = 2}).mode, CounterMode::kLayers);
  EXPECT_EQ(ChooseCounterMode({.communication = true}).mode, CounterMode::kLayers);
  EXPECT_EQ(ChooseCounterMode({.graphs = true}).mode, CounterMode::kLayers);
}

TEST(CounterMode, WhatTheUserForcesIsDone) {
  const ModeFacts worst = {.ranks = 8, .mps = true, .graphs = true, .communication = true};
  ModeFacts facts = worst;
  facts.forced = "range";
  EXPECT_EQ(ChooseCounterMode(facts).mode, CounterMode::kKernels);
  facts.forced = "user";
  EXPECT_EQ(ChooseCounterMode(facts).mode, CounterMode::kLayers);
  facts.forced = "times";
  EXPECT_EQ(ChooseCounterMode(facts).mode, CounterMode::kNone);
  EXPECT_TRUE(ChooseCounterMode(facts).wished);
  EXPECT_EQ(ChooseCounterMode({.forced = "user"}).mode, CounterMode::kLayers);
}

TEST(CounterMode, WithoutRangesOfOurOwnThereAreTimesAndTheReason) {
  ModeChoice choice = ChooseCounterMode({.ranks = 2, .layer_ranges = false});
  EXPECT_EQ(choice.mode, CounterMode::kNone);
  EXPECT_EQ(choice.condition, ConditionId::kSeveralRanks);
  EXPECT_NE(choice.why.find("WORLD_SIZE=2"), std::string::npos);
  choice = ChooseCounterMode({.graphs = true, .layer_ranges = false});
  EXPECT_EQ(choice.mode, CounterMode::kNone);
  EXPECT_EQ(choice.condition, ConditionId::kGraphs);
  // A mode that cannot be had is not insisted on where the other one is harmless.
  EXPECT_EQ(ChooseCounterMode({.forced = "user", .layer_ranges = false}).mode, CounterMode::kKernels);
  EXPECT_EQ(ChooseCounterMode({.forced = "user", .ranks = 2, .layer_ranges = false}).mode, CounterMode::kNone);
}

TEST(CounterMode, UnderMpsNothingIsCounted) {
  const ModeChoice choice = ChooseCounterMode({.ranks = 2, .mps = true});
  EXPECT_EQ(choice.mode, CounterMode::kNone);
  EXPECT_EQ(choice.condition, ConditionId::kMps);
  EXPECT_FALSE(choice.wished);
}

}  // namespace
}  // namespace rfinject::cupti
