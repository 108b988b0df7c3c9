// File: state.h
//
// RecorderState is what the recording threads and the writer share: whether this process records, how far the program
// has come, and, under one lock, the definitions and what waits to be written.
//
// The lock is held for microseconds and never while writing, so that every cold call may wait for it. No wait is
// without bound: a thread that held it may not exist any more (a raw clone), or be the one that waits (a signal
// handler).
#ifndef RFINJECT_COLLECTOR_RECORD_STATE_H_
#define RFINJECT_COLLECTOR_RECORD_STATE_H_

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "collector/definitions.h"
#include "collector/record/frame_builder.h"
#include "collector/record/pending.h"
#include "collector/record/progress.h"
#include "collector/record/window.h"
#include "collector/settings.h"
#include "collector/sync.h"

namespace rfinject {

inline constexpr int64_t kLockWaitNs = 5'000'000'000;    // of cold calls for a lock
inline constexpr int64_t kWriterWaitNs = 2'000'000'000;  // of the writer for the state's lock

// What belongs to one trace. A forked child lets go of its parent's and leaks it.
struct PendingTrace {
  PendingTrace(Definitions* definitions, const Window* window, int64_t created_unix_ns)
      : pending(definitions, window), frames(definitions, &pending, created_unix_ns) {}
  Pending pending;
  FrameBuilder frames;
};

struct RecorderState {
  enum class Mode : uint8_t { kIdle, kActive, kFinished, kDisabled };

  explicit RecorderState(const Settings& settings) noexcept;

  bool active() const noexcept { return mode.load(std::memory_order_acquire) == Mode::kActive; }
  bool Is(Mode other) const noexcept { return mode.load(std::memory_order_relaxed) == other; }
  // Ends the recording; returns what the mode was before.
  Mode Mute(Mode after) noexcept {
    window.Close();
    return mode.exchange(after, std::memory_order_acq_rel);
  }
  // False in a vfork child, which shares our memory, and in a child of a raw clone, for which no fork handler ran.
  bool IsOurProcess() const noexcept { return getpid() == pid.load(std::memory_order_relaxed); }
  uint64_t MaxBytes() const noexcept { return std::min(settings.max_size_mb, UINT64_MAX / 1'000'000) * 1'000'000; }

  // Begins another recording, with what ids stand for and nothing else. Called when the former one has ended and its
  // writer is gone. Returns false where the lock cannot be had.
  bool BeginAgain() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;

  // Around fork() the lock is taken in one function and given back in another, and the child has only one thread: the
  // analysis of locks cannot follow that. The lock makes the child's copy whole.
  void BeforeFork() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInParent() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;
  void ResetInForkedChild() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;

  const Settings& settings;
  int64_t created_unix_ns;
  Window window;
  Progress progress;
  // Whichever thread activates, finishes or disables the recorder writes it; every thread reads it. Exchanges are
  // acq_rel: the writer that sees the end of the recording also sees the reason for it, written before.
  std::atomic<Mode> mode{Mode::kIdle};
  // The process that records. The constructor and a forked child's only thread write it, every thread reads it;
  // relaxed, because a child begins with one thread.
  std::atomic<pid_t> pid;

  Mutex lock;
  // Set before there are threads; a name in it is also looked up without the lock (NameTable::Find). Null where
  // memory ran out, and in a child whose parent was changing it.
  Definitions* definitions RFINJECT_PT_GUARDED_BY(lock) = nullptr;
  // Made by the first StateGuard.
  PendingTrace* trace RFINJECT_GUARDED_BY(lock) RFINJECT_PT_GUARDED_BY(lock) = nullptr;

 private:
  void FollowSettings() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;

  // The thread that holds the lock across fork(), named by the address of its ThreadRing, which is the same in the
  // child. Several threads may fork at once: the one that has the lock writes this, and each compares it with itself,
  // so that relaxed suffices.
  std::atomic<const void*> fork_holder_{nullptr};
};

// Holds the state's lock; false if it could not be had, or if there is nothing that it could guard. (Clang's analysis
// takes the lock for always held: the author must see to it that the answer is looked at.)
class RFINJECT_SCOPED_CAPABILITY StateGuard {
 public:
  explicit StateGuard(RecorderState* state, int64_t wait_ns = kLockWaitNs) noexcept
      RFINJECT_ACQUIRE(state->lock) RFINJECT_NO_THREAD_SAFETY_ANALYSIS;
  ~StateGuard() RFINJECT_RELEASE() RFINJECT_NO_THREAD_SAFETY_ANALYSIS {
    if (held_) state_->lock.Unlock();
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;
  explicit operator bool() const noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS {
    return held_ && state_->trace != nullptr;
  }

 private:
  RecorderState* const state_;
  bool held_ = false;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_STATE_H_
