// File: step_span.h
//
// When one step of a process began and ended. Profiles hold sums of steps, and single ones of imports only; traces of
// processes say single ones (cli/trace/step_spans.h).
#ifndef RFINJECT_CLI_PROFILE_STEP_SPAN_H_
#define RFINJECT_CLI_PROFILE_STEP_SPAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>

namespace rfinject::cli {

// As many as a process writes one by one (proto/FORMAT.md); more are in no trace of ours.
inline constexpr size_t kMostStepSpans = size_t{1} << 16;

struct StepSpan {
  uint64_t index = 0;         // from 0, of the process
  int64_t start_unix_ns = 0;  // CLOCK_REALTIME; of a file that does not know it, its own clock, which begins near 0
  uint64_t duration_ns = 0;
  uint64_t samples = 0;                                        // 0: unknown
  bool armed = false;                                          // counters were on, which makes it longer
  std::optional<uint64_t> data_wait_ns, gpu_wait_ns, busy_ns;  // where they were watched
  friend bool operator==(const StepSpan&, const StepSpan&) = default;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_STEP_SPAN_H_
