// File: simulation.h
//
// Runs a simulated job of many noisy steps and kernels through the policy. A test uses it to hold the coverage of the
// intervals and the share of armed steps, bench/arming_simulation to print them. It is no part of the library.
#ifndef RFINJECT_COLLECTOR_ARMING_SIMULATION_H_
#define RFINJECT_COLLECTOR_ARMING_SIMULATION_H_

#include <cstdint>
#include <vector>

#include "collector/arming/policy.h"

namespace rfinject::arming {

// The noise, by kernel: the spread of bytes is drawn between 0.1 and 6 % of the mean and normal; that of time between
// 0.5 and 8 %, Student's t with 5 degrees of freedom (heavier tails), one sample in 100 a quarter longer
// (preemption), all times of a step off by a common 0.5 % (clock). The truth is the mean of that whole distribution.
struct JobOptions {
  uint64_t steps = 10000;
  uint32_t kernels = 300;
  uint64_t seed = 1;
  double counters_cost = 4.0;  // an armed step takes this many unarmed steps longer
  double times_cost = 0.05;
  double outlier = 0.10;    // how much longer one time in 100 is
  double fixed_spread = 0;  // of bytes and time, instead of drawing; 0: draw
};

struct JobResult {
  uint64_t intervals = 0;  // of kernels that hold the time share, bytes and time
  uint64_t covering = 0;
  uint64_t bytes_intervals = 0, bytes_covering = 0;
  uint64_t armed_steps = 0, timed_steps = 0;
  uint64_t converged_at = 0;      // step; 0: never
  double overhead = 0;            // true cost over true time
  double max_overhead_later = 0;  // largest overhead so far at any step beyond the first rotation's worth
};

// Runs the policy over a simulated job. The same options give the same result.
JobResult SimulateJob(const Options& options, const std::vector<GroupRole>& roles, const JobOptions& job);

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_SIMULATION_H_
