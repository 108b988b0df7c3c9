// File: sync.h
//
// A mutex and an event on Linux futexes. The library needs three things that pthread's do not give on every glibc it
// runs on: waiting with a bound on the monotonic clock, resetting in a forked child whatever state the parent's
// threads left, and no symbol that moved between libpthread and libc (glibc 2.34).
//
// Every wait has a bound, because a thread that holds a lock may not exist any more (a raw clone) or may be the one
// that waits (a signal handler). So taking a lock may fail, and the caller must then do without. It is written in
// this way, which clang's -Wthread-safety can follow (thread_annotations.h):
//
//   if (!lock_.LockFor(kStateWaitNs)) return;
//   const HeldLock held(lock_);  // given back at the end of the block
#ifndef RFINJECT_COLLECTOR_SYNC_H_
#define RFINJECT_COLLECTOR_SYNC_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "collector/thread_annotations.h"

namespace rfinject {

// The time of a clock, in ns. MonotonicNs never goes back; UnixNs counts from 1970 and may be set.
inline int64_t ClockNs(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
inline int64_t MonotonicNs() noexcept { return ClockNs(CLOCK_MONOTONIC); }
inline int64_t UnixNs() noexcept { return ClockNs(CLOCK_REALTIME); }

namespace internal {
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
inline void FutexWait(std::atomic<uint32_t>* word, uint32_t expected, int64_t timeout_ns) noexcept {
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}
inline void FutexWake(std::atomic<uint32_t>* word, int count) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}
}  // namespace internal

// A mutex that is not recursive: the three-state mutex of U. Drepper, "Futexes Are Tricky", section 7.
class RFINJECT_CAPABILITY("mutex") Mutex {
 public:
  bool TryLock() noexcept RFINJECT_TRY_ACQUIRE(true) {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kLocked, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Waits at most `timeout_ns` (ns, monotonic clock); false when it passed first.
  bool LockFor(int64_t timeout_ns) noexcept RFINJECT_TRY_ACQUIRE(true) {
    if (TryLock()) return true;
    const int64_t deadline = MonotonicNs() + timeout_ns;
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
      const int64_t left = deadline - MonotonicNs();
      if (left <= 0) return false;
      internal::FutexWait(&state_, kContended, left);
    }
    return true;
  }
  void Unlock() noexcept RFINJECT_RELEASE() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) internal::FutexWake(&state_, 1);
  }
  // Does nothing but tell clang's analysis that the lock is held where it cannot see that: in a lambda, which is a
  // function of its own to it.
  void AssertHeld() const noexcept RFINJECT_ASSERT_CAPABILITY(this) {}
  // For a forked child, where the thread that held it does not exist.
  void ResetInForkedChild() noexcept { state_.store(kFree, std::memory_order_relaxed); }

 private:
  enum : uint32_t { kFree, kLocked, kContended };
  std::atomic<uint32_t> state_{kFree};
};

// Gives back, at the end of its block, a lock that TryLock or LockFor has taken.
class RFINJECT_SCOPED_CAPABILITY HeldLock {
 public:
  explicit HeldLock(Mutex& mutex) noexcept RFINJECT_REQUIRES(mutex) : mutex_(mutex) {}
  ~HeldLock() RFINJECT_RELEASE() { mutex_.Unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  Mutex& mutex_;
};

// An event counts its signals, so a waiter that remembers the last count that it saw misses none.
class Event {
 public:
  uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  // Costs one atomic addition and one system call, since only a second shared word could tell whether a waiter
  // sleeps. It is for rare use.
  void Signal() noexcept {
    count_.fetch_add(1, std::memory_order_release);
    internal::FutexWake(&count_, INT_MAX);
  }
  // Returns at once if there was a signal after `seen`, else at the next one, or after `timeout_ns`, or early.
  void WaitFor(uint32_t seen, int64_t timeout_ns) noexcept {
    if (timeout_ns > 0 && count() == seen) internal::FutexWait(&count_, seen, timeout_ns);
  }

 private:
  std::atomic<uint32_t> count_{0};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SYNC_H_
