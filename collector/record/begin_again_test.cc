#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::testing::SizeIs;

// Records `steps` steps of one launch each.
void RecordSteps(Recorder& recorder, uint32_t kernel, int steps) {
  recorder.Activate();
  for (int i = 0; i < steps; ++i) {
    recorder.Record(MakeRecord(kernel, 10));
    recorder.EndStep(2);
  }
}

TEST_F(TraceRecorderTest, AnotherRecordingHasWhatIdsStandForAndNothingElse) {
  Recorder& r = recorder();
  const uint32_t kernel = r.Intern("kernel");
  r.ReportDiagnostic(Severity::kInfo, "first", "of the first recording");
  RecordSteps(r, kernel, 3);
  EXPECT_FALSE(r.BeginAgain()) << "a trace is being written";
  r.Record(MakeRecord(kernel, 10));  // of a step that does not end
  EXPECT_EQ(FinishedTrace().steps.size(), 3u);

  settings().output = folder_.path() + "/again.rfx";
  settings().skip = 1;
  settings().steps = 2;
  ASSERT_TRUE(r.BeginAgain());
  EXPECT_EQ(r.CurrentStep(), 0u);
  EXPECT_FALSE(r.active());
  RecordSteps(r, kernel, 5);
  EXPECT_TRUE(r.WindowIsOver());
  r.Finish("exit");
  const TraceContent again = Trace("again.rfx");
  EXPECT_EQ(again.error, "");
  EXPECT_TRUE(again.has_end);
  EXPECT_EQ(again.Launches(), 2u);
  EXPECT_EQ(again.FindDiagnostic("first"), nullptr);
  // The first trace is as it was.
  EXPECT_EQ(Trace().steps.size(), 3u);
}

TEST_F(TraceRecorderTest, ARecordingMayBeginAgainWithoutHavingBegun) {
  Recorder& r = recorder();
  const uint32_t kernel = r.Intern("kernel");
  r.Finish("exit");
  ASSERT_TRUE(r.BeginAgain());
  RecordSteps(r, kernel, 1);
  EXPECT_EQ(FinishedTrace().Launches(), 1u);
}

TEST_F(TraceRecorderTest, WhatWasRecordedBetweenTwoRecordingsIsInNeither) {
  Recorder& r = recorder();
  const uint32_t kernel = r.Intern("kernel");
  RecordSteps(r, kernel, 1);
  EXPECT_EQ(FinishedTrace().Launches(), 1u);
  r.Record(MakeRecord(kernel, 10));
  r.EndStep(2);
  settings().output = folder_.path() + "/again.rfx";
  ASSERT_TRUE(r.BeginAgain());
  std::thread([&] { RecordSteps(r, kernel, 2); }).join();
  r.Finish("exit");
  EXPECT_EQ(Trace("again.rfx").Launches(), 2u);
  EXPECT_EQ(Trace("again.rfx").steps.size(), 2u);
}

TEST_F(TraceRecorderTest, ChildrenOfAProcessThatWasAttachedToAreNotMeasured) {
  settings().attached = true;
  settings().output = folder_.path() + "/";
  Recorder& r = recorder();
  const uint32_t kernel = r.Intern("kernel");
  RecordSteps(r, kernel, 1);
  EXPECT_TRUE(InChild([&] {
                RecordSteps(r, kernel, 1);
                EXPECT_FALSE(r.active());
              }).exited(0));
  r.Finish("exit");
  EXPECT_THAT(folder_.List(), SizeIs(1));
}

}  // namespace
}  // namespace rfinject
