// File: tick_clock.h
//
// A clock for what is measured at each launch of the program: it costs a fifth of clock_gettime. It counts the
// processor's ticks where these come at one speed, whatever the processor does (CPUID's invariant TSC; Intel SDM
// volume 3, 18.17) and nobody stands in for the system's clock, and nanoseconds elsewhere. It is for durations on one
// thread; a virtual machine that moves to another host may make one of them absurd, which whoever measures must bear.
#ifndef RFINJECT_COLLECTOR_CUPTI_TICK_CLOCK_H_
#define RFINJECT_COLLECTOR_CUPTI_TICK_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "collector/sync.h"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rfinject::cupti {

class TickClock {
 public:
  static int64_t Now() noexcept {
#if defined(__x86_64__)
    if (counts_ticks_.load(std::memory_order_relaxed)) return static_cast<int64_t>(__rdtsc());
#endif
    return MonotonicNs();
  }
  // How long a tick is; 0: not known yet.
  static double TickNs() noexcept { return tick_ns_.load(std::memory_order_relaxed); }
  // Compares the ticks with the system's clock, for TickNs: the first call begins, one that comes a millisecond or
  // more later tells. For any thread, now and then.
  static void Compare() noexcept;

 private:
  static bool HasSteadyTicks() noexcept;

  static inline constinit std::atomic<bool> counts_ticks_{false};
  static inline constinit std::atomic<double> tick_ns_{0};
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_TICK_CLOCK_H_
