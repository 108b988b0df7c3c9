// File: launch_log.h
//
// What was launched in a step with counters or times: in order, with the launch's correlation id. Filled by the
// launch callback only in such steps, so a lock is allowed here. While counting, the lock is held from a launch's
// entry to its exit: the driver then runs launches one at a time, and the k-th entry is the k-th range. (Counting
// serialises kernels anyway.)
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
  };
  enum class Mode : uint32_t { kOff, kCounting, kTiming };

  Mode mode() const noexcept { return mode_.load(std::memory_order_acquire); }
  const void* context() const noexcept { return context_.load(std::memory_order_acquire); }
  // Launches logged since the process began: what the watchdog watches.
  uint64_t progress() const noexcept { return progress_.load(std::memory_order_relaxed); }

  // Opens the log for launches in `context`; room for `expected` entries is reserved.
  void Open(Mode mode, const void* context, size_t expected) noexcept;
  // Closes it. False when something happened that the entries do not show: `entries` are then worth nothing.
  bool Close(std::vector<Entry>* entries) noexcept;

  // A launch begins and ends on the calling thread. Enter may wait, for a bounded time, for a launch on another
  // thread. `failed`: the driver refused it, so nothing ran.
  void Enter(uint32_t key, uint32_t correlation_id) noexcept;
  void Exit(bool failed) noexcept;

  // Something was launched that cannot be logged as one entry.
  void Spoil() noexcept { spoiled_.store(true, std::memory_order_relaxed); }

  void ResetLockInForkedChild() noexcept {
    mutex_.ResetInForkedChild();
    mode_.store(Mode::kOff);
  }

 private:
  std::atomic<Mode> mode_{Mode::kOff};
  std::atomic<const void*> context_{nullptr};
  std::atomic<bool> spoiled_{false};
  std::atomic<uint64_t> progress_{0};
  Mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_LOG_H_
