// File: step_clock.h
//
// StepClock measures how long a step takes and what it waits for, by the host's clock and, where the GPU has a clock
// of its own (step_waits.h), by both.
#ifndef RFINJECT_COLLECTOR_RECORD_STEP_CLOCK_H_
#define RFINJECT_COLLECTOR_RECORD_STEP_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "collector/record/launch_ring.h"

namespace rfinject {

class StepClock {
 public:
  // Lets the first step begin now, if it has not begun yet.
  void Start() noexcept;
  // Lets the step that runs begin now, or with the wait for its batch; what was waited for before is in no step.
  void Restart() noexcept;
  // Ends the step that runs and begins the next one. Sets the step's start and duration, and returns the time, in ns
  // of the monotonic clock.
  int64_t EndStep(StepRecord* step) noexcept;
  // Adds what the step waited for, as far as it was watched. Called after EndStep, on the same thread.
  void AddWaits(StepRecord* step) noexcept;
  void ResetInForkedChild() noexcept;

 private:
  // What a GPU with a clock of its own did since the last call.
  struct GpuTimes {
    bool known = false;
    uint64_t skipped_ns = 0, busy_ns = 0;
  };
  GpuTimes TakeGpuClock() noexcept;

  // When the step that runs began, in ns of the monotonic clock; 0: nothing has happened yet. The first recording
  // thread and each thread that ends a step exchange it. Relaxed: it is one number, and nothing is handed over with
  // it.
  std::atomic<int64_t> start_ns_{0};
  // The GPU's own clock when the step began. The thread that begins a step exchanges them. Relaxed, as above.
  std::atomic<uint64_t> gpu_skipped_ns_{0}, gpu_busy_ns_{0};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_STEP_CLOCK_H_
