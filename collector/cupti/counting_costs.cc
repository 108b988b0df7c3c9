#include "collector/cupti/counting_costs.h"

#include <algorithm>
#include <utility>

#include "collector/cupti/call_clock.h"
#include "collector/sync.h"

namespace rfinject::cupti {

void CountingCosts::Begin() noexcept { begun_ns_ = MonotonicNs(); }

CountingCosts::Sums CountingCosts::Now(uint64_t ranges) const noexcept {
  return {ProgramsCallNs(), OurCallNs(), pace_.longer_ns(), held_ns_.load(std::memory_order_relaxed), ranges};
}

// What the program's threads have called is in what their steps were longer by, where ranges were counted.
bool CountingCosts::Allows(uint64_t ns) const noexcept {
  const Sums now = Now(0);
  return budget_.Allows(std::max(now.calls_ns, now.longer_ns) + now.held_ns, ns,
                        static_cast<uint64_t>(MonotonicNs() - begun_ns_));
}

void CountingCosts::Keep(uint64_t ranges, Recorder& recorder) {
  const Sums now = Now(ranges), before = std::exchange(kept_, now);
  const auto keep = [&recorder](const char* what, uint64_t ns, uint64_t count) {
    if (ns == 0 && count == 0) return;
    trace::CountingCost cost;
    cost.what = what;
    cost.count = count;
    cost.ns = ns;
    recorder.Keep(std::move(cost));
  };
  keep("calls", now.calls_ns - before.calls_ns, 0);
  keep("own calls", now.own_calls_ns - before.own_calls_ns, 0);
  keep("longer steps", now.longer_ns - before.longer_ns, now.ranges - before.ranges);
  keep("waiting for the opening", now.held_ns - before.held_ns, 0);
}

}  // namespace rfinject::cupti
