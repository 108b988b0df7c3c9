#include "cli/profile/step_durations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace rfinject::cli {
namespace {

// 2000 steps of 1 ms with 1 % noise, times what `factor` says of a step.
template <typename Factor>
std::vector<StepDuration> Steps(uint64_t seed, Factor factor, uint64_t steps = 2000) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<StepDuration> run;
  for (uint64_t i = 0; i < steps; ++i) {
    run.push_back({i, static_cast<uint64_t>(1e6 * factor(i) * (1 + noise(random)))});
  }
  return run;
}

TEST(StepDurations, FindNothingInNoise) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const DurationFindings found = ExamineDurations(Steps(seed, [](uint64_t) { return 1.0; }), 0, 100);
    wrong += found.drifting || found.two_speeds || found.slow > 0;
  }
  EXPECT_LE(wrong, 1);
}

TEST(StepDurations, SeeADrift) {
  const auto run = Steps(1, [](uint64_t step) { return 1 + 0.03 * static_cast<double>(step) / 2000; });
  const DurationFindings found = ExamineDurations(run, 0, 100);
  EXPECT_TRUE(found.drifting);
  EXPECT_FALSE(found.two_speeds);
  EXPECT_FALSE(ExamineDurations(run, 0, 0).drifting);  // nothing is sampled that could mislead
}

TEST(StepDurations, SeeTwoSpeedsThatChangeSeldom) {
  const DurationFindings found =
      ExamineDurations(Steps(1, [](uint64_t step) { return step / 300 % 2 == 0 ? 1.0 : 1.1; }), 0, 100);
  EXPECT_TRUE(found.drifting);
  EXPECT_TRUE(found.two_speeds);
  // What changes from step to step is noise like any other.
  const DurationFindings quick =
      ExamineDurations(Steps(1, [](uint64_t step) { return step * 2654435761u % 7 < 3 ? 1.0 : 1.1; }), 0, 100);
  EXPECT_FALSE(quick.two_speeds);
  EXPECT_EQ(quick.of_kinds, 2000u);
  EXPECT_NEAR(static_cast<double>(quick.rarer_kind), 2000 * 3 / 7.0, 20);
  EXPECT_EQ(found.of_kinds, 0u);
  // Rare ones are slow steps, and of one duration there are no kinds.
  const auto rare = [](uint64_t step) { return step % 20 == 3 ? 1.5 : 1.0; };
  EXPECT_EQ(ExamineDurations(Steps(1, rare), 0, 100).of_kinds, 0u);
  EXPECT_EQ(ExamineDurations(Steps(1, [](uint64_t) { return 1.0; }), 0, 100).of_kinds, 0u);
}

// Steps that are sampled some eight steps apart are of one kind in a loop of two, four or eight.
TEST(StepDurations, ARhythmIsNoMemory) {
  for (const uint64_t every : {2, 4, 5}) {
    const auto longer = [every](uint64_t step) { return step % every == 0 ? 1.2 : 1.0; };
    for (const uint64_t distance : {5, 9, 16, 100}) {
      EXPECT_FALSE(ExamineDurations(Steps(1, longer), 0, distance).drifting) << every << " " << distance;
    }
  }
}

// Which kind steps are of that nobody looked at is known in a rhythm.
TEST(StepDurations, ARhythmTellsTheShareOfItsKinds) {
  const auto found = [](auto longer) {
    std::vector<StepDuration> run = Steps(
        1, [&](uint64_t step) { return longer(step) ? 1.5 : 1.0; }, 3000);
    // Of the steps that are looked at more than a fourth is longer.
    std::erase_if(run, [](const StepDuration& one) { return one.step % 40 == 7; });
    return ExamineDurations(run, 0, 100);
  };
  const DurationFindings fourth = found([](uint64_t step) { return step % 4 == 1; });
  EXPECT_EQ(fourth.of_kinds, 2925u);
  EXPECT_EQ(fourth.in_rhythm, fourth.of_kinds);
  EXPECT_EQ(fourth.rarer_kind, 731u);
  // The longer ones may be the usual ones; two of five, one behind the other.
  EXPECT_EQ(found([](uint64_t step) { return step % 5 > 1; }).rarer_kind, 1170u);
  // By chance.
  std::mt19937_64 random(7);
  std::bernoulli_distribution fifth(0.2);
  const DurationFindings chance = found([&](uint64_t) { return fifth(random); });
  EXPECT_GT(chance.of_kinds, 0u);
  EXPECT_EQ(chance.in_rhythm, 0u);
}

// A quiet host behind a full queue is early by 0.3 % where a window of times begins: that is no kind of step.
TEST(StepDurations, KindsThatAreCloseAreOne) {
  const auto quiet = [](double shorter) {
    std::vector<StepDuration> run = Steps(1, [&](uint64_t step) { return step % 9 == 3 ? 1 - shorter : 1.0; });
    for (StepDuration& one : run) {
      const double usual = 1e6 * (one.step % 9 == 3 ? 1 - shorter : 1.0);
      one.ns = static_cast<uint64_t>(usual + (static_cast<double>(one.ns) - usual) * 0.03);
    }
    return ExamineDurations(run, 0, 10);
  };
  EXPECT_EQ(quiet(0.003).of_kinds, 0u);
  EXPECT_EQ(quiet(0.03).of_kinds, 2000u);
}

TEST(StepDurations, OfAShortWindowAnEndMayBeAnotherSpeed) {
  for (const uint64_t from : {27u, 26u, 20u}) {
    EXPECT_TRUE(ExamineDurations(Steps(
                                     1, [from](uint64_t step) { return step < from ? 1.0 : 1.1; }, 28),
                                 0, 4)
                    .two_speeds)
        << from;
  }
  // One step in the middle is an accident, and in a long run one step more or less does not matter.
  const auto accident = Steps(
      1, [](uint64_t step) { return step == 14 ? 1.1 : 1.0; }, 28);
  EXPECT_FALSE(ExamineDurations(accident, 0, 4).two_speeds);
  EXPECT_EQ(ExamineDurations(accident, 0, 4).slow, 1u);
  EXPECT_FALSE(ExamineDurations(Steps(1, [](uint64_t step) { return step == 1999 ? 1.1 : 1.0; }), 0, 100).two_speeds);
}

TEST(StepDurations, ASlowStepAtAnEndIsAnAccidentWhereThereAreOthers) {
  const auto now_and_then = Steps(
      1, [](uint64_t step) { return step % 14 == 0 ? 1.5 : 1.0; }, 29);
  EXPECT_FALSE(ExamineDurations(now_and_then, 0, 4).two_speeds);
  const auto in_a_row = Steps(
      1, [](uint64_t step) { return step > 26 ? 1.5 : 1.0; }, 29);
  EXPECT_TRUE(ExamineDurations(in_a_row, 0, 4).two_speeds);
}

TEST(StepDurations, CountSlowStepsAndForgetTheFirstOnes) {
  const auto run = Steps(1, [](uint64_t step) { return step < 10 || step % 50 == 7 ? 1.5 : 1.0; });
  const DurationFindings found = ExamineDurations(run, 10, 100);
  EXPECT_EQ(found.slow, 39u);
  EXPECT_NEAR(static_cast<double>(found.slow_extra_ns), 39 * 0.5e6, 0.5e6);
  EXPECT_FALSE(found.drifting);
}

TEST(StepDurations, SlowStepsMayBeLongerThanAnyNumber) {
  std::vector<StepDuration> run = Steps(1, [](uint64_t) { return 1.0; });
  run[500].ns = run[1000].ns = UINT64_MAX;
  const DurationFindings found = ExamineDurations(run, 10, 100);
  EXPECT_EQ(found.slow, 2u);
  EXPECT_EQ(found.slow_extra_ns, UINT64_MAX);
}

TEST(StepDurations, SayNothingOfAHandful) {
  const DurationFindings found =
      ExamineDurations(Steps(
                           1, [](uint64_t step) { return 1 + static_cast<double>(step); }, 10),
                       0, 1);
  EXPECT_FALSE(found.drifting);
  EXPECT_EQ(found.slow, 0u);
}

}  // namespace
}  // namespace rfinject::cli
