#include "collector/trace_recorder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "collector/process_facts.h"
#include "collector/step_waits.h"
#include "collector/testing/trace_content.h"
#include "proto/wire/framing.h"

#if defined(__SANITIZE_THREAD__)
// A forked child of a process with threads may start threads of its own here; TSan would end it for that.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace rfinject {
namespace {

using ::rfinject::testing::MetricTotal;
using ::rfinject::testing::ParseTrace;
using ::rfinject::testing::ReadFile;
using ::rfinject::testing::ReadTrace;
using ::rfinject::testing::TemporaryFolder;
using ::rfinject::testing::TraceContent;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

LaunchRecord MakeRecord(uint32_t kernel, uint64_t time_ns, uint64_t flop = 0) {
  LaunchRecord record;
  record.identity.kernel = kernel;
  record.samples[record.sample_count++] = {kTime, time_ns};
  if (flop != 0) record.samples[record.sample_count++] = {kModelFlop, flop};
  return record;
}

// What a child process did: how it ended, and what it said on stderr.
struct ChildResult {
  int status = -1;
  std::string err;
  bool exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

// Runs `body` in a forked child, which then ends by _exit(0). Recorders there are made anew or inherited; the test's
// own process stays single-threaded where it can, so that sanitizers and fork agree.
ChildResult InChild(const std::function<void()>& body, const std::function<void(pid_t)>& meanwhile = {}) {
  int err[2];
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(err[1], STDERR_FILENO);
    body();
    _exit(::testing::Test::HasFailure() ? 99 : 0);
  }
  close(err[1]);
  ChildResult result;
  if (meanwhile) meanwhile(child);
  char buffer[4096];
  for (ssize_t n; (n = read(err[0], buffer, sizeof buffer)) > 0;) result.err.append(buffer, static_cast<size_t>(n));
  close(err[0]);
  EXPECT_EQ(waitpid(child, &result.status, 0), child);
  return result;
}

class TraceRecorderTest : public ::testing::Test {
 protected:
  TraceRecorderTest() {
    settings_.output = folder_.path() + "/t.rfx";
    settings_.verbosity = -1;
  }
  // Recorders live for ever, and so must what they refer to.
  Settings& settings() { return settings_; }
  Recorder& recorder() {
    if (recorder_ == nullptr) recorder_ = new TraceRecorder(settings_);
    return *recorder_;
  }
  TraceContent Trace(const std::string& name = "t.rfx") { return ReadTrace(folder_.path() + "/" + name); }
  // A finished recorder's trace, which must be without fault.
  TraceContent FinishedTrace() {
    recorder().Finish("exit");
    TraceContent content = Trace();
    EXPECT_EQ(content.error, "");
    EXPECT_EQ(content.trailing_bytes, 0u);
    EXPECT_TRUE(content.has_end);
    EXPECT_EQ(content.end.reason(), "exit");
    return content;
  }

  TemporaryFolder folder_;

 private:
  // Kept, so that the leak checker sees that it is meant.
  static Settings& NewSettings() {
    static auto* all = new std::vector<Settings*>;
    return *all->emplace_back(new Settings);
  }
  Settings& settings_ = NewSettings();
  TraceRecorder* recorder_ = nullptr;
};

// --- What is recorded is what is read

// A GPU whose clock the test moves.
GpuClock g_test_clock;
bool g_test_clock_used = false;
bool ReadTestClock(GpuClock* clock) noexcept {
  *clock = g_test_clock;
  return g_test_clock_used;
}

TEST_F(TraceRecorderTest, AStepHasWhatItsThreadWaitedForAndTheGpuDid) {
  (void)TakeWaits();
  Recorder& r = recorder();
  r.Activate();
  r.EndStep(1);  // nobody watches
  WatchWaits(kDataWaits);
  BeginWait(kDataWaits);
  EndWait(kDataWaits);
  std::thread([] {
    BeginWait(kDataWaits);
    EndWait(kDataWaits);
  }).join();
  r.NoteBusy(7);
  r.EndStep(1);
  r.EndStep(1);
  g_gpu_clock.store(&ReadTestClock);
  g_test_clock_used = true;
  g_test_clock = {.skipped_ns = 1000, .busy_ns = 500};
  r.RestartStep();
  g_test_clock = {.skipped_ns = 1'000'000'001'000, .busy_ns = 2'000'000'000'500};
  r.EndStep(1);
  g_test_clock_used = false;
  const TraceContent t = FinishedTrace();
  g_gpu_clock.store(nullptr);
  ASSERT_THAT(t.steps, SizeIs(4));
  EXPECT_EQ(t.steps[0].watched(), 0u);
  EXPECT_EQ(t.steps[1].watched(), kDataWaits | kGpuBusy);
  EXPECT_GT(t.steps[1].data_wait_ns(), 0u);
  EXPECT_LE(t.steps[1].data_wait_ns(), t.steps[1].duration_ns());
  EXPECT_EQ(t.steps[1].gpu_busy_ns(), 7u);
  EXPECT_EQ(t.steps[2].watched(), uint32_t{kDataWaits});
  EXPECT_EQ(t.steps[2].data_wait_ns(), 0u);
  // The host's clock goes on while that one jumps: the step took both.
  EXPECT_EQ(t.steps[3].watched(), kDataWaits | kGpuWaits | kGpuBusy);
  EXPECT_EQ(t.steps[3].gpu_wait_ns(), 1'000'000'000'000u);
  EXPECT_EQ(t.steps[3].gpu_busy_ns(), 2'000'000'000'000u);
  EXPECT_GT(t.steps[3].duration_ns(), t.steps[3].gpu_wait_ns());
}

TEST_F(TraceRecorderTest, OfManyStepsTheLaterOnesAreSums) {
  constexpr uint64_t kSingle = 1 << 16, kLater = 1000;
  settings().skip = 1;
  Recorder& r = recorder();
  r.Activate();
  WatchWaits(kDataWaits);
  WatchWaits(kGpuWaits);
  for (uint64_t step = 0; step < kSingle + kLater; ++step) {
    r.NoteCalls(2, 7, 1);
    r.NoteBusy(1);
    if (step % 10 == 0) r.MarkArmed(1);
    r.EndStep(3);
  }
  WatchWaits(kDataWaits, false);
  WatchWaits(kGpuWaits, false);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.steps.size(), kSingle);
  v1::RunSteps later;
  uint64_t durations = 0, wall_ns = 0, own_ns = 0, gap_ns = 0, gaps = 0;
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
      gap_ns += one.launch_gap_ns().sum();
      for (const uint64_t count : one.launch_gap_ns().count()) gaps += count;
    }
  }
  EXPECT_EQ(later.steps(), kLater);
  EXPECT_EQ(later.samples(), 3 * kLater);
  EXPECT_EQ(later.calls(), 2 * kLater);
  EXPECT_GT(later.armed(), 0u);
  EXPECT_EQ(durations, kLater - later.armed()) << "an armed step's time holds what profiling cost";
  // Nobody waited, and the GPU worked for a nanosecond of each step.
  EXPECT_EQ(own_ns, wall_ns);
  EXPECT_EQ(gaps, durations);
  EXPECT_EQ(gap_ns, wall_ns - gaps);
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

TEST_F(TraceRecorderTest, WritesDefinitionsAndStatistics) {
  Recorder& r = recorder();
  r.Activate();
  ASSERT_TRUE(r.active());
  const uint32_t model = r.DefineModel({.class_name = "ResNet",
                                        .parameters = 11'689'512,
                                        .parameter_bytes = 46'758'048,
                                        .trainable_parameters = 11'689'512});
  const uint32_t root = r.DefineLayer({.model = model, .class_name = "ResNet", .training = true});
  const uint32_t layer = r.DefineLayer({.model = model,
                                        .path = "layer1.0.conv2",
                                        .class_name = "Conv2d",
                                        .parameters = 36864,
                                        .parameter_bytes = 147456,
                                        .parent = root,
                                        .training = true});
  r.SetLayerShapes(layer, "f32[8,64,56,56]", "f32[8,64,56,56]");
  r.SetLayerShapes(layer, "f32[1]", "f32[1]");  // only the first call's are kept
  LaunchRecord record = MakeRecord(r.Intern("cudnn_kernel"), 1000, 77);
  record.identity.signature = r.Intern("f32[8,64,56,56]");
  record.identity.site = {.layer = layer,
                          .op = r.Intern("aten::convolution"),
                          .node = r.Intern("ConvolutionBackward0"),
                          .phase = Phase::kBackward};
  record.identity.grid = {7, 1, 2};
  record.identity.block = {256, 1, 1};
  record.identity.dynamic_shared_bytes = 49152;
  record.identity.device = 1;
  r.Record(record);
  record.samples[0].value = 3000;
  r.Record(record);
  r.EndStep(8);

  const TraceContent t = FinishedTrace();
  ASSERT_THAT(t.keys, SizeIs(1));
  const auto& [id, key] = *t.keys.begin();
  EXPECT_EQ(t.names.at(key.key.kernel()), "cudnn_kernel");
  EXPECT_EQ(t.names.at(key.key.op()), "aten::convolution");
  EXPECT_EQ(t.names.at(key.key.node()), "ConvolutionBackward0");
  EXPECT_EQ(t.names.at(key.key.signature()), "f32[8,64,56,56]");
  EXPECT_THAT(key.key.grid(), ElementsAre(7, 1, 2));
  EXPECT_THAT(key.key.block(), ElementsAre(256, 1, 1));
  EXPECT_EQ(key.key.dynamic_shared_bytes(), 49152u);
  EXPECT_EQ(key.key.device(), 1u);
  EXPECT_EQ(key.key.phase(), v1::PHASE_BACKWARD);
  EXPECT_EQ(key.launches, 2u);
  EXPECT_EQ(key.metrics.at("rf.time"), (MetricTotal{2, 4000, 10'000'000, 1000, 3000}));
  EXPECT_EQ(key.metrics.at("rf.model_flop"), (MetricTotal{2, 154, 2 * 77 * 77, 77, 77}));
  const v1::Layer& read = t.layers.at(key.key.layer());
  EXPECT_EQ(read.path(), "layer1.0.conv2");
  EXPECT_EQ(read.class_name(), "Conv2d");
  EXPECT_EQ(read.input_shape(), "f32[8,64,56,56]");
  EXPECT_EQ(read.parameters(), 36864u);
  EXPECT_EQ(t.layers.at(read.parent()).path(), "");
  EXPECT_EQ(t.models.at(read.model()).class_name(), "ResNet");
  EXPECT_EQ(t.models.at(read.model()).trainable_parameters(), 11'689'512u);
  ASSERT_THAT(t.steps, SizeIs(1));
  EXPECT_EQ(t.steps[0].samples(), 8u);
  EXPECT_TRUE(t.steps[0].measured());
  EXPECT_THAT(t.drops, IsEmpty());
}

TEST_F(TraceRecorderTest, ProcessFactsAreInTheTrace) {
  recorder().Activate();
  RunFacts facts;
  facts.source = SourceKind::kEstimated;
  facts.process.torch_version = "1.13.1";
  facts.policy.autocast_dtype = "float16";
  facts.device.push_back({.index = 0, .name = "V100", .sm_count = 80});
  recorder().UpdateFacts(facts);
  RunFacts more;
  more.tier = Tier::kBBackwardScope;
  more.policy.autocast_dtype = "bfloat16";
  more.policy.cudnn_tf32 = Tristate::kOn;
  more.device.push_back({.index = 1, .name = "V100"});
  more.device.push_back({.index = 0, .chip = "GV100"});
  recorder().UpdateFacts(more);
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.run.process().pid(), static_cast<uint32_t>(getpid()));
  EXPECT_THAT(t.run.process().argv(0), HasSubstr("collector_test"));
  EXPECT_GT(t.run.process().memory_bytes(), 1u << 20);
  EXPECT_GT(t.run.process().cpus(), 0u);
  EXPECT_GT(t.run.process().start_unix_ns(), int64_t{1'700'000'000'000'000'000});
  EXPECT_THAT(t.run.process().os(), StartsWith("Linux "));
  EXPECT_EQ(t.run.source(), v1::SOURCE_ESTIMATED);
  EXPECT_EQ(t.run.tier(), v1::TIER_B_BACKWARD_SCOPE);
  EXPECT_EQ(t.run.process().torch_version(), "1.13.1");
  EXPECT_EQ(t.run.policy().autocast_dtype(), "bfloat16+float16");
  EXPECT_EQ(t.run.policy().cudnn_tf32(), 2u);
  ASSERT_EQ(t.run.device_size(), 2);
  EXPECT_EQ(t.run.device(0).chip(), "GV100");
  EXPECT_EQ(t.run.device(0).sm_count(), 80u);
}

TEST_F(TraceRecorderTest, TheSameTextGivesTheSameId) {
  Recorder& r = recorder();
  const uint32_t a = r.Intern("a");
  EXPECT_NE(a, 0u);
  EXPECT_NE(r.Intern("b"), a);
  EXPECT_EQ(r.Intern("a"), a);
  EXPECT_EQ(r.DefineMetric("rf.time", "ns", 1), static_cast<uint32_t>(kTime));
  EXPECT_EQ(r.DefineMetric(kMetricFlop[3], "FLOP", 1), static_cast<uint32_t>(kFlopFirst) + 3);
  const uint32_t metric = r.DefineMetric("dram__bytes_read.sum", "byte", 1);
  EXPECT_EQ(metric, static_cast<uint32_t>(kFirstFreeMetric));
  EXPECT_EQ(r.DefineMetric("dram__bytes_read.sum", "byte", 1), metric);
  const uint32_t model = r.DefineModel({.class_name = "M"});
  EXPECT_NE(r.DefineModel({.class_name = "M"}), model);
  const uint32_t layer = r.DefineLayer({.model = model, .path = "fc", .class_name = "Linear", .training = true});
  EXPECT_EQ(r.DefineLayer({.model = model, .path = "fc", .class_name = "Linear", .training = true}), layer);
}

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

// --- Many threads

uint64_t Drops(const TraceContent& t) {
  uint64_t drops = 0;
  for (const auto& [what, count] : t.drops) drops += count;
  return drops;
}

TEST_F(TraceRecorderTest, ManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr uint64_t kRecords = 20'000;  // fit into a ring, so that this holds on the most loaded machine
  Recorder& r = recorder();
  r.Activate();
  std::atomic<int> started{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&r, &started, t] {
      const uint32_t shared = r.Intern("shared");
      const uint32_t own = r.Intern("kernel " + std::to_string(t));
      for (uint64_t i = 0; i < kRecords; ++i) {
        r.Record(MakeRecord(i % 2 == 0 ? shared : own, i, i + 1));
        // All threads at the same time, each with a ring of its own.
        if (i == 0) started.fetch_add(1);
        while (started.load(std::memory_order_relaxed) < kThreads) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(Drops(t), 0u);
  EXPECT_EQ(t.Launches(), kThreads * kRecords);
  const unsigned __int128 n = kRecords;
  EXPECT_TRUE(t.Total("rf.time").sum == n * (n - 1) / 2 * kThreads);
  EXPECT_TRUE(t.Total("rf.time").sum_squares == (n - 1) * n * (2 * n - 1) / 6 * kThreads);
  EXPECT_EQ(t.Total("rf.model_flop").min, 1u);
  EXPECT_EQ(t.Total("rf.model_flop").max, n);
  EXPECT_EQ(t.keys.size(), 1u + kThreads);
}

TEST_F(TraceRecorderTest, ThreadsThatEndHandTheirRingsOn) {
  constexpr uint64_t kThreads = 200;
  constexpr uint64_t kRecords = 500;
  // A thread that meets a busy arena of malloc's makes a new one, 64 MiB of address space that are not ours.
  mallopt(M_ARENA_MAX, 1);
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  const auto mapped = [] { return ::rfinject::testing::ReadFile("/proc/self/statm"); };
  const auto pages = [&] { return std::stoull(mapped()); };
  const uint64_t before = pages();
  for (uint64_t t = 0; t < kThreads; ++t) {
    std::thread([&] {
      for (uint64_t i = 0; i < kRecords; ++i) r.Record(MakeRecord(kernel, 1));
    }).join();
  }
  const uint64_t grown = (pages() - before) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(grown, 20 * sizeof(LaunchRing));
#else
  (void)grown;
#endif
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches() + Drops(t), kThreads * kRecords) << "every launch is counted, or counted as dropped";
}

// Nothing is dropped at a rate that a training process has, since a ring that is half full wakes the writer.
TEST_F(TraceRecorderTest, AHalfFullRingWakesTheWriter) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  constexpr uint64_t kBurst = 5'000;  // a quarter of a ring
  for (int burst = 0; burst < 40; ++burst) {
    for (uint64_t i = 0; i < kBurst; ++i) r.Record(MakeRecord(kernel, 1, 1));
    usleep(10'000);  // gives way to the writer, as a program that waits for its GPU does
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches() + Drops(t), 40 * kBurst);
  // A writer that is not woken sees one ring of launches a second, a tenth of these; one that is sees all of them,
  // unless the machine is so loaded that it does not run at all.
  EXPECT_LT(Drops(t), 30 * kBurst);
}

TEST_F(TraceRecorderTest, AFullRingDropsAndCounts) {
  Recorder& r = recorder();  // idle: nobody drains
  const uint32_t kernel = r.Intern("k");
  constexpr uint64_t kRecords = 50'000;
  for (uint64_t i = 0; i < kRecords; ++i) r.Record(MakeRecord(kernel, 1));
  r.EndStep(3);  // does not fit into the ring any more, and is kept all the same
  r.Activate();
  const TraceContent t = FinishedTrace();
  EXPECT_THAT(t.drops, SizeIs(1));
  EXPECT_GT(t.drops.at("launches: ring full"), 0u);
  EXPECT_EQ(t.Launches() + t.drops.at("launches: ring full"), kRecords);
  EXPECT_THAT(t.steps, SizeIs(1));
}

// --- The window of --skip and --steps

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

TEST_F(TraceRecorderTest, StepsFollowEachOther) {
  Recorder& r = recorder();
  r.Activate();
  for (int i = 0; i < 5; ++i) {
    usleep(1000);
    r.EndStep(0);
  }
  const TraceContent t = FinishedTrace();
  ASSERT_THAT(t.steps, SizeIs(5));
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(t.steps[i].index(), i);
    EXPECT_GE(t.steps[i].duration_ns(), 1'000'000u);
  }
}

// --- Chunks

// Waits, as long as it takes, until `path` holds a trace for which `wanted` is true.
bool WaitForTrace(const std::string& path, const std::function<bool(const TraceContent&)>& wanted) {
  for (int i = 0; i < 6000; ++i) {
    const TraceContent t = ReadTrace(path);
    if (t.chunks.size() > 0 && wanted(t)) return true;
    usleep(10'000);
  }
  return false;
}

TEST_F(TraceRecorderTest, TheWriterWritesByItselfAndOnlyWhatIsNew) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  r.Record(MakeRecord(kernel, 1));
  ASSERT_TRUE(WaitForTrace(settings().output, [](const TraceContent& t) { return t.Launches() == 1; }));
  r.Record(MakeRecord(kernel, 1));
  ASSERT_TRUE(WaitForTrace(settings().output, [](const TraceContent& t) { return t.Launches() == 2; }));
  const TraceContent t = FinishedTrace();  // refuses ids that are defined twice
  EXPECT_EQ(t.Launches(), 2u);
  EXPECT_THAT(t.keys, SizeIs(1));
}

// A diagnostic that is in the file was written after all that was recorded before it.
bool WaitForAllBefore(Recorder& recorder, const std::string& path, const std::string& id) {
  // A mark that comes while the writer has read the rings and not yet written is in the file before what it follows.
  // One that is made when the first is there is of a later turn.
  for (const std::string& mark : {id, id + " again"}) {
    recorder.ReportDiagnostic(Severity::kInfo, mark, "a mark in the file");
    if (!WaitForTrace(path, [&](const TraceContent& t) { return t.FindDiagnostic(mark) != nullptr; })) return false;
  }
  return true;
}

LaunchRecord MakeRecordOf(Phase phase, uint32_t kernel) {
  LaunchRecord record = MakeRecord(kernel, 10);
  record.identity.site.phase = phase;
  return record;
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

// What a kill after each of its frames would have left of a trace.
std::vector<TraceContent> AfterEachFrame(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<TraceContent> cuts;
  for (size_t end = wire::kFileHeaderSize; end + wire::kFrameHeaderSize <= bytes.size();) {
    uint32_t payload = 0;
    std::memcpy(&payload, bytes.data() + end + sizeof wire::kFrameMagic, sizeof payload);
    end += wire::kFrameHeaderSize + payload;
    cuts.push_back(ParseTrace(bytes.substr(0, end)));
    EXPECT_EQ(cuts.back().error, "");
  }
  return cuts;
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

// Likewise the batch that is validated now, and its images; training that goes on meanwhile waits for its own end.
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

TEST_F(TraceRecorderTest, MuchAtOnceBecomesManyFrames) {
  Recorder& r = recorder();
  r.Activate();
  for (int i = 0; i < 30'000; ++i) {
    r.Add(MakeRecord(r.Intern("a kernel with a long name, as templates make them " + std::to_string(i)), 1));
  }
  const TraceContent t = FinishedTrace();
  EXPECT_EQ(t.Launches(), 30'000u);
  EXPECT_GT(t.chunks.size(), 4u);
  for (const v1::Chunk& chunk : t.chunks) {
    // What is added up is not divided: a thirtieth of a megabyte here for each thousand keys.
    EXPECT_LT(chunk.ByteSizeLong(), chunk.stats_size() == 0 ? 512u << 10 : 2u << 20);
  }
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

// --- Diagnostics

TEST_F(TraceRecorderTest, DiagnosticsAreSaidOnceAndKept) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    Recorder& r = recorder();
    r.ReportDiagnostic(Severity::kInfo, "early", "held until it is a training process");
    r.Activate();
    r.ReportDiagnostic(Severity::kWarning, "w", "something\nis odd", "mend it");
    r.ReportDiagnostic(Severity::kWarning, "w", "again");
    r.CountDrop("things", 2);
    r.CountDrop("things");
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0));
  EXPECT_EQ(child.err,
            "rfinject: held until it is a training process\n"
            "rfinject: warning: something is odd (mend it)\n");
  const TraceContent t = Trace();
  EXPECT_EQ(t.error, "");
  ASSERT_THAT(t.diagnostics, SizeIs(2));
  EXPECT_EQ(t.diagnostics[1].severity(), v1::SEVERITY_WARNING);
  EXPECT_EQ(t.diagnostics[1].text(), "something\nis odd");
  EXPECT_EQ(t.diagnostics[1].remedy(), "mend it");
  EXPECT_EQ(t.drops.at("things"), 3u);
}

TEST_F(TraceRecorderTest, AnIdleProcessSaysNothing) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    recorder().ReportDiagnostic(Severity::kError, "e", "nobody asked");
    recorder().Finish("exit");
  });
  EXPECT_EQ(child.err, "");
}

TEST_F(TraceRecorderTest, QuietIsQuiet) {
  settings().verbosity = -1;
  const ChildResult child = InChild([&] {
    recorder().Activate();
    recorder().ReportDiagnostic(Severity::kError, "e", "x");
    recorder().Finish("exit");
  });
  EXPECT_EQ(child.err, "");
  EXPECT_NE(Trace().FindDiagnostic("e"), nullptr);
}

// A closed pipe at the other end of stderr must not end the program.
TEST_F(TraceRecorderTest, ABrokenStderrIsSurvived) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    int broken[2];
    ASSERT_EQ(pipe(broken), 0);
    close(broken[0]);
    dup2(broken[1], STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    recorder().Activate();
    recorder().ReportDiagnostic(Severity::kError, "e", "nobody reads this");
    recorder().Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.status;
  EXPECT_TRUE(Trace().has_end);
}

// --- Life

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

// What another thread recorded before Finish is in the trace, though that thread still lives and its ring is its own.
TEST_F(TraceRecorderTest, FinishDrainsOtherThreadsRings) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  std::atomic<int> phase{0};
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) r.Record(MakeRecord(kernel, 1));
    phase.store(1);
    while (phase.load() != 2) std::this_thread::yield();
  });
  while (phase.load() != 1) std::this_thread::yield();
  EXPECT_EQ(FinishedTrace().Launches(), 100u);
  phase.store(2);
  other.join();
}

// A thread-local destructor of another library may launch after ours has given the ring back.
struct RecordsAtThreadExit {
  Recorder* recorder = nullptr;
  uint32_t kernel = 0;
  ~RecordsAtThreadExit() {
    if (recorder != nullptr) recorder->Record(MakeRecord(kernel, 1));
  }
};
thread_local RecordsAtThreadExit t_late;

TEST_F(TraceRecorderTest, RecordingFromThreadExitIsKept) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  std::thread([&] {
    t_late.recorder = &r;  // constructed before the ring is taken, so destroyed after it was given back
    t_late.kernel = kernel;
    r.Record(MakeRecord(kernel, 1));
  }).join();
  EXPECT_EQ(FinishedTrace().Launches(), 2u);
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

TEST_F(TraceRecorderTest, AnOutputThatCannotBeMadeIsSaidOnce) {
  settings().verbosity = 0;
  settings().output = folder_.path() + "/file/t.rfx";
  close(open((folder_.path() + "/file").c_str(), O_CREAT | O_WRONLY, 0600));
  const ChildResult child = InChild([&] {
    recorder().Activate();
    recorder().Activate();
    EXPECT_FALSE(recorder().active());
    recorder().Record(MakeRecord(recorder().Intern("k"), 1));
    recorder().Finish("exit");
  });
  EXPECT_TRUE(child.exited(0));
  EXPECT_THAT(child.err, AllOf(StartsWith("rfinject: error: nothing is recorded: "), HasSubstr("Not a directory"),
                               EndsWith("\n")));
  EXPECT_EQ(std::count(child.err.begin(), child.err.end(), '\n'), 1);
}

// Where the trace goes nobody takes anything, and the writer hangs in write(2): the program can exit all the same.
TEST_F(TraceRecorderTest, FinishIsBoundedWhenTheDiskHangs) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto* r = new TraceRecorder(settings());
  r->ActivateInto(ends[0]);
  ASSERT_TRUE(r->active());
  const std::string name(10'000, 'x');
  for (int i = 0; i < 300; ++i) r->Intern(name + std::to_string(i));  // 3 MB: more than the socket takes
  r->Finish("exit");                                                  // the test's time limit is the assertion
  EXPECT_FALSE(r->active());
  r->Finish("exit");
  close(ends[1]);  // the write fails now, and the writer ends
}

// --- The caller as the writer

// Where the race detector has a thread of its own no program has only one.
#if !defined(__SANITIZE_THREAD__)
class CallerWritesTest : public TraceRecorderTest {
 protected:
  // Of a process that estimates, which has one thread here.
  TraceRecorder& Estimating() {
    auto* r = new TraceRecorder(settings());
    RunFacts facts;
    facts.source = SourceKind::kEstimated;
    r->UpdateFacts(facts);
    return *r;
  }
};

TEST_F(CallerWritesTest, AProgramOfOneThreadStaysOne) {
  const ChildResult child = InChild([&] {
    TraceRecorder& r = Estimating();
    r.Activate();
    r.Record(MakeRecord(r.Intern("k"), 1));
    r.EndStep(2);
    EXPECT_EQ(ThreadsOfProcess(), 1);
    r.Finish("exit");
    r.Finish("exit");
    EXPECT_EQ(ThreadsOfProcess(), 1);
  });
  EXPECT_TRUE(child.exited(0)) << child.err;
  const TraceContent t = Trace();
  EXPECT_EQ(t.error, "");
  EXPECT_TRUE(t.has_end);
  EXPECT_EQ(t.Launches(), 1u);
  EXPECT_THAT(t.steps, SizeIs(1));
}

TEST_F(CallerWritesTest, AMeasuredGpuHasAThread) {
  const ChildResult child = InChild([&] {
    auto* r = new TraceRecorder(settings());
    RunFacts facts;
    facts.source = SourceKind::kMeasured;
    r->UpdateFacts(facts);
    r->Activate();
    EXPECT_EQ(ThreadsOfProcess(), 2);
    r->Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.err;
}

TEST_F(CallerWritesTest, WritesWhileTheProgramRuns) {
  InChild(
      [&] {
        TraceRecorder& r = Estimating();
        r.Activate();
        const uint32_t kernel = r.Intern("k");
        for (;;) {
          r.Record(MakeRecord(kernel, 1));
          r.MayWrite();
        }
      },
      [&](pid_t pid) {
        WaitForTrace(settings().output, [](const TraceContent& t) { return t.Launches() > 0; });
        kill(pid, SIGKILL);
      });
  const TraceContent t = Trace();
  EXPECT_EQ(t.error, "");
  EXPECT_FALSE(t.has_end);
}

// Many times what a ring holds, within one interval of writing. On a busy machine turns take so long that a thread
// takes over, which the caller may outrun; until then nothing is lost.
TEST_F(CallerWritesTest, AHalfFullRingIsDrained) {
  constexpr uint64_t kLaunches = 300'000;
  const ChildResult child = InChild([&] {
    TraceRecorder& r = Estimating();
    r.Activate();
    const uint32_t kernel = r.Intern("k");
    uint64_t recorded = 0;
    for (; recorded < kLaunches && ThreadsOfProcess() == 1; recorded += 1000) {
      for (int i = 0; i < 1000; ++i) {
        r.Record(MakeRecord(kernel, 1));
        r.MayWrite();
      }
    }
    r.Intern("recorded " + std::to_string(recorded));
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.err;
  const TraceContent t = Trace();
  std::vector<std::string> names;
  for (const auto& [id, name] : t.names) names.push_back(name);
  EXPECT_THAT(names, ::testing::Contains("recorded " + std::to_string(t.Launches())));
  EXPECT_THAT(t.drops, IsEmpty());
}

// Launches of a step that runs wait in the ring for its end, unless they would fill it.
TEST_F(CallerWritesTest, StepsThatDoNotFitIntoTheRingAreWhole) {
  constexpr uint64_t kSteps = 4, kLaunches = LaunchRing::kUnits / 4;  // of five units
  const ChildResult child = InChild([&] {
    TraceRecorder& r = Estimating();
    r.Activate();
    const uint32_t kernel = r.Intern("k");
    const auto alone = [] { return ThreadsOfProcess() == 1; };  // a thread could be outrun
    for (uint64_t step = 0; step <= kSteps && alone(); ++step) {
      uint64_t recorded = 0;
      for (; recorded < kLaunches && (recorded % 1024 != 0 || alone()); ++recorded) {
        r.Record(MakeRecordOf(Phase::kForward, kernel));
        r.MayWrite();
      }
      if (step < kSteps && recorded == kLaunches) r.EndStep(1);
    }
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.err;
  const TraceContent t = Trace();
  EXPECT_THAT(t.drops, IsEmpty());
  EXPECT_EQ(t.Launches(), t.MeasuredSteps() * kLaunches);
}

TEST_F(CallerWritesTest, AThreadTakesOverWhenTheProgramHasThreads) {
  const ChildResult child = InChild([&] {
    TraceRecorder& r = Estimating();
    r.Activate();
    const uint32_t kernel = r.Intern("k");
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> recorded{0};
    const auto work = [&] {
      while (!stop.load()) {
        r.Record(MakeRecord(kernel, 1));
        recorded.fetch_add(1);
        r.MayWrite();
        if (ThreadsOfProcess() == 3) stop.store(true);
      }
    };
    std::thread other(work);
    work();
    other.join();
    r.Intern("recorded " + std::to_string(recorded.load()));
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.err;
  const TraceContent t = Trace();
  EXPECT_EQ(t.error, "");
  EXPECT_TRUE(t.has_end);
  std::vector<std::string> names;
  for (const auto& [id, name] : t.names) names.push_back(name);
  EXPECT_THAT(names, ::testing::Contains("recorded " + std::to_string(t.Launches())));
}

TraceRecorder* g_ends_in_handler = nullptr;
void FinishInHandler(int) {
  g_ends_in_handler->Finish("signal");
  _exit(0);
}

// As Python's SIGTERM handlers do that call sys.exit, but at any instruction.
TEST_F(CallerWritesTest, AHandlerThatEndsTheProgramLeavesAWholeTrace) {
  for (int round = 0; round < 20; ++round) {
    settings().output = folder_.path() + "/" + std::to_string(round) + ".rfx";
    const ChildResult child = InChild([&, round] {
      g_ends_in_handler = &Estimating();
      g_ends_in_handler->Activate();
      const uint32_t kernel = g_ends_in_handler->Intern("k");
      signal(SIGALRM, &FinishInHandler);
      const itimerval soon{{}, {0, 1000 + round * 137}};
      setitimer(ITIMER_REAL, &soon, nullptr);
      // Enough in each ring that a turn is nearly always going on.
      for (;;) {
        g_ends_in_handler->Record(MakeRecord(kernel, 1));
        g_ends_in_handler->MayWrite();
      }
    });
    EXPECT_TRUE(child.exited(0)) << child.err;
    const TraceContent t = ReadTrace(settings().output);
    EXPECT_EQ(t.error, "");
    EXPECT_TRUE(t.has_end);
  }
}

TEST_F(CallerWritesTest, AForkedChildWritesATraceOfItsOwn) {
  settings().output = folder_.path() + "/";
  const ChildResult parent = InChild([&] {
    TraceRecorder& r = Estimating();
    r.Activate();
    const uint32_t kernel = r.Intern("k");
    r.Record(MakeRecord(kernel, 1));
    const ChildResult child = InChild([&] {
      EXPECT_FALSE(r.active());
      r.Activate();
      r.Record(MakeRecord(kernel, 1));
      r.Record(MakeRecord(kernel, 1));
      EXPECT_EQ(ThreadsOfProcess(), 1);
      r.Finish("exit");
    });
    EXPECT_TRUE(child.exited(0)) << child.err;
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  std::vector<uint64_t> launches;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const TraceContent t = ReadTrace(entry.path());
    EXPECT_TRUE(t.has_end);
    launches.push_back(t.Launches());
  }
  EXPECT_THAT(launches, ::testing::UnorderedElementsAre(1u, 2u));
}
#endif

// --- Fork

TEST_F(TraceRecorderTest, AForkedChildIsIdleAndLeavesTheParentsTraceAlone) {
  settings().output = folder_.path() + "/";
  const ChildResult parent = InChild([&] {
    Recorder& r = recorder();
    r.Activate();
    const uint32_t kernel = r.Intern("inherited");
    r.Record(MakeRecord(kernel, 1));
    r.EndStep(4);
    const ChildResult child = InChild([&] {
      EXPECT_FALSE(r.active());
      EXPECT_EQ(r.CurrentStep(), 0u);
      r.Record(MakeRecord(kernel, 1));
      r.Finish("exit");
    });
    EXPECT_TRUE(child.exited(0));
    r.Record(MakeRecord(kernel, 1));
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  const std::vector<std::string> files = folder_.List();
  ASSERT_THAT(files, SizeIs(1));
  const TraceContent t = Trace(files[0]);
  EXPECT_EQ(t.error, "");
  EXPECT_TRUE(t.has_end);
  EXPECT_EQ(t.Launches(), 2u);
}

TEST_F(TraceRecorderTest, AForkedChildCanBecomeATraceOfItsOwn) {
  settings().output = folder_.path() + "/%p.rfx";
  int to_test[2];
  ASSERT_EQ(pipe(to_test), 0);
  const ChildResult parent = InChild([&] {
    Recorder& r = recorder();
    const uint32_t kernel = r.Intern("inherited");
    const uint32_t model =
        r.DefineModel({.class_name = "M", .parameters = 1, .parameter_bytes = 4, .trainable_parameters = 1});
    const uint32_t layer = r.DefineLayer({.model = model,
                                          .path = "fc",
                                          .class_name = "Linear",
                                          .parameters = 1,
                                          .parameter_bytes = 4,
                                          .training = true});
    r.ReportDiagnostic(Severity::kInfo, "known", "still true in the child");
    r.Activate();
    for (int i = 0; i < 10; ++i) r.Record(MakeRecord(kernel, 1));
    InChild([&] {
      const pid_t pid = getpid();
      EXPECT_EQ(write(to_test[1], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
      LaunchRecord record = MakeRecord(kernel, 7);
      record.identity.site.layer = layer;
      record.identity.site.op = r.Intern("new in the child");
      r.Record(record);
      r.Activate();
      EXPECT_TRUE(r.active());
      r.Record(record);
      r.EndStep(2);
      r.Finish("exit");
    });
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  pid_t child = 0;
  ASSERT_EQ(read(to_test[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  close(to_test[0]);
  close(to_test[1]);
  ASSERT_THAT(folder_.List(), SizeIs(2));
  const TraceContent t = Trace(std::to_string(child) + ".rfx");
  EXPECT_EQ(t.error, "");
  EXPECT_TRUE(t.has_end);
  EXPECT_EQ(t.run.process().pid(), static_cast<uint32_t>(child));
  EXPECT_EQ(t.Launches(), 2u);
  EXPECT_TRUE(t.Total("rf.time").sum == 14);
  ASSERT_THAT(t.keys, SizeIs(1));
  EXPECT_EQ(t.names.at(t.keys.begin()->second.key.kernel()), "inherited");
  EXPECT_EQ(t.layers.at(t.keys.begin()->second.key.layer()).path(), "fc");
  EXPECT_NE(t.FindDiagnostic("known"), nullptr);
  ASSERT_THAT(t.steps, SizeIs(1));
  EXPECT_EQ(t.steps[0].index(), 0u);
}

// ASan's allocator (GCC 12) does not mind fork(): a lock that another thread holds then stays held in the child,
// whose next allocation waits for ever. The C library's does.
#if !defined(__SANITIZE_ADDRESS__)
// fork() while other threads record and define: the child must neither hang nor see half a definition.
TEST_F(TraceRecorderTest, ForkingWhileOtherThreadsAreBusy) {
  settings().output = folder_.path() + "/%p.rfx";
  const ChildResult parent = InChild([&] {
    Recorder& r = recorder();
    r.Activate();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; !stop.load(); ++i) {
          const uint32_t name = r.Intern(std::to_string(t) + "/" + std::to_string(i % 5000));
          r.Record(MakeRecord(name, i));
          r.Add(MakeRecord(name, i));
          r.CountDrop("d" + std::to_string(i % 7));
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      const ChildResult child = InChild([&] {
        const uint32_t name = r.Intern("in the child " + std::to_string(i));
        EXPECT_NE(name, 0u);
        r.Record(MakeRecord(name, 1));
        if (i % 2 == 0) r.Activate();
        r.Finish("exit");
      });
      EXPECT_TRUE(child.exited(0)) << child.status << child.err;
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  ASSERT_THAT(folder_.List(), SizeIs(11));
  for (const std::string& file : folder_.List()) {
    const TraceContent t = Trace(file);
    EXPECT_EQ(t.error, "") << file;
    EXPECT_TRUE(t.has_end) << file;
  }
}
#endif

// A vfork child runs in our memory: when it calls _exit after a failed exec, Finish must not end the parent's trace.
TEST_F(TraceRecorderTest, AVforkChildDoesNotFinishItsParent) {
  Recorder& r = recorder();
  r.Activate();
  Recorder* volatile shared = &r;
  // NOLINTNEXTLINE(bugprone-unsafe-functions): what programs do is what is tested.
  const pid_t child = vfork();
  if (child == 0) {
    shared->Finish("_exit");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(r.active());
  r.Record(MakeRecord(r.Intern("k"), 1));
  EXPECT_EQ(FinishedTrace().Launches(), 1u);
}

// --- Violence

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

// A disk quota: SIGXFSZ would kill the program, and half a frame would be damage.
TEST_F(TraceRecorderTest, AFullDiskStopsTheTraceAndNothingElse) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    signal(SIGXFSZ, SIG_DFL);
    Recorder& r = recorder();
    r.Activate();
    const rlimit limit{100'000, 100'000};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 20'000; ++i) r.Add(MakeRecord(r.Intern("a name that takes space " + std::to_string(i)), 1));
    r.Finish("exit");
    EXPECT_FALSE(r.active());
    r.Record(MakeRecord(1, 1));
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.status << child.err;
  EXPECT_THAT(child.err, AllOf(StartsWith("rfinject: error: nothing is recorded any more: "),
                               HasSubstr("File too large"), HasSubstr("the program goes on")));
  EXPECT_EQ(std::count(child.err.begin(), child.err.end(), '\n'), 1);
  const TraceContent t = Trace();
  EXPECT_EQ(t.error, "");
  EXPECT_EQ(t.trailing_bytes, 0u) << "the half frame was cut off";
}

// The file's header is written on the thread that activates, where the signal would reach the program.
TEST_F(TraceRecorderTest, AQuotaOfNothing) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    recorder().Activate();
    EXPECT_FALSE(recorder().active());
  });
  EXPECT_TRUE(child.exited(0)) << child.status << child.err;
  EXPECT_THAT(child.err, HasSubstr("nothing is recorded: "));
}

TEST_F(TraceRecorderTest, ADeviceThatTakesNothing) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    auto* r = new TraceRecorder(settings());
    r->ActivateInto(open("/dev/full", O_WRONLY | O_CLOEXEC));
    EXPECT_FALSE(r->active());
    r->Record(MakeRecord(1, 1));
    r->Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.status;
  EXPECT_THAT(child.err, HasSubstr("No space left on device"));
}

// Daemons close every descriptor, and the next file that the program opens may get our number.
TEST_F(TraceRecorderTest, AStolenDescriptorIsNotWrittenTo) {
  settings().verbosity = 0;
  const std::string precious = folder_.path() + "/precious";
  const ChildResult child = InChild([&] {
    Recorder& r = recorder();
    r.Activate();
    // Wait for the first chunk, so that the writer sleeps while the descriptors are exchanged.
    EXPECT_TRUE(WaitForTrace(settings().output, [](const TraceContent&) { return true; }));
    const int file = open(precious.c_str(), O_CREAT | O_RDWR, 0600);
    int replaced = 0;
    for (int fd = 3; fd < 1024; ++fd) {
      char link[4096];
      const ssize_t n = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), link, sizeof link);
      if (n > 0 && std::string(link, static_cast<size_t>(n)) == settings().output) {
        dup2(file, fd);
        ++replaced;
      }
    }
    EXPECT_EQ(replaced, 1);
    r.Record(MakeRecord(r.Intern("k"), 1));
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.status << child.err;
  EXPECT_THAT(child.err, HasSubstr("the program closed the trace's file descriptor"));
  EXPECT_EQ(::rfinject::testing::ReadFile(precious), "");
}

// A handler of the program that records and forks nothing may come at any time, also inside Record.
Recorder* g_in_handler = nullptr;
uint32_t g_handler_kernel = 0;
void RecordInHandler(int) { g_in_handler->Record(MakeRecord(g_handler_kernel, 1)); }

TEST_F(TraceRecorderTest, ASignalHandlerMayRecord) {
  Recorder& r = recorder();
  r.Activate();
  g_in_handler = &r;
  g_handler_kernel = r.Intern("handler");
  const uint32_t kernel = r.Intern("k");
  r.Record(MakeRecord(kernel, 1));
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = &RecordInHandler;
  sigaction(SIGUSR1, &action, &before);
  std::atomic<bool> stop{false};
  const pthread_t self = pthread_self();
  std::thread sender([&] {
    for (int i = 0; i < 200; ++i) pthread_kill(self, SIGUSR1);
    stop.store(true);
  });
  uint64_t recorded = 1;
  while (!stop.load()) {
    r.Record(MakeRecord(kernel, 1));
    if (++recorded % 4096 == 0) usleep(100);
  }
  sender.join();
  sigaction(SIGUSR1, &before, nullptr);
  const TraceContent t = FinishedTrace();
  uint64_t own = 0;
  for (const auto& [id, key] : t.keys) {
    EXPECT_THAT(t.names.at(key.key.kernel()), ::testing::AnyOf("k", "handler"));
    if (t.names.at(key.key.kernel()) == "k") own += key.launches;
  }
  const uint64_t drops = t.drops.empty() ? 0 : t.drops.begin()->second;
  EXPECT_LE(own, recorded);
  EXPECT_GE(own + drops, recorded);
}

}  // namespace
}  // namespace rfinject
