// File: sim_cupti_pm.h
//
// Between the simulated CUPTI's two halves: PM sampling (sim_cupti_pm.cc) and everything else (sim_cupti.cc).
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_PM_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_PM_H_

#include <cupti_profiler_host.h>

#include "integration_tests/simulated_gpu/simulator.h"

// What PM sampling asks of the other half.
bool SimProfilerIsInitialised();
bool SimRangeSessionIsEnabled();
CUptiResult SimPassesOf(CUpti_Profiler_Host_GetNumOfPasses_Params* params);  // the real host library's answer

#ifdef SIM_CUPTI_LEGACY
// A CUPTI of that age has no PM sampling.
inline void SimPmOnRun(const SimKernel*) {}
inline bool SimPmIsEnabled() { return false; }
inline bool SimPmOwns(const uint8_t*, size_t) { return false; }
inline CUptiResult SimPmEvaluate(CUpti_Profiler_Host_EvaluateToGpuValues_Params*) {
  return CUPTI_ERROR_NOT_SUPPORTED;
}
#else
// What it offers: a kernel ran; whether a session is there; whether an image is its, and the values of one sample.
void SimPmOnRun(const SimKernel* kernel);  // null: a copy
bool SimPmIsEnabled();
bool SimPmOwns(const uint8_t* image, size_t size);
CUptiResult SimPmEvaluate(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params);
#endif

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_PM_H_
