// File: step_clock.h
//
// What the steps of a measured process say of its time. The host and the GPU are asynchronous: behind a step in which
// something was counted the host runs ahead, until the queue of launches is full, and then waits in it. So a single
// duration of the host's is not what the GPU takes for that step. Kernels that were timed in steps in a row give the
// time on the GPU's clock; where there are none, the host's durations do, of the steps that counting does not touch.
#ifndef RFINJECT_CLI_PROFILE_STEP_CLOCK_H_
#define RFINJECT_CLI_PROFILE_STEP_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/step_times.h"

namespace rfinject::cli {

// A measured step, by the host's clock.
struct HostStep {
  uint64_t step = 0;
  bool armed = false;
  wire::StepTime time;
};

struct StepClock {
  uint64_t usual_ns = 0;  // what a usual step takes; 0: not known
  uint64_t busy_ns = 0;   // of it, how long something runs on the GPU; 0: not known
  bool by_gpu = false;    // usual_ns is of the GPU's clock, not of the host's
  // Places of the steps, not armed, whose durations say what the program's throughput is.
  std::vector<size_t> undisturbed;
  uint64_t counting_ns = 0;     // what counting made steps longer by
  uint64_t counting_steps = 0;  // those that it made much longer
};

// `steps` ascend; `timed` are the steps whose kernels were timed, ascending. An iteration has `period` steps.
StepClock ReadStepClock(std::span<const HostStep> steps, std::span<const trace::GpuStep> gpu_steps,
                        std::span<const uint64_t> timed, size_t period);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_STEP_CLOCK_H_
