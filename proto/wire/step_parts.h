// File: step_parts.h
//
// What follows from the parts of a step by the clock. The writer adds it up step by step for the later steps of a
// long run, and the reader for all others; both must do it alike.
#ifndef RFINJECT_PROTO_WIRE_STEP_PARTS_H_
#define RFINJECT_PROTO_WIRE_STEP_PARTS_H_

#include <cstdint>

namespace rfinject::wire {

// Bits of Step.watched: which of the parts somebody saw.
inline constexpr uint32_t kWatchedDataWaits = 1, kWatchedGpuWaits = 2, kWatchedGpuBusy = 4;

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

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_STEP_PARTS_H_
