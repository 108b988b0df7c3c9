#include "collector/record/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::TraceContent;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(TraceRecorderTest, StepsAfterAStopAreInNoSum) {
  Recorder& r = recorder();
  r.Activate();
  const LaunchRecord record = MakeRecord(r.Intern("kernel"), 1000);
  const auto step = [&] {
    r.Record(record);
    r.EndStep(1);
  };
  step();
  r.RequestMeasuring(false);  // the step that runs stays what it is
  EXPECT_FALSE(r.NextStepIsMeasured());
  step();
  EXPECT_FALSE(r.InWindow());
  step();
  step();
  r.RequestMeasuring(true);
  step();
  EXPECT_TRUE(r.InWindow());
  step();
  r.RequestMeasuring(false);
  r.RequestMeasuring(true);  // between two steps: nothing happens
  step();
  r.RequestMeasuring(false);
  step();
  step();
  const TraceContent t = FinishedTrace();
  std::vector<bool> measured;
  for (const auto& one : t.steps) measured.push_back(one.measured());
  EXPECT_THAT(measured, ElementsAre(true, true, false, false, false, true, true, true, false));
  EXPECT_EQ(t.Launches(), 5u);
  EXPECT_EQ(t.run.process().stopped_steps(), 4u);
  EXPECT_EQ(t.run.process().measuring(), 1u);
}

TEST_F(TraceRecorderTest, StartStoppedMeasuresWhatIsAskedFor) {
  settings().start_stopped = true;
  Recorder& r = recorder();
  r.Activate();
  const LaunchRecord record = MakeRecord(r.Intern("kernel"), 1000);
  for (int step = 0; step < 6; ++step) {
    if (step == 2) r.RequestMeasuring(true);
    r.Record(record);
    r.EndStep(1);
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 3u);
  EXPECT_EQ(t.run.process().stopped_steps(), 3u);
  EXPECT_EQ(t.run.process().measuring(), 2u);
}

TEST_F(TraceRecorderTest, TheWindowsEdgesAreExact) {
  settings().skip = 2;
  settings().steps = 3;
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  for (uint64_t step = 0; step < 8; ++step) {
    EXPECT_EQ(r.CurrentStep(), step);
    EXPECT_EQ(r.InWindow(), step >= 2 && step < 5) << step;
    // Each step's launches have a value of their own, from two threads.
    for (int i = 0; i < 10; ++i) r.Record(MakeRecord(kernel, uint64_t{1} << (4 * step)));
    std::thread([&] { r.Record(MakeRecord(kernel, uint64_t{1} << (4 * step))); }).join();
    r.EndStep(8);
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 33u);
  EXPECT_TRUE(t.Total("rf.time").sum == 11u * ((1u << 8) + (1u << 12) + (1u << 16)));
  ASSERT_THAT(t.steps, SizeIs(8));
  EXPECT_EQ(t.MeasuredSteps(), 3u);
  for (const v1::Step& step : t.steps) EXPECT_EQ(step.measured(), step.index() >= 2 && step.index() < 5);
}

// Its launches are in no sum either, from whichever thread they came and whenever they left its ring, and the window
// has as many steps as were asked for.
TEST_F(TraceRecorderTest, AStepThatCompilesIsInNoSum) {
  settings().skip = 1;
  settings().steps = 2;
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k"), tried = r.Intern("tried");
  for (uint64_t step = 0; step < 8; ++step) {
    EXPECT_EQ(r.InWindow(), step >= 1 && step < 5) << step;
    EXPECT_EQ(r.WindowIsOver(), step >= 5) << step;
    const bool compiles = step == 0 || step == 1 || step == 3 || step == 6;
    std::thread([&] { r.Record(MakeRecord(kernel, uint64_t{1} << (4 * step))); }).join();
    r.Record(MakeRecord(kernel, uint64_t{1} << (4 * step)));
    if (compiles) r.NoteCompilation();
    for (size_t i = 0; compiles && i < LaunchRing::kUnits / 4; ++i) {
      r.Record(MakeRecord(tried, 1));
      if (i % 1000 == 0) r.WriteNow();  // the ring is half full
    }
    r.EndStep(8);
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 4u);
  EXPECT_TRUE(t.Total("rf.time").sum == 2u * ((1u << 8) + (1u << 16)));
  EXPECT_EQ(t.MeasuredSteps(), 2u);
  for (const v1::Step& step : t.steps) EXPECT_EQ(step.measured(), step.index() == 2 || step.index() == 4);
  EXPECT_EQ(t.run.process().compiling_steps(), 2u);
}

// Nor are those of a step whose try has failed; nothing says that it compiled.
TEST_F(TraceRecorderTest, AStepThatFailsIsInNoSum) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  for (uint64_t step = 0; step < 4; ++step) {
    r.Record(MakeRecord(kernel, uint64_t{1} << (4 * step)));
    if (step == 1) r.NoteFailure();
    r.EndStep(8);
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.MeasuredSteps(), 3u);
  EXPECT_TRUE(t.Total("rf.time").sum == 1u + (1u << 8) + (1u << 12));
  EXPECT_EQ(t.run.process().compiling_steps(), 0u);
}

// Five launches in two steps of an estimate, of which the writer sees some before the first one ends. That of the
// second step takes 100 times as long.
void TwoSteps(Recorder& r, bool first_compiles) {
  RunFacts facts;
  facts.source = SourceKind::kEstimated;
  r.UpdateFacts(facts);
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  for (int i = 0; i < 3; ++i) {
    r.Record(MakeRecord(kernel, 1));
    r.WriteNow();
  }
  if (first_compiles) r.NoteCompilation();
  r.Record(MakeRecord(kernel, 1));
  r.EndStep(1);
  r.Record(MakeRecord(kernel, 100));
  r.EndStep(1);
}

// Launches of the first step that the reader takes out.
uint64_t NamedLaunches(const TraceContent& t) {
  uint64_t named = 0;
  for (const v1::Chunk& chunk : t.chunks) {
    for (const v1::StepLaunches& said : chunk.step_launches()) {
      EXPECT_EQ(said.step(), 0u);
      named += said.launches(0);
    }
  }
  return named;
}

// What is launched before the first step ends is written at once, so that a program that never ends one has it.
TEST_F(TraceRecorderTest, AFirstStepThatCompilesHasItsLaunchesNamed) {
  TwoSteps(recorder(), true);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.MeasuredSteps(), 1u);
  EXPECT_EQ(NamedLaunches(t), t.Launches() - 1);
  // The reader takes out launches of a key as its mean is. So what is left has a key of its own.
  ASSERT_THAT(t.keys, SizeIs(2));
  EXPECT_EQ(t.keys.at(1).launches, NamedLaunches(t));
  EXPECT_EQ(t.keys.at(2).launches, 1u);
  EXPECT_TRUE(t.keys.at(2).metrics.begin()->second.sum == 100u);
}

TEST_F(TraceRecorderTest, AFirstStepThatCompilesNothingIsMeasured) {
  TwoSteps(recorder(), false);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.MeasuredSteps(), 2u);
  EXPECT_EQ(t.Launches(), 5u);
  EXPECT_EQ(NamedLaunches(t), 0u);
}

TEST_F(TraceRecorderTest, WithoutStepsTheWindowStaysOpen) {
  settings().skip = 1;
  Recorder& r = recorder();
  EXPECT_FALSE(r.InWindow());
  r.EndStep(0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(r.InWindow());
    r.EndStep(0);
  }
}

// At the window's edge, while other threads are recording, each launch of a thread that saw the step before the edge
// counts, and no launch of a thread that knew of the step's end does.
TEST_F(TraceRecorderTest, TheWindowsEdgeHoldsUnderConcurrency) {
  settings().steps = 1;
  Recorder& r = recorder();
  r.Activate();
  const uint32_t before = r.Intern("before");
  const uint32_t after = r.Intern("after");
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> known_before{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        r.Record(MakeRecord(before, 1));
        known_before.fetch_add(1, std::memory_order_release);
      }
      while (!ended.load(std::memory_order_acquire)) std::this_thread::yield();
      for (int i = 0; i < 500; ++i) r.Record(MakeRecord(after, 1));
    });
  }
  while (known_before.load(std::memory_order_acquire) < 2000) std::this_thread::yield();
  r.EndStep(0);
  ended.store(true, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 2000u);
  for (const auto& [id, key] : t.keys) EXPECT_EQ(t.names.at(key.key.kernel()), "before");
}

// Counters that are decoded after the window has closed belong to launches in it; their source knows.
TEST_F(TraceRecorderTest, AddIsNotBoundToTheWindow) {
  settings().steps = 1;
  Recorder& r = recorder();
  r.Activate();
  r.EndStep(0);
  EXPECT_FALSE(r.InWindow());
  LaunchRecord late = MakeRecord(r.Intern("k"), 9);
  late.launches = 0;
  r.Add(late);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 0u);
  EXPECT_EQ(t.Total("rf.time").n, 1u);
}

TEST_F(TraceRecorderTest, AStepThatIsLeftOutIsNoMeasuredOne) {
  settings().skip = 1;
  Recorder& r = recorder();
  r.Activate();
  r.LeaveStepOut();
  r.EndStep(8);  // skipped anyway
  r.EndStep(8);
  r.LeaveStepOut();
  r.EndStep(8);
  r.EndStep(8);
  const TraceContent t = FinishedTrace();
  ASSERT_THAT(t.steps, SizeIs(4));
  EXPECT_TRUE(t.steps[1].measured());
  EXPECT_FALSE(t.steps[2].measured());
  EXPECT_TRUE(t.steps[3].measured());
}

}  // namespace
}  // namespace rfinject
