// File: launch_log.h
//
// LaunchLog holds what was launched while kernels are timed, in order, each with its correlation id and its step.
// Launch callbacks fill it, on the program's threads, and only then, so that they may take a lock here. The thread
// that ends the steps opens and closes it.
#ifndef RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_
#define RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/cupti/lock_waits.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class LaunchLog {
 public:
  // In `graph`: what was launched is no graph, or a graph without a number of the recorder's (captured_graphs.h).
  static constexpr uint32_t kNoGraph = 0, kUnknownGraph = UINT32_MAX;
  struct Entry {
    uint32_t key = 0;
    uint32_t correlation_id = 0;
    uint32_t graph = kNoGraph;
    uint64_t step = 0;
  };

  bool open() const noexcept { return open_.load(std::memory_order_acquire); }

  // Takes launches from now on, as those of `step`, with room for `expected` of them.
  void Open(uint64_t step, size_t expected) noexcept {
    if (!lock_.LockFor(kStepLockWaitNs)) return;
    const HeldLock held(lock_);
    entries_.clear();
    try {
      entries_.reserve(expected);
    } catch (...) {  // grows as needed, then
    }
    step_.store(step, std::memory_order_relaxed);
    open_.store(true, std::memory_order_release);
  }
  // What is launched from now on belongs to `step`.
  void BeginStep(uint64_t step) noexcept { step_.store(step, std::memory_order_relaxed); }
  void Close(std::vector<Entry>* entries) noexcept {
    open_.store(false, std::memory_order_release);
    if (!lock_.LockFor(kStepLockWaitNs)) return;
    const HeldLock held(lock_);
    entries->swap(entries_);
    entries_.clear();
  }

  // A launch begins on the calling thread. It may wait, for a bounded time, for a launch on another thread.
  void Add(uint32_t key, uint32_t correlation_id, uint32_t graph) noexcept {
    if (!lock_.LockFor(kLaunchLockWaitNs)) return;
    const HeldLock held(lock_);
    if (!open()) return;
    try {
      entries_.push_back({key, correlation_id, graph, step_.load(std::memory_order_relaxed)});
    } catch (...) {
      // The launch has no time, then.
    }
  }

  void ResetLockInForkedChild() noexcept {
    lock_.ResetInForkedChild();
    open_.store(false);
  }

 private:
  std::atomic<bool> open_{false};
  std::atomic<uint64_t> step_{0};
  Mutex lock_;
  std::vector<Entry> entries_ RFINJECT_GUARDED_BY(lock_);
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_
