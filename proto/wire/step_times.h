// File: step_times.h
//
// Steps added up: how many there were, how long they took by the clock, and what took the time (waiting for data,
// waiting for the GPU, the GPU at work). The library does it step by step for the later steps of a long run, and the
// command for all others; both do it here.
#ifndef RFINJECT_PROTO_WIRE_STEP_TIMES_H_
#define RFINJECT_PROTO_WIRE_STEP_TIMES_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::wire {

// Bits of Step.watched: which of the parts were seen.
inline constexpr uint32_t kWatchedDataWaits = 1, kWatchedGpuWaits = 2, kWatchedGpuBusy = 4, kWatchedLaunchWaits = 8;

// What is left of a step, in ns, when the thread that ends it waits neither for data nor for the GPU.
inline uint64_t OwnNs(uint64_t wall_ns, uint64_t data_wait_ns, uint64_t gpu_wait_ns) {
  const uint64_t rest = wall_ns > data_wait_ns ? wall_ns - data_wait_ns : 0;
  return rest > gpu_wait_ns ? rest - gpu_wait_ns : 0;
}

// How long nothing runs on the GPU while the host does not wait for data, in ns: at least so long, because the wait
// for data may itself be filled by kernels. A host that waits for the GPU has it work.
inline uint64_t LaunchGapNs(uint64_t wall_ns, uint64_t data_wait_ns, uint64_t gpu_busy_ns) {
  return OwnNs(wall_ns, data_wait_ns, gpu_busy_ns);
}

// One step that was not armed, and what of it was watched. The waits are those of the thread that ended the step.
struct StepTime {
  uint64_t wall_ns = 0;
  std::optional<uint64_t> data_wait_ns, gpu_wait_ns, gpu_busy_ns;
  // Where it is known exactly; nothing: as much as follows from the others.
  std::optional<uint64_t> launch_gap_ns;
  // Only communication runs on the GPU: nothing hides it.
  std::optional<uint64_t> exposed_communication_ns = std::nullopt;
  bool launch_waits = false;  // gpu_wait_ns has what launches waited for
};

// The time of a Step, or of a message that has its fields of this kind; Step.watched says which of them count.
template <typename Step>
StepTime TimeOf(const Step& step) {
  const auto seen = [&step](uint32_t bit, uint64_t ns) {
    return (step.watched & bit) != 0 ? std::optional(ns) : std::nullopt;
  };
  return {.wall_ns = step.duration_ns,
          .data_wait_ns = seen(kWatchedDataWaits, step.data_wait_ns),
          .gpu_wait_ns = seen(kWatchedGpuWaits, step.gpu_wait_ns),
          .gpu_busy_ns = seen(kWatchedGpuBusy, step.gpu_busy_ns),
          .launch_gap_ns = {},
          .launch_waits = (step.watched & kWatchedLaunchWaits) != 0};
}

// Adds a step to `times`. May throw std::bad_alloc.
inline void AddStepTime(const StepTime& step, trace::RankSteps* times) {
  times->wall_ns.Add(step.wall_ns);
  if (step.gpu_wait_ns) times->gpu_wait_ns.Add(*step.gpu_wait_ns);
  if (step.gpu_busy_ns) times->gpu_busy_ns.Add(*step.gpu_busy_ns);
  if (step.exposed_communication_ns) times->exposed_communication_ns.Add(*step.exposed_communication_ns);
  if (!step.data_wait_ns) return;
  times->data_wait_ns.Add(*step.data_wait_ns);
  if (step.gpu_wait_ns) times->own_ns.Add(OwnNs(step.wall_ns, *step.data_wait_ns, *step.gpu_wait_ns));
  if (!step.gpu_busy_ns) return;
  times->launch_gap_ns.Add(
      step.launch_gap_ns.value_or(LaunchGapNs(step.wall_ns, *step.data_wait_ns, *step.gpu_busy_ns)));
}

// Adds a measured step to the sums of its run. Returns whether its time counts, which that of an armed step does not,
// since it holds what profiling cost.
template <typename Step>
bool AddStep(const Step& step, trace::RunSteps* sums) {
  SaturatingAdd(&sums->steps, 1);
  SaturatingAdd(&sums->samples, step.samples);
  SaturatingAdd(&sums->calls, step.calls);
  sums->memory_peak_bytes = std::max({sums->memory_peak_bytes, step.memory_bytes, step.memory_peak_bytes});
  if (step.armed_group != 0) {
    SaturatingAdd(&sums->armed, 1);
    return false;
  }
  sums->duration_ns.Add(step.duration_ns);
  return true;
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_STEP_TIMES_H_
