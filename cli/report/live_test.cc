#include "cli/report/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/format/testing/written.h"
#include "cli/report/machine.h"
#include "cli/testing/sample_profile.h"
#include "cli/view/live_view.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'800'000'000 * kSecond;
constexpr uint64_t kLiveMs = 1'000'000;

TEST(Patience, GrowsWithTheDistanceOfChunksAndTheLongestStep) {
  EXPECT_EQ(PatienceNs(0, 0), 10 * kSecond);
  EXPECT_EQ(PatienceNs(600 * kSecond, 0), 18 * kSecond);
  EXPECT_EQ(PatienceNs(86'400 * kSecond, 0), 180 * kSecond);  // chunks are a minute apart at most
  EXPECT_EQ(PatienceNs(0, 30 * kSecond), 90 * kSecond);
  EXPECT_GT(PatienceNs(0, UINT64_MAX), 0);
}

// A job of measured ranks, with a median step of so many ms each.
Profile JobOf(const std::vector<uint64_t>& step_ms) {
  Profile profile = testing::SampleMeasured(testing::SampleV100());
  Run& run = profile.runs.begin()->second;
  run.step_times.clear();
  for (size_t rank = 0; rank < step_ms.size(); ++rank) {
    StepTimes& times = run.step_times[static_cast<uint32_t>(rank)];
    for (int i = 0; i < 20; ++i) {
      times.wall_ns.Add(step_ms[rank] * kLiveMs);
      times.gpu_busy_ns.Add(step_ms[rank] * kLiveMs / 2);
    }
  }
  return profile;
}

TraceWriter Rank(uint32_t rank, int64_t changed_s, bool ended = false) {
  return {.trace = "rank" + std::to_string(rank) + ".rfx",
          .rank = rank,
          .start_unix_ns = kStart,
          .changed_unix_ns = kStart + changed_s * kSecond,
          .ended = ended};
}

LiveRun Fold(const Profile& profile, const std::vector<TraceWriter>& writers, int64_t now_s,
             LiveOptions options = {}) {
  return FoldLive(profile, writers, kStart + now_s * kSecond, MachineFor, options);
}

std::string Text(const LiveRun& live, const LiveLook& look = {}, const WriteOptions& writing = {}) {
  return testing::Written(LiveDocument(live, look), "table", writing);
}

size_t LineCount(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(Live, ARankThatWritesNothingAnyMoreIsNamedAndComesFirst) {
  const Profile job = JobOf({10, 12, 10, 10});
  const LiveRun live = Fold(job, {Rank(0, 300), Rank(1, 300), Rank(2, 240), Rank(3, 300, /*ended=*/true)}, 301);
  ASSERT_EQ(live.ranks.size(), 4u);
  EXPECT_EQ(live.ranks[0].rank, "2");
  EXPECT_EQ(live.ranks[0].state, WriterState::kQuiet);
  EXPECT_EQ(live.ranks[0].silent_ns, 61 * kSecond);
  EXPECT_EQ(live.ranks[1].rank, "1");  // the slowest of the others
  EXPECT_FALSE(live.ended());
  const std::string text = Text(live);
  EXPECT_THAT(text, HasSubstr("Rank 2 has written nothing for 1 min 1 s and has not said that it ended"));
  EXPECT_THAT(text, HasSubstr("Ranks: 4, 2 writes, 1 ended, 1 quiet"));
  EXPECT_THAT(text, HasSubstr("Rank 1 is the slowest"));
  EXPECT_THAT(text, HasSubstr("running for 5 min 1 s"));
  // A second before it was within the usual.
  EXPECT_THAT(Text(Fold(job, {Rank(0, 249), Rank(2, 240)}, 249)), Not(HasSubstr("written nothing")));
}

TEST(Live, ARunThatHasEndedIsNotQuietHoweverLongAgo) {
  const LiveRun live = Fold(JobOf({10, 10}), {Rank(0, 300, true), Rank(1, 290, true)}, 100'000);
  EXPECT_TRUE(live.ended());
  EXPECT_THAT(Text(live), HasSubstr("ended; it began at"));
  EXPECT_THAT(Text(live), Not(HasSubstr("written nothing")));
  // All were killed.
  EXPECT_THAT(Text(Fold(JobOf({10, 10}), {Rank(0, 300), Rank(1, 290)}, 100'000)),
              HasSubstr("nothing is written any more"));
}

TEST(Live, OfRestartsTheLastOneCounts) {
  TraceWriter again = Rank(1, 300);
  again.start_unix_ns += 200 * kSecond;
  const LiveRun live = Fold(JobOf({10, 10}), {Rank(0, 300), Rank(1, 150), again}, 301);
  ASSERT_EQ(live.ranks.size(), 2u);
  const auto one =
      std::find_if(live.ranks.begin(), live.ranks.end(), [](const LiveRank& r) { return r.rank == "1"; });
  EXPECT_EQ(one->processes, 2u);
  EXPECT_EQ(one->state, WriterState::kWrites);
}

TEST(Live, ARankOfAnotherBatchSizeHasItsSteps) {
  Profile job = JobOf({10});
  cli::Run other = job.runs.begin()->second;
  other.key.batch_size += 1;
  other.step_times[1] = other.step_times.extract(0).mapped();
  job.runs.emplace(other.key, other);
  const LiveRun live = Fold(job, {Rank(0, 1), Rank(1, 1)}, 1);
  EXPECT_EQ(live.other_kinds, 1u);
  ASSERT_EQ(live.ranks.size(), 2u);
  for (const LiveRank& rank : live.ranks) EXPECT_EQ(rank.waits.steps, 20u) << rank.rank;
}

TEST(Live, NewStepsAreToldApartFromThoseBefore) {
  const LiveRun before = Fold(JobOf({10}), {Rank(0, 10)}, 10);
  EXPECT_EQ(before.new_steps, 0u);
  Profile job = JobOf({10});
  for (int i = 0; i < 5; ++i) job.runs.begin()->second.step_times[0].wall_ns.Add(30 * kLiveMs);
  const LiveRun after = Fold(job, {Rank(0, 11)}, 11, {.before = before.tally});
  EXPECT_EQ(after.new_steps, 5u);
  EXPECT_EQ(after.new_step_ns, 30.0 * kLiveMs);
  EXPECT_THAT(Text(after), HasSubstr("The last 5 steps took 30.0 ms each."));
}

TEST(Live, WhatCountersHaveSeenAndHowWellTimeIsKnown) {
  Profile job = JobOf({10});
  StepSums& steps = job.runs.begin()->second.steps;
  steps.steps = 1200;
  steps.armed = 0;
  EXPECT_THAT(Text(Fold(job, {Rank(0, 1)}, 1)), HasSubstr("No counters were armed yet in 1,200 steps."));
  steps.armed = 36;
  const std::string text = Text(Fold(job, {Rank(0, 1)}, 1));
  EXPECT_THAT(text, HasSubstr("Counters were armed in 36 of 1,200 steps and cover 92 % of GPU time."));
  EXPECT_THAT(text, HasSubstr("GPU time is known to +-1.2 % (95 %)"));
}

TEST(Live, AFileServersClockMayBeAhead) { EXPECT_EQ(Fold(JobOf({10}), {Rank(0, 500)}, 10).ranks[0].silent_ns, 0); }

TEST(Live, RowsAreInTheOrderThatIsAskedForAndItsColumnIsShown) {
  const LiveRun live = Fold(JobOf({10}), {Rank(0, 1)}, 1, {.by = By::kOp, .sort = "to_win_per_step_ns"});
  ASSERT_GT(live.report.rows.size(), 2u);
  EXPECT_GE(live.report.rows[0].derived.slack_ns, live.report.rows[1].derived.slack_ns);
  for (const int width : {40, 60, 80, 120}) {
    const LiveLook look{.sort_column = "to_win_per_step_ns", .sorted_by = "what could be won"};
    EXPECT_THAT(Text(live, look, {.width = width}), HasSubstr("to win")) << width;
  }
}

TEST(Live, NoMoreLinesThanTheScreenHas) {
  const LiveRun live = Fold(JobOf({10, 10, 10}), {Rank(0, 1), Rank(1, 1), Rank(2, 1)}, 1);
  for (const size_t lines : {1, 5, 20, 24, 60, 200}) {
    EXPECT_LE(LineCount(Text(live, {}, {.height = lines})), lines);
  }
  // What is left of the screen is the table's.
  EXPECT_EQ(LineCount(Text(live, {}, {.height = 60})), 60u);
}

TEST(Live, NothingYet) {
  const LiveRun live = Fold({}, {{.trace = "a.rfx", .changed_unix_ns = kStart}}, 1);
  EXPECT_FALSE(live.anything);
  EXPECT_THAT(Text(live), HasSubstr("nothing has been trained so far"));
}

TEST(Live, ATraceMaySayAnyTime) {
  for (const int64_t start : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    TraceWriter writer = Rank(0, 1);
    writer.start_unix_ns = start;
    EXPECT_THAT(Text(Fold(JobOf({10}), {writer}, 1)), HasSubstr("A program: running"));
  }
}

TEST(Live, AddressesAreNoNames) {
  Profile job = JobOf({10});
  auto stack = std::make_shared<NativeStackInfo>();
  stack->push_back({.module = "libtorch.so", .build_id = {}, .function = {}, .offset = 0x1234});
  for (auto& [key, launch] : job.runs.begin()->second.launches) {
    if (key.layer.model.empty()) launch.stack = stack;
  }
  const LiveRun live = Fold(job, {Rank(0, 1)}, 1);
  EXPECT_THAT(Text(live), Not(HasSubstr("0x1234")));
}

TEST(Live, NamesDoNotSteerATerminal) {
  TraceWriter writer = Rank(0, 1);
  writer.trace = "evil\033[2J.rfx";
  writer.damage = "byte 0: \033]0;x";
  LiveLook look{.command = "python \033[2J.py"};
  EXPECT_THAT(Text(Fold(JobOf({10}), {writer}, 1), look), Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace rfinject::cli
