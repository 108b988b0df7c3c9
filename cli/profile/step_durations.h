// File: step_durations.h
//
// Finds out what the durations of all steps of a process say about the few that are sampled. Few samples cannot tell
// whether the steps remember one another (a clock that sinks as the GPU gets warm, two clock states), but every
// step's duration is in the trace.
#ifndef RFINJECT_CLI_PROFILE_STEP_DURATIONS_H_
#define RFINJECT_CLI_PROFILE_STEP_DURATIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace rfinject::cli {

// More are not kept: a megabyte, and far more than any finding needs.
inline constexpr size_t kMaxStepDurations = 1 << 16;

struct StepDuration {
  uint64_t step = 0;
  uint64_t ns = 0;
};

struct DurationFindings {
  // Whether steps that are as far apart as the sampled ones still resemble each other, so that their number does not
  // say how much is known.
  bool drifting = false;
  bool two_speeds = false;  // that is so because there are two durations that change seldom
  // Where there are two durations that come and go: how many steps were looked at, and how many are of the rarer
  // kind. `in_rhythm`: all of them, where the kinds come in a rhythm, as with every fourth step longer; `rarer_kind`
  // then has the rhythm's share, which is that of the steps that were not looked at, too.
  uint64_t of_kinds = 0, rarer_kind = 0, in_rhythm = 0;
  uint64_t slow = 0;           // steps far above the ordinary ones, and not in a row
  uint64_t slow_extra_ns = 0;  // how much longer than the median they took, together
};

// `durations` of the steps that no profiling made longer, ascending by step. Those before `first` are left out: a
// program's first steps make plans and allocate. `distance` is the number of steps from one sampled step to the next;
// 0: there are none, and drift is not looked for.
DurationFindings ExamineDurations(std::span<const StepDuration> durations, uint64_t first, uint64_t distance);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_STEP_DURATIONS_H_
