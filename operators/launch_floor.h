// File: launch_floor.h
//
// The least time that an estimated kernel takes.
#ifndef RFINJECT_OPERATORS_LAUNCH_FLOOR_H_
#define RFINJECT_OPERATORS_LAUNCH_FLOOR_H_

#include <cstdint>

namespace rfinject::estimate {

// Nanoseconds from the start of one kernel to the start of the next when the kernels do nothing: about 3 us is what
// NVIDIA's forum arrived at as the limit on current hardware
// (forums.developer.nvidia.com/t/too-much-time-for-kernel-launch-latency/233645/3); clpeak, which launches an empty
// kernel, prints 2.3 us for an RTX 5060 (github.com/krrishnarraj/clpeak, README, "Kernel launch latency"). A kernel's
// own duration, as a profiler shows it, can be shorter, 1 to 2 us. An eager training loop pays the interval, because
// PyTorch launches each operator by itself. It is the launch-overhead bound of the time-based roofline (Wang et al.,
// arXiv 2009.04598).
inline constexpr uint64_t kLaunchFloorNs = 3000;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_LAUNCH_FLOOR_H_
