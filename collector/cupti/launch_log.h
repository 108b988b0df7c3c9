// File: launch_log.h
//
// LaunchLog holds what was launched in a step with counters or times, in order, each with its correlation id. Launch
// callbacks fill it, on the program's threads, and only in such steps, so that they may take a lock here. The thread
// that ends the steps opens and closes it.
//
// While kernels are counted one by one, the lock is held from a launch's entry to its exit: the driver then runs
// launches one at a time, and the k-th entry is the k-th range. (Counting serialises kernels anyway.) While they are
// counted in ranges of several launches, the lock is held in the same way, because a range must be closed and the
// next one opened between two launches; but no launch waits for its kernel then.
#ifndef RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_
#define RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "collector/sync.h"

namespace rfinject::cupti {

class LaunchLog {
 public:
  struct Entry {
    uint32_t key;
    uint32_t correlation_id;
    uint32_t range;  // of kRanges: its ordinal
    uint64_t owner;
  };
  enum class Mode : uint32_t { kOff, kCounting, kTiming, kRanges };
  // Opens a range and closes the one before it; returns false when that failed. Enter calls it with the log's lock
  // held, on a thread that is about to launch.
  using NextRange = bool (*)(void* user, size_t ordinal) noexcept;

  Mode mode() const noexcept { return mode_.load(std::memory_order_acquire); }
  const void* context() const noexcept { return context_.load(std::memory_order_acquire); }
  // Launches logged since the process began, in any log: what the watchdog watches.
  static uint64_t progress() noexcept { return progress_.load(std::memory_order_relaxed); }

  // Opens the log for launches in `context` and reserves room for `expected` entries. If `context` is null, the log
  // takes any launch, and the caller chooses which. `next_range` is for kRanges.
  void Open(Mode mode, const void* context, size_t expected, NextRange next_range = nullptr,
            void* user = nullptr) noexcept;
  // Closes the log. Returns false when something happened that the entries do not show: `entries` are then worth
  // nothing.
  bool Close(std::vector<Entry>* entries) noexcept;

  // A launch begins and ends on the calling thread. Enter may wait, for a bounded time, for a launch on another
  // thread. In kRanges a launch whose `owner` is not the last one's begins a range. `failed`: the driver refused it,
  // so nothing ran.
  void Enter(uint32_t key, uint32_t correlation_id, uint64_t owner = 0) noexcept;
  static void Exit(bool failed) noexcept;

  // Ranges begun since Open. For the thread that ends the steps, after Close.
  size_t ranges() const noexcept { return ranges_.load(std::memory_order_acquire); }

  // Tells that something was launched that cannot be logged as one entry.
  void Spoil() noexcept { spoiled_.store(true, std::memory_order_relaxed); }

  void ResetLockInForkedChild() noexcept {
    lock_.ResetInForkedChild();
    mode_.store(Mode::kOff);
  }

 private:
  std::atomic<Mode> mode_{Mode::kOff};
  std::atomic<const void*> context_{nullptr};
  std::atomic<bool> spoiled_{false};
  static inline std::atomic<uint64_t> progress_{0};
  // Logs a launch. Returns true when the lock is to be kept until its exit.
  bool AddEntry(uint32_t key, uint32_t correlation_id, uint64_t owner) noexcept RFINJECT_REQUIRES(lock_);

  Mutex lock_;
  std::vector<Entry> entries_ RFINJECT_GUARDED_BY(lock_);
  NextRange next_range_ RFINJECT_GUARDED_BY(lock_) = nullptr;
  void* next_range_user_ RFINJECT_GUARDED_BY(lock_) = nullptr;
  uint64_t last_owner_ RFINJECT_GUARDED_BY(lock_) = 0;
  std::atomic<size_t> ranges_{0};  // written with lock_ held
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_
