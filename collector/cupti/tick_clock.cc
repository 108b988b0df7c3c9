#include "collector/cupti/tick_clock.h"

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rfinject::cupti {
namespace {

// Both clocks at one moment: of a few readings the one that nothing came into.
struct Moment {
  int64_t ticks = 0, ns = 0;
};
Moment Read() noexcept {
  Moment best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const int64_t before = MonotonicNs(), ticks = TickClock::Now(), took = MonotonicNs() - before;
    if (took >= least) continue;
    least = took;
    best = {ticks, before + took / 2};
  }
  return best;
}

// The library that has the function; null where that is not known.
const void* LibraryOf(const void* function) noexcept {
  Dl_info info;
  return dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
}

// A program may have a clock of its own (libfaketime; a simulated GPU in tests), which ticks know nothing of.
bool ClockIsTheSystems() noexcept {
  return LibraryOf(reinterpret_cast<const void*>(&clock_gettime)) ==
         LibraryOf(reinterpret_cast<const void*>(&getpid));
}

}  // namespace

bool TickClock::HasSteadyTicks() noexcept {
  if (!ClockIsTheSystems()) return false;
#if defined(__x86_64__)
  constexpr unsigned kPowerManagement = 0x80000007, kInvariant = 1U << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
#else
  return false;
#endif
}

void TickClock::Compare() noexcept {
  static const Moment begin = [] {
    const bool steady = HasSteadyTicks();
    counts_ticks_.store(steady, std::memory_order_relaxed);
    if (!steady) tick_ns_.store(1, std::memory_order_relaxed);
    return Read();
  }();
  if (!counts_ticks_.load(std::memory_order_relaxed)) return;
  const Moment now = Read();
  constexpr int64_t kLeastNs = 1'000'000;
  const int64_t ns = now.ns - begin.ns, ticks = now.ticks - begin.ticks;
  if (ns < kLeastNs || ticks <= 0) return;
  tick_ns_.store(static_cast<double>(ns) / static_cast<double>(ticks), std::memory_order_relaxed);
}

}  // namespace rfinject::cupti
