// File: counting_costs.h
//
// CountingCosts is the account of what counting costs the program: what CUPTI's calls took on the program's threads
// (call_clock.h), what its steps were longer by (step_pace.h), and what a short run has waited. It says whether more
// may be spent, and keeps the sums in the trace.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTING_COSTS_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTING_COSTS_H_

#include <atomic>
#include <cstdint>

#include "collector/arming/budget.h"
#include "collector/cupti/step_pace.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class CountingCosts {
 public:
  // `share` of the time may be spent. `pace` must outlive the object.
  CountingCosts(double share, const StepPace& pace) noexcept : budget_(share), pace_(pace) {}

  // For any thread: the program has waited for `ns`.
  void AddHeld(uint64_t ns) noexcept { held_ns_.fetch_add(ns, std::memory_order_relaxed); }

  // For our own thread. Measuring begins now.
  void Begin() noexcept;
  // Whether the program may pay `ns` more.
  bool Allows(uint64_t ns) const noexcept;
  // Puts what was spent since the last call into the trace; `ranges` were counted so far.
  void Keep(uint64_t ranges, Recorder& recorder);

 private:
  struct Sums {
    uint64_t calls_ns = 0, own_calls_ns = 0, longer_ns = 0, held_ns = 0, ranges = 0;
  };
  Sums Now(uint64_t ranges) const noexcept;

  const arming::Budget budget_;
  const StepPace& pace_;
  std::atomic<uint64_t> held_ns_{0};
  int64_t begun_ns_ = 0;
  Sums kept_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTING_COSTS_H_
