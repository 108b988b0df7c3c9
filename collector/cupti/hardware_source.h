// File: hardware_source.h
//
// The Source that measures on a GPU. This header includes nothing of CUDA.
#ifndef RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_
#define RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_

#include <atomic>
#include <cstdint>

#include "collector/source.h"

namespace rfinject {

// Whether this process can have a GPU at all: a driver is loaded or its device file exists. It costs a few system
// calls.
bool HardwareMayExist() noexcept;

// The hardware source; nullptr when HardwareMayExist() is false or settings.mode is "none". It starts nothing yet:
// that happens at the end of the first step in which a CUDA context is current.
Source* MakeHardwareSource(const Settings& settings, Recorder& recorder) noexcept;

// For how many ns, at least, a step with counters may go without a launch before it counts as stuck. Tests change it.
inline std::atomic<uint64_t> g_stall_ns{10'000'000'000};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_
