#include "collector/record/writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "collector/last_words.h"
#include "collector/process_facts.h"
#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::ReadTrace;
using ::rfinject::testing::TraceContent;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

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

// What the trace is written to takes nothing, and the writer hangs in write(2): the program can exit all the same.
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

// As where a program is detached from while one of its threads is at its first launch. The trace goes where it hangs
// until the recorder has finished.
TEST_F(TraceRecorderTest, WhatFinishesWhileTheTraceIsOpenedIsWhole) {
  const ChildResult child = InChild([&] {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    size_t filled = 0;
    for (const char byte = 0; write(ends[1], &byte, 1) == 1;) ++filled;
    ASSERT_EQ(fcntl(ends[1], F_SETFL, 0), 0);
    auto* r = new TraceRecorder(settings());
    RunFacts facts;
    facts.tier = Tier::kELibtorch;
    r->UpdateFacts(facts);
    g_trace_begun.store(false);
    std::thread launching([&] { r->ActivateInto(ends[1]); });
    while (!g_trace_begun.load()) std::this_thread::yield();
    r->Finish("detached");
    ASSERT_EQ(fcntl(ends[0], F_SETFL, 0), 0);
    for (char byte; filled > 0; --filled) ASSERT_EQ(read(ends[0], &byte, 1), 1);
    launching.join();
    std::string bytes(1 << 16, 0);
    const ssize_t size = read(ends[0], bytes.data(), bytes.size());
    ASSERT_GT(size, 0);
    const TraceContent t = ParseTrace(bytes.substr(0, static_cast<size_t>(size)));
    EXPECT_EQ(t.error, "");
    EXPECT_TRUE(t.has_end);
    EXPECT_EQ(t.end.reason(), "detached");
    EXPECT_EQ(t.run.tier(), v1::TIER_E_LIBTORCH);
  });
  EXPECT_TRUE(child.exited(0)) << child.err;
}

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

}  // namespace
}  // namespace rfinject
