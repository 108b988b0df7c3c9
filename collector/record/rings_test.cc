#include "collector/record/rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::TraceContent;
using ::testing::SizeIs;

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
  Recorder& r = recorder();  // idle: the writer does not drain
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

TEST_F(TraceRecorderTest, NothingIsLostOfWhatWaitsForRoom) {
  Recorder& r = recorder();
  r.Activate();
  const uint32_t kernel = r.Intern("k");
  constexpr uint64_t kRecords = 300'000;  // a dozen rings
  for (uint64_t i = 0; i < kRecords; ++i) {
    r.Record(MakeRecord(kernel, 1));
    if (i % 100 == 99) r.WaitForRoom();
  }
  const TraceContent t = FinishedTrace();
  EXPECT_TRUE(t.drops.empty());
  EXPECT_EQ(t.Launches(), kRecords);
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
