#include "cli/report/compare/in_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "cli/profile/time_order.h"
#include "cli/report/compare/diff.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

// A key whose i-th launch takes ns(i).
LaunchStats Recorded(uint64_t launches, const std::function<double(uint64_t)>& ns) {
  LaunchStats stats;
  for (uint64_t i = 0; i < launches; ++i) {
    const auto time = static_cast<uint64_t>(std::llround(ns(i)));
    AddInOrder(i, time, &stats.step_sums[std::string(kMetricTimeOrder)]);
    stats.metrics[std::string(kMetricTime)].Add(time);
    ++stats.launches;
  }
  return stats;
}

// One kernel that computes products of two sizes in turn.
double OfTwoSizes(uint64_t i) { return i % 2 == 0 ? 157e3 : 188e3; }

Uncertainty ChangeOfKey(const LaunchStats& before, const LaunchStats& after) {
  ChangesInOrder row;
  row.Add(before, after);
  return row.change();
}

TEST(ChangesInOrder, WhatTheLaunchesOfAKeyDifferByIsNotInIt) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  double squares = 0, said = 0;
  constexpr int kPairs = 2000;
  constexpr uint64_t kLaunches = 60;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto noisy = [&](uint64_t i) { return OfTwoSizes(i) + 1000 * normal(random); };
    const LaunchStats before = Recorded(kLaunches, noisy), after = Recorded(kLaunches, noisy);
    const std::string time(kMetricTime);
    const double difference =
        static_cast<double>(after.metrics.at(time).sum) - static_cast<double>(before.metrics.at(time).sum);
    const Uncertainty change = ChangeOfKey(before, after);
    ASSERT_TRUE(change.known);
    squares += difference * difference / kPairs;
    said += change.variance / kPairs;
  }
  // 60 launches on both sides, each with a deviation of 1 us.
  EXPECT_NEAR(std::sqrt(squares), 1000 * std::sqrt(2 * kLaunches), 600);
  EXPECT_NEAR(std::sqrt(said / squares), 1, 0.1);
}

TEST(ChangesInOrder, IsNotKnownOfOtherLaunches) {
  EXPECT_FALSE(ChangeOfKey(Recorded(60, OfTwoSizes), Recorded(64, OfTwoSizes)).known);
  LaunchStats without = Recorded(60, OfTwoSizes);
  without.step_sums.clear();
  EXPECT_FALSE(ChangeOfKey(Recorded(60, OfTwoSizes), without).known);
  EXPECT_FALSE(ChangeOfKey(without, Recorded(60, OfTwoSizes)).known);
}

// A window of a program's launches may end a launch later in one recording.
TEST(ChangesInOrder, FewLaunchesMoreAtTheEndAreATrueChange) {
  const Uncertainty change = ChangeOfKey(Recorded(101, OfTwoSizes), Recorded(102, OfTwoSizes));
  ASSERT_TRUE(change.known);
  EXPECT_LT(std::sqrt(change.variance), 32 * std::sqrt(101)) << "but for the clock's ticks";
}

TEST(ChangesInOrder, ASingleKeyOfFewLaunchesShowsNoChange) {
  for (const uint64_t launches : {1, 2, 3}) {
    const LaunchStats before = Recorded(launches, OfTwoSizes),
                      after = Recorded(launches, [](uint64_t i) { return 1.1 * OfTwoSizes(i); });
    const Uncertainty change = ChangeOfKey(before, after);
    ASSERT_TRUE(change.known);
    EXPECT_GE(std::sqrt(change.variance), 0.1 * static_cast<double>(launches) * 157e3);
  }
}

// As the layers of one operator, in a recording of three steps.
TEST(ChangesInOrder, ManyKeysOfFewLaunchesShowIt) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  ChangesInOrder row;
  for (int key = 1; key <= 20; ++key) {
    const auto noisy = [&](double factor) {
      return Recorded(3, [&](uint64_t i) { return factor * key * OfTwoSizes(i) * (1 + 0.01 * normal(random)); });
    };
    row.Add(noisy(1), noisy(1.05));
  }
  // Each of 60 launches scatters by a hundredth of its own time.
  double squares = 0;
  for (int key = 1; key <= 20; ++key) squares += (2 * 157e3 * 157e3 + 188e3 * 188e3) * key * key;
  EXPECT_NEAR(std::sqrt(row.change().variance), 0.01 * std::sqrt((1 + 1.05 * 1.05) * squares),
              0.003 * std::sqrt(2 * squares));
  EXPECT_GT(DegreesOf(row.change()), 50);
}

TEST(ChangesInOrder, AFewLaunchesOfOneRunAloneDoNotHideTheOthers) {
  ChangesInOrder row;
  row.Add(Recorded(300, OfTwoSizes), Recorded(300, OfTwoSizes));
  row.Add({}, Recorded(1, OfTwoSizes));
  EXPECT_TRUE(row.change().known);
  EXPECT_NEAR(std::sqrt(row.change().variance), 157e3, 32 * std::sqrt(300));
  row.Add(Recorded(4, OfTwoSizes), {});
  EXPECT_FALSE(row.change().known);
}

// A recording of 12 operators without steps. Each runs launches of two sizes in turn, which scatter by a hundredth;
// `clock` is the run's. Operator 0 takes `factor` as long.
Profile Recording(uint64_t seed, double clock, double factor, uint64_t launches = 60) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Profile profile;
  profile.metrics[std::string(kMetricTime)] = {.name = std::string(kMetricTime), .unit = "ns"};
  cli::Run run;
  run.key.source = SourceKind::kImported;
  run.key.models = {"program"};
  run.processes = run.steps.steps = 1;
  for (size_t i = 0; i < kMostPieces; ++i) run.sampled_steps[std::string(kMetricTimeOrder)][i] = 1;
  for (int op = 0; op < 12; ++op) {
    const LaunchKey key{.layer = {"program", ""},
                        .phase = Phase::kForward,
                        .op = "aten::op" + std::to_string(op),
                        .kernel = "kernel"};
    run.launches[key] = Recorded(launches, [&](uint64_t i) {
      return OfTwoSizes(i) * clock * (op == 0 ? factor : 1) * (1 + 0.01 * normal(random));
    });
  }
  RunKey key = run.key;
  profile.runs.emplace(std::move(key), std::move(run));
  return profile;
}

RunDiff ByOperator(const Profile& before, const Profile& after) {
  return MakeDiff(before, after, [](const cli::Run&) { return Machine{}; }, {.by = By::kOp}).pairs.at(0);
}

TEST(CompareInOrder, OneSlowerOperatorOfARecordingWithoutStepsIsRealAlone) {
  int found = 0, wrong = 0;
  constexpr int kPairs = 50;
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    // The clocks of two runs are not the same.
    const RunDiff diff = ByOperator(Recording(2 * seed, 1, 1), Recording(2 * seed + 1, 1.01, 1.05));
    EXPECT_TRUE(diff.in_order);
    for (const DiffRow& row : diff.rows) {
      const bool real = row[Compared::kTime].verdict == Verdict::kReal;
      (row.op == "aten::op0" ? found : wrong) += real;
    }
  }
  EXPECT_GE(found, kPairs - 1);
  EXPECT_LE(wrong, kPairs / 10);
}

TEST(CompareInOrder, RowsThatAreEqualAreAmongTheOthers) {
  Profile after = Recording(1, 1, 1);
  LaunchStats& changed = after.runs.begin()->second.launches.begin()->second;
  const std::string time(kMetricTime), order(kMetricTimeOrder);
  for (StepSum& piece : changed.step_sums.at(order)) piece.sum += piece.sum / 50;
  changed.metrics.at(time).sum += changed.metrics.at(time).sum / 50;
  const RunDiff diff = ByOperator(Recording(1, 1, 1), after);
  for (const DiffRow& row : diff.rows) {
    EXPECT_EQ(row[Compared::kTime].verdict, row.op == "aten::op0" ? Verdict::kReal : Verdict::kSame) << row.op;
  }
  const Change& change = diff.rows.at(0)[Compared::kTime];
  EXPECT_LT(change.half_width, change.difference()) << "the interval is that of the test";
}

// Else the others would have changed by as much the other way.
TEST(CompareInOrder, ARowOfMostOfTheTimeIsNotTheLevel) {
  const auto with_large = [](uint64_t seed, double factor) {
    Profile profile = Recording(seed, 1, factor);
    LaunchStats& large = profile.runs.begin()->second.launches.begin()->second;
    for (StepSum& piece : large.step_sums.at(std::string(kMetricTimeOrder))) piece.sum *= 20;
    Stat& time = large.metrics.at(std::string(kMetricTime));
    time.sum *= 20;
    time.sum_squares *= 400;
    return profile;
  };
  const RunDiff diff = ByOperator(with_large(1, 1), with_large(2, 1.02));
  for (const DiffRow& row : diff.rows) {
    EXPECT_EQ(row[Compared::kTime].verdict == Verdict::kReal, row.op == "aten::op0") << row.op;
  }
}

TEST(CompareInOrder, AnotherGpuOfTheHostIsNoOtherKey) {
  Profile after = Recording(2, 1, 1.05);
  cli::Run& run = after.runs.begin()->second;
  std::map<LaunchKey, LaunchStats> launches;
  for (const auto& [key, stats] : run.launches) {
    LaunchKey other = key;
    other.device = 3;
    launches.emplace(std::move(other), stats);
  }
  run.launches = std::move(launches);
  EXPECT_TRUE(ByOperator(Recording(1, 1, 1), after).in_order);
}

TEST(CompareInOrder, OtherLaunchesAreNotCompared) {
  EXPECT_FALSE(ByOperator(Recording(1, 1, 1), Recording(2, 1, 1, 64)).in_order);
}

}  // namespace
}  // namespace rfinject::cli
