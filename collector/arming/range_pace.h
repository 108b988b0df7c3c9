// File: range_pace.h
//
// RangePace says how many ranges a step may have, as what they are expected to cost: so much that the step becomes
// longer by a quarter at most. What a range is expected to cost is a figure from other machines. Here it may cost
// less, as where the host has time to spare, or more; so it learns from what steps with ranges were longer by. It is
// pure, and used by one thread.
#ifndef RFINJECT_COLLECTOR_ARMING_RANGE_PACE_H_
#define RFINJECT_COLLECTOR_ARMING_RANGE_PACE_H_

#include <algorithm>
#include <cstdint>

namespace rfinject::arming {

class RangePace {
 public:
  // A step is longer by at most this share.
  static constexpr double kShareOfStep = 0.25;

  // Another group of counters is counted, whose ranges may cost something else: nothing is known of them. The sums
  // are those of all steps so far in which ranges were counted: what these were expected to cost, and what the steps
  // were longer by, in ns.
  void Begin(double expected_ns, double longer_ns) noexcept {
    expected_before_ns_ = expected_ns;
    longer_before_ns_ = longer_ns;
  }
  // What the ranges of a step of `step_ns` may be expected to cost, in ns, with the same sums as they are now.
  uint64_t OfStep(uint64_t step_ns, double expected_ns, double longer_ns) const noexcept {
    // What is expected counts as so many steps that were seen, so that few of them change little.
    constexpr double kStepsExpected = 8, kLeast = 0.4, kMost = 4;
    const double share = kShareOfStep * static_cast<double>(step_ns), before = kStepsExpected * share;
    if (!(before > 0)) return 1;
    const double seen = longer_ns - longer_before_ns_ + before, expected = expected_ns - expected_before_ns_ + before;
    return static_cast<uint64_t>(share / std::clamp(seen / expected, kLeast, kMost)) + 1;
  }

 private:
  double expected_before_ns_ = 0, longer_before_ns_ = 0;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_RANGE_PACE_H_
