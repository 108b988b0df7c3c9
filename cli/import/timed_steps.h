// File: timed_steps.h
//
// How long the steps of a recording took by the clock, and what took the time. As in our own traces a step goes from
// the end of the one before to its own end, so that loading its batch is part of it. It is pure.
#ifndef RFINJECT_CLI_IMPORT_TIMED_STEPS_H_
#define RFINJECT_CLI_IMPORT_TIMED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// In ns of the recording's clock.
struct Interval {
  int64_t start = 0, end = 0;
};
// Gives one interval after the other, by their start; false: no more.
using Intervals = std::function<bool(Interval*)>;
// The intervals of a list that is sorted by start, and that outlives the result.
Intervals IntervalsOf(const std::vector<Interval>& list);

// The intervals of both, by their start.
Intervals Merged(Intervals a, Intervals b);

struct TimedStep {
  Interval at;
  uint64_t data_ns = 0, gpu_wait_ns = 0, busy_ns = 0;
  uint64_t busy_or_data_ns = 0;
  uint64_t working_ns = 0;  // something runs on the GPU that is no communication
};
// What a recording shows at all.
struct ShownOfSteps {
  bool data = false, calls = false, communication = false;  // waits for batches and for the GPU; NCCL's kernels
};
// A file with more steps than this is no training run. So many take 56 MB.
inline constexpr size_t kMostTimedSteps = 1 << 20;

// Adds to `into` of each step what of the intervals lies in it. Where two of them overlap, what they share counts
// once.
void AddOverlap(const Intervals& next, uint64_t TimedStep::*into, std::vector<TimedStep>* steps);

// The steps that are unlike the others: by more than 5 % of the median, and more than 5 robust deviations of all, in
// their order. Of fewer than three, none is.
std::vector<size_t> OddSteps(std::span<const uint64_t> ns);

// Adds the steps to what `run` says of `rank`. `began_unix_ns` is when the recording's clock was 0, itself 0 where
// that is not known.
void AddStepTimes(const std::vector<TimedStep>& steps, ShownOfSteps shown, int64_t began_unix_ns, uint32_t rank,
                  Run* run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TIMED_STEPS_H_
