#include "collector/record/pending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "collector/record/testing/recorder_fixture.h"
#include "collector/step_waits.h"

namespace rfinject {
namespace {

using ::rfinject::testing::MetricTotal;
using ::rfinject::testing::TraceContent;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TraceRecorderTest, OfManyStepsTheLaterOnesAreSums) {
  constexpr uint64_t kSingle = 1 << 16, kLater = 1000;
  settings().skip = 1;
  Recorder& r = recorder();
  r.Activate();
  WatchWaits(kDataWaits);
  WatchWaits(kGpuWaits);
  for (uint64_t step = 0; step < kSingle + kLater; ++step) {
    r.NoteCalls(2, 7, 1);
    if (step % 10 == 0) r.MarkArmed(1);
    r.EndStep(3);
  }
  WatchWaits(kDataWaits, false);
  WatchWaits(kGpuWaits, false);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.steps.size(), kSingle);
  v1::RunSteps later;
  uint64_t durations = 0, wall_ns = 0, own_ns = 0;
  for (const v1::Chunk& chunk : t.chunks) {
    for (const v1::RunSteps& one : chunk.step_stats().run()) {
      later.set_steps(later.steps() + one.steps());
      later.set_samples(later.samples() + one.samples());
      later.set_calls(later.calls() + one.calls());
      later.set_armed(later.armed() + one.armed());
      durations += one.duration_ns().n();
      EXPECT_LE(one.duration_ns().min(), one.duration_ns().max());
    }
    for (const v1::RankSteps& one : chunk.step_stats().rank()) {
      wall_ns += one.wall_ns().sum();
      own_ns += one.own_ns().sum();
    }
  }
  EXPECT_EQ(later.steps(), kLater);
  EXPECT_EQ(later.samples(), 3 * kLater);
  EXPECT_EQ(later.calls(), 2 * kLater);
  EXPECT_GT(later.armed(), 0u);
  EXPECT_EQ(durations, kLater - later.armed()) << "an armed step's time holds what profiling cost";
  // Nobody waited.
  EXPECT_EQ(own_ns, wall_ns);
}

TEST_F(TraceRecorderTest, StepsThatWaitForTheWriterDoNotBreakTheLimit) {
  // Fewer than are written one by one, and one by one more than a megabyte. They end faster than the writer looks.
  constexpr uint64_t kSteps = 60000;
  settings().max_size_mb = 1;
  Recorder& r = recorder();
  r.Activate();
  for (uint64_t step = 0; step < kSteps; ++step) r.EndStep(3);
  const TraceContent t = FinishedTrace();
  uint64_t summed = 0;
  for (const v1::Chunk& chunk : t.chunks) {
    for (const v1::RunSteps& one : chunk.step_stats().run()) summed += one.steps();
  }
  EXPECT_GT(summed, 0u);
  EXPECT_EQ(t.steps.size() + summed, kSteps);
  EXPECT_LE(std::filesystem::file_size(folder_.path() + "/t.rfx"), 600'000u) << "single steps fill half of it";
}

// A program makes its weights with more launches than a ring holds, and loads its first batch.
TEST_F(TraceRecorderTest, WhatIsOfNoModelBeforeTheFirstStepIsOfNoStep) {
  Recorder& r = recorder();
  LaunchRecord preprocessing = MakeRecord(r.Intern("normalize"), 5);
  preprocessing.identity.site.layer =
      r.DefineLayer({.model = r.DefineModel({.class_name = "Normalize"}), .class_name = "Normalize"});
  preprocessing.identity.site.phase = Phase::kForward;
  r.Record(preprocessing);
  LaunchRecord batch = MakeRecord(r.Intern("copy"), 5);
  batch.identity.site.phase = Phase::kData;
  r.Record(batch);
  const LaunchRecord weights = MakeRecord(r.Intern("normal"), 5);
  for (int i = 0; i < 40'000; ++i) r.Record(weights);
  r.BeginFirstStep();
  r.Activate();
  r.Record(weights);  // somebody adds a layer
  r.BeginFirstStep();
  r.EndStep(1);
  r.BeginFirstStep();
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 3u);
  EXPECT_THAT(t.steps, SizeIs(1));
  EXPECT_THAT(t.drops, IsEmpty());
}

TEST_F(TraceRecorderTest, SumsAreExactBeyond64Bits) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const uint64_t huge = UINT64_MAX - 1;
  for (int i = 0; i < 5; ++i) r.Record(MakeRecord(kernel, huge));
  const MetricTotal total = FinishedTrace().Total("rf.time");
  EXPECT_TRUE(total.sum == static_cast<unsigned __int128>(huge) * 5);
  // The squares alone do not fit: they stop at the largest value instead of starting again.
  EXPECT_TRUE(total.sum_squares == ~static_cast<unsigned __int128>(0));
  EXPECT_EQ(total.min, huge);
}

// A reader of a running process's trace divides by the steps that have ended.
TEST_F(TraceRecorderTest, AStepThatRunsIsNotInTheFile) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const auto launch = [&](int count) {
    for (int i = 0; i < count; ++i) r.Record(MakeRecordOf(Phase::kForward, kernel));
  };
  launch(3);
  r.EndStep(1);
  launch(2);
  ASSERT_TRUE(WaitForAllBefore(r, settings().output, "one"));
  EXPECT_EQ(Trace().Launches(), 3u);
  launch(1);
  r.EndStep(1);
  launch(1);
  ASSERT_TRUE(WaitForAllBefore(r, settings().output, "two"));
  EXPECT_EQ(Trace().Launches(), 6u) << "what waited came with its step";
  EXPECT_EQ(Trace().MeasuredSteps(), 2u);
  EXPECT_EQ(Trace().Total("rf.time").n, 6u);
  launch(1);
  r.EndStep(1);
  launch(2);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.MeasuredSteps(), 3u);
  EXPECT_EQ(t.Launches(), 8u);
  ASSERT_NE(t.FindDiagnostic("step-not-ended"), nullptr) << "what is left out is said";
  EXPECT_THAT(t.FindDiagnostic("step-not-ended")->text(), HasSubstr("2 launches"));
}

// A step may end while the writer reads the rings: it must not come into the file before its launches.
TEST_F(TraceRecorderTest, AKillLeavesNoStepWithoutItsLaunches) {
  settings().skip = 1;
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  constexpr uint64_t kLaunches = 20;
  uint64_t launches = 0;
  const auto burst = [&](int steps) {
    for (int step = 1; step <= steps; ++step) {
      for (uint64_t i = 0; i < kLaunches; ++i) r.Record(MakeRecordOf(Phase::kForward, kernel));
      launches += kLaunches;
      if (step == steps) r.RequestMeasuring(false);
      r.EndStep(1);
    }
    // Who asks for measuring makes the writer write. The step that ends here is not measured.
    r.RequestMeasuring(true);
    r.EndStep(1);
  };
  r.EndStep(1);
  for (int i = 0; i < 50; ++i) {
    burst(100);
    burst(500);  // meets the writer at work
    // So that the ring has room for what comes.
    ASSERT_TRUE(WaitForTrace(settings().output, [&](const TraceContent& t) { return t.Launches() == launches; }));
  }
  EXPECT_THAT(FinishedTrace().drops, IsEmpty());
  for (const TraceContent& t : AfterEachFrame(settings().output)) {
    EXPECT_EQ(t.Launches(), kLaunches * t.MeasuredSteps()) << t.whole_bytes;
  }
}

// A model of many kernels: what a step adds to each of them is in one frame, however long their names are.
TEST_F(TraceRecorderTest, AKillLeavesNoPartOfALargeStep) {
  settings().skip = 1;
  Recorder& r = recorder();
  r.Activate();
  r.EndStep(1);
  std::vector<uint32_t> kernels;
  for (int i = 0; i < 15'000; ++i) {
    kernels.push_back(r.Intern("a kernel with a long name, as templates make them " + std::to_string(i)));
  }
  constexpr int kSteps = 3;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    for (const uint32_t kernel : kernels) r.Record(MakeRecordOf(Phase::kForward, kernel));
    r.EndStep(1);
    ASSERT_TRUE(WaitForTrace(settings().output,
                             [&](const TraceContent& t) { return t.Launches() == step * kernels.size(); }));
  }
  EXPECT_THAT(FinishedTrace().drops, IsEmpty());
  const std::vector<TraceContent> cuts = AfterEachFrame(settings().output);
  EXPECT_GT(cuts.size(), kSteps + 4u);
  for (const TraceContent& t : cuts) {
    std::set<uint64_t> launches;
    for (const auto& [id, key] : t.keys) launches.insert(key.launches);
    if (launches.empty()) continue;
    EXPECT_THAT(launches, ElementsAre(t.MeasuredSteps())) << t.whole_bytes;
  }
}

// An average of the weights after the optimizer's step belongs to the last step as it does to the others.
TEST_F(TraceRecorderTest, WhatFollowsTheLastStepCounts) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  for (int step = 0; step < 3; ++step) {
    r.Record(MakeRecordOf(Phase::kForward, kernel));
    r.EndStep(1);
    r.Record(MakeRecordOf(Phase::kOther, kernel));
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 6u);
  EXPECT_EQ(t.FindDiagnostic("step-not-ended"), nullptr);
}

// A batch that is being validated is not written either, nor are its images; training that goes on meanwhile waits
// for its own end.
TEST_F(TraceRecorderTest, ABatchThatIsValidatedNowIsNotInTheFile) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const auto batches = [](const TraceContent& t) {
    uint64_t sum = 0;
    for (const v1::Chunk& chunk : t.chunks) {
      for (const v1::RunSteps& run : chunk.step_stats().run()) sum += run.eval_batches() * 100 + run.eval_samples();
    }
    return sum;
  };
  r.Record(MakeRecordOf(Phase::kForward, kernel));
  r.EndStep(1);
  for (int batch = 0; batch < 3; ++batch) {
    r.NoteEvaluation(8);
    for (int i = 0; i < 5; ++i) r.Record(MakeRecordOf(Phase::kEval, kernel));
  }
  ASSERT_TRUE(WaitForAllBefore(r, settings().output, "one"));
  EXPECT_EQ(Trace().Launches(), 1u + 10u);
  EXPECT_EQ(batches(Trace()), 216u);
  r.Record(MakeRecordOf(Phase::kForward, kernel));
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 1u + 15u);
  EXPECT_EQ(batches(t), 324u);
}

// What ran before the training keeps its launch keys, and the training gets others, although they are the same
// launches.
TEST_F(TraceRecorderTest, WhatRanBeforeTheTrainingHasKeysOfItsOwn) {
  settings().skip = 1;
  settings().steps = 2;
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const auto step = [&](int launches) {
    for (int i = 0; i < launches; ++i) r.Record(MakeRecordOf(Phase::kForward, kernel));
    r.EndStep(7);
  };
  for (int i = 0; i < 3; ++i) step(1);
  EXPECT_TRUE(r.WindowIsOver());
  r.BeginTraining();
  EXPECT_FALSE(r.WindowIsOver());
  for (int i = 0; i < 4; ++i) step(10);
  EXPECT_TRUE(r.WindowIsOver());
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.run.untrained_steps(), 3u);
  EXPECT_EQ(t.run.untrained_keys(), 1u);
  std::vector<bool> measured;
  for (const v1::Step& one : t.steps) measured.push_back(one.measured());
  EXPECT_THAT(measured, ElementsAre(false, true, true, false, true, true, false));
  ASSERT_THAT(t.keys, SizeIs(2));
  EXPECT_EQ(t.keys.at(1).launches, 2u);
  EXPECT_EQ(t.keys.at(2).launches, 20u);
}

TEST_F(TraceRecorderTest, TheLastStepsOfAWindowHaveTheirLaunches) {
  settings().steps = 70;
  Recorder& r = recorder();
  r.Activate();
  const uint32_t one = r.Intern("one"), other = r.Intern("other");
  for (uint64_t step = 0; step < 80; ++step) {
    for (uint64_t i = 0; i <= step; ++i) r.Record(MakeRecordOf(Phase::kForward, one));
    if (step % 2 == 1) r.Record(MakeRecordOf(Phase::kBackward, other));
    r.Record(MakeRecordOf(Phase::kEval, one));
    r.EndStep(1);
  }
  const TraceContent t = FinishedTrace();
  std::map<uint64_t, std::vector<uint64_t>> launches;  // by step: in ranges of keys
  for (const v1::Chunk& chunk : t.chunks) {
    for (const v1::StepLaunches& said : chunk.step_launches()) {
      for (int i = 0; i < said.keys_size(); ++i) {
        launches[said.step()].insert(launches[said.step()].end(), said.keys(i), said.launches(i));
      }
    }
  }
  ASSERT_THAT(launches, SizeIs(63)) << "as many as an iteration may have, less one";
  EXPECT_EQ(launches.begin()->first, 7u);
  EXPECT_THAT(launches.at(68), ElementsAre(69u));
  EXPECT_THAT(launches.at(69), ElementsAre(70u, 1u));
}

class WaitsBehindTest : public TraceRecorderTest, public ::testing::WithParamInterface<Phase> {};
INSTANTIATE_TEST_SUITE_P(Then, WaitsBehindTest, ::testing::Values(Phase::kOther, Phase::kForward, Phase::kEval));

class StepLaunchesTest : public TraceRecorderTest, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Kinds, StepLaunchesTest, ::testing::Values(1, 2));

// Nothing says which step will be the last. Of a loop whose steps are of one kind none can be cut.
TEST_P(StepLaunchesTest, TheLastStepsOfALoopOfSeveralKindsHaveTheirs) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t one = r.Intern("one");
  for (uint32_t step = 0; step < 201; ++step) {
    for (uint32_t i = 0; i <= step; ++i) r.Record(MakeRecordOf(Phase::kForward, one));
    r.NoteCalls(1, 1 + step % GetParam(), 1);
    r.EndStep(1);
    if (step == 90) {
      ASSERT_TRUE(WaitForAllBefore(r, settings().output, "step 90"));
    }
  }
  const TraceContent t = FinishedTrace();
  std::map<uint64_t, uint64_t> launches;  // by step
  for (const v1::Chunk& chunk : t.chunks) {
    for (const v1::StepLaunches& said : chunk.step_launches()) launches[said.step()] += said.launches(0);
  }
  if (GetParam() == 1) {
    EXPECT_THAT(launches, IsEmpty());
  } else {
    ASSERT_THAT(launches, SizeIs(Ge(63u)));
    EXPECT_EQ(launches.at(200), 201u);
    EXPECT_EQ(launches.at(138), 139u);
  }
}

GpuClock g_loss_clock;  // of a GPU that the program waits for when it reads a loss

// What is waited for behind the last step belongs to it, as what is waited for behind any other belongs to the next;
// unless a validation or another step has begun.
TEST_P(WaitsBehindTest, TheLastStepsAreInTheSums) {
  g_loss_clock = {};
  g_gpu_clock.store([](GpuClock* clock) noexcept {
    *clock = g_loss_clock;
    return true;
  });
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  for (int step = 0; step < 4; ++step) {
    r.Record(MakeRecordOf(Phase::kForward, kernel));
    g_loss_clock.busy_ns += 1'000'000'000'000;
    r.EndStep(1);
    g_loss_clock.skipped_ns += 1'000'000'000'000;
  }
  if (GetParam() == Phase::kForward) r.Record(MakeRecordOf(Phase::kForward, kernel));
  if (GetParam() == Phase::kEval) r.NoteEvaluation(1);
  const TraceContent t = FinishedTrace();
  g_gpu_clock.store(nullptr);
  uint64_t waited_s = 0, wall_s = 0;
  for (const v1::Step& step : t.steps) waited_s += step.gpu_wait_ns() / 1'000'000'000;
  for (const v1::Chunk& chunk : t.chunks) {
    for (const v1::RankSteps& sums : chunk.step_stats().rank()) {
      waited_s += sums.gpu_wait_ns().sum() / 1'000'000'000;
      wall_s += sums.wall_ns().sum() / 1'000'000'000;
      EXPECT_EQ(sums.wall_ns().code_size(), 0) << "there is no step more";
    }
  }
  EXPECT_EQ(waited_s, GetParam() == Phase::kOther ? 4000u : 3000u);
  EXPECT_EQ(wall_s, GetParam() == Phase::kOther ? 1000u : 0u);
}

// A step that makes more launches than a ring holds.
TEST_F(TraceRecorderTest, AStepLargerThanTheRingIsWhole) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  constexpr uint64_t kLaunches = 3 * LaunchRing::kUnits / 5;
  r.EndStep(1);
  for (uint64_t i = 0; i < kLaunches; ++i) {
    r.Record(MakeRecordOf(Phase::kForward, kernel));
    // A program that waits for its GPU now and then; the writer reads meanwhile.
    if (i % (LaunchRing::kUnits / 8) == 0) {
      ASSERT_TRUE(WaitForAllBefore(r, settings().output, "at " + std::to_string(i)));
    }
  }
  EXPECT_EQ(Trace().Launches(), 0u);
  r.EndStep(1);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), kLaunches);
  EXPECT_THAT(t.drops, IsEmpty());
}

// A source's mistake costs that launch, not the trace: readers refuse references to nothing.
TEST_F(TraceRecorderTest, UnknownIdsAreDropped) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const uint32_t model = r.DefineModel({.class_name = "M"});
  const uint32_t other = r.DefineModel({.class_name = "N"});
  const uint32_t layer = r.DefineLayer({.model = model, .class_name = "M", .training = true});
  EXPECT_EQ(r.DefineLayer({.model = 0, .path = "x", .class_name = "X", .training = true}), 0u);
  EXPECT_EQ(r.DefineLayer({.model = other + 1, .path = "x", .class_name = "X", .training = true}), 0u);
  EXPECT_EQ(r.DefineLayer({.model = model, .path = "x", .class_name = "X", .parent = layer + 1, .training = true}),
            0u);
  EXPECT_EQ(r.DefineLayer({.model = other, .path = "x", .class_name = "X", .parent = layer, .training = true}), 0u);
  std::vector<LaunchRecord> bad(8, MakeRecord(kernel, 1));
  bad[0].identity.kernel = kernel + 1;
  bad[1].identity.signature = kernel + 1;
  bad[2].identity.site.op = UINT32_MAX;
  bad[3].identity.site.node = kernel + 1;
  bad[4].identity.site.layer = layer + 1;
  bad[5].identity.site.phase = static_cast<Phase>(kPhaseNames.size());
  bad[6].samples[0].metric = 0;
  bad[7].samples[0].metric = kFirstFreeMetric;
  for (const LaunchRecord& record : bad) r.Record(record);
  r.Add(bad[0]);
  r.Record(MakeRecord(kernel, 1));
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 1u);
  EXPECT_EQ(t.drops.at("launches: unknown ids"), 9u);
}

// Shapes that change in every step must not eat the machine: the sums stay right, the detail goes.
TEST_F(TraceRecorderTest, EndlessNewKeysAreCoarsened) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const uint64_t count = LaunchTable::kMaxKeys + 500;
  for (uint64_t i = 0; i < count; ++i) {
    LaunchRecord record = MakeRecord(kernel, 2);
    record.identity.signature = r.Intern(std::to_string(i));
    r.Add(record);
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), count);
  EXPECT_TRUE(t.Total("rf.time").sum == 2 * count);
  EXPECT_EQ(t.keys.size(), LaunchTable::kMaxKeys + 1u);
  EXPECT_NE(t.FindDiagnostic("too-many-keys"), nullptr);
}

}  // namespace
}  // namespace rfinject
