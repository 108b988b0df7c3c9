#include "collector/record/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::ReadTrace;
using ::rfinject::testing::TraceContent;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Before Activate there is no file and no thread, but nothing is forgotten either.
TEST_F(TraceRecorderTest, WhatCameBeforeActivateIsKept) {
  Recorder& r = recorder();
  const uint32_t kernel = r.Intern("k");
  for (int i = 0; i < 1000; ++i) r.Record(MakeRecord(kernel, 5));
  r.Add(MakeRecord(kernel, 5));
  r.EndStep(1);
  EXPECT_THAT(folder_.List(), IsEmpty());
  r.Activate();
  r.Record(MakeRecord(kernel, 5));
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 1002u);
  EXPECT_THAT(t.steps, SizeIs(1));
}

TEST_F(TraceRecorderTest, AFirstCallAfterAStepForgetsNothing) {
  Recorder& r = recorder();
  for (int i = 0; i < 10; ++i) r.Record(MakeRecord(r.Intern("k"), 5));
  r.EndStep(1);
  r.BeginFirstStep();
  r.Activate();
  EXPECT_EQ(FinishedTrace().Launches(), 10u);
}

TEST_F(TraceRecorderTest, AnIdleProcessLeavesNothing) {
  recorder().Record(MakeRecord(recorder().Intern("k"), 5));
  recorder().Finish("exit");
  recorder().Activate();
  EXPECT_FALSE(recorder().active());
  EXPECT_THAT(folder_.List(), IsEmpty());
}

TEST_F(TraceRecorderTest, FinishTwiceAndFromAnyThread) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) r.Record(MakeRecord(kernel, 1));
  });
  std::vector<std::thread> finishers;
  for (int i = 0; i < 4; ++i) {
    finishers.emplace_back([&r] {
      r.Finish("exit");
      EXPECT_FALSE(r.active());
    });
  }
  for (std::thread& thread : finishers) thread.join();
  stop.store(true);
  other.join();
  r.Record(MakeRecord(kernel, 1));
  r.EndStep(1);
  r.Activate();
  EXPECT_TRUE(FinishedTrace().has_end);
}

TEST_F(TraceRecorderTest, DisableKeepsTheReason) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    Recorder& r = recorder();
    r.Activate();
    r.Record(MakeRecord(r.Intern("k"), 1));
    r.Disable("the calibration failed");
    r.Record(MakeRecord(r.Intern("k"), 1));
    EXPECT_FALSE(r.active());
    EXPECT_FALSE(r.InWindow());
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0));
  EXPECT_EQ(child.err, "rfinject: error: the calibration failed\n");
  const TraceContent t = Trace();
  EXPECT_EQ(t.end.reason(), "disabled: the calibration failed");
  EXPECT_EQ(t.Launches(), 1u);
}

TEST_F(TraceRecorderTest, DisabledBySettingsDoesNothing) {
  settings().disabled = true;
  Recorder& r = recorder();
  r.Activate();
  EXPECT_FALSE(r.active());
  EXPECT_FALSE(r.InWindow());
  EXPECT_THAT(folder_.List(), IsEmpty());
}

TEST_F(TraceRecorderTest, AKilledProcessLeavesAReadableTrace) {
  for (int round = 0; round < 3; ++round) {
    settings().output = folder_.path() + "/killed" + std::to_string(round) + ".rfx";
    const ChildResult child = InChild(
        [&] {
          TraceRecorder* r = new TraceRecorder(settings());
          r->Activate();
          const uint32_t kernel = r->Intern("k");
          for (uint64_t i = 0;; ++i) {
            r->Record(MakeRecord(kernel, 1));
            r->Intern("name " + std::to_string(i % 100'000));
            if (i % 1000 == 0) r->EndStep(1);
          }
        },
        [&](pid_t pid) {
          WaitForTrace(settings().output, [&](const TraceContent& t) { return t.Launches() > 0 && round > -1; });
          usleep(static_cast<useconds_t>(round) * 7'000);
          kill(pid, SIGKILL);
        });
    EXPECT_TRUE(WIFSIGNALED(child.status));
    const TraceContent t = ReadTrace(settings().output);
    EXPECT_EQ(t.error, "");
    EXPECT_GT(t.Launches(), 0u);
    EXPECT_FALSE(t.has_end);
  }
}

}  // namespace
}  // namespace rfinject
