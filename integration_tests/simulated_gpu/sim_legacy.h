// File: sim_legacy.h
//
// What the parts of the simulated CUPTI know of each other for the legacy Profiling API: sim_cupti.cc (callbacks,
// activity), sim_cupti_legacy.cc (cuptiProfiler*) and sim_nvperf.cc (NVPW_*, in a library of its own).
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_LEGACY_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_LEGACY_H_

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/simulator.h"

namespace sim {

constexpr uint64_t kLegacyImageMagic = 0x53494D5F4C454741u;

// These are leaked, because counter data images point at them.
struct LegacyRange {
  std::string name;
  std::vector<const SimKernel*> kernels;
};

// The counter data image: this, then one pointer to its LegacyRange a range.
struct LegacyImage {
  uint64_t magic;
  uint64_t max_ranges;
  uint64_t ranges;
};

// From sim_cupti_legacy.cc: a kernel has been put on its stream; whether `context` has a session; whether any counts.
void LegacyRun(const SimLaunch* launch);
bool LegacySession(CUcontext context);
bool LegacyEnabled();

// From sim_cupti.cc: whether cuptiProfilerInitialize was called, and whether kernel records are on.
bool ProfilerInitialised();
bool KernelRecordsOn();

}  // namespace sim

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_LEGACY_H_
