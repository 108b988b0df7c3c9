// File: sim_cupti_parts.h
//
// What the parts of the simulated CUPTI know of each other: callbacks and activity records (sim_cupti.cc), the range
// profiler (sim_cupti_range.cc), PM sampling (sim_cupti_pm.cc) and planning (sim_cupti_host.cc). sim_legacy.h has the
// legacy profiler.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_PARTS_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_PARTS_H_

#include <cupti_profiler_host.h>

#include "integration_tests/simulated_gpu/simulator.h"

// From sim_cupti.cc: whether cuptiProfilerInitialize was called; a time as CUPTI tells it, of sim_now's clock;
// whether this thread is in the callback of a context that goes; and what is called when nobody has subscribed.
bool SimProfilerIsInitialised();
uint64_t SimStamp(uint64_t ns);
bool SimIsDestroying();
void SimHookIn();

// From sim_cupti_host.cc, the real host library's answer.
CUptiResult SimPassesOf(CUpti_Profiler_Host_GetNumOfPasses_Params* params);

#ifdef SIM_CUPTI_LEGACY
// A CUPTI of that age has neither.
inline SimSlow SimRangeBegin(const SimLaunch&) { return {1, 0}; }
inline void SimRangeRun(const SimLaunch&) {}
inline bool SimRangeSession(CUcontext) { return false; }
inline bool SimRangeIsRunning() { return false; }
#else
// From sim_cupti_range.cc: what counting does to a launch before and after it is queued; whether the context has a
// session (null: whether any has), and whether one is started.
SimSlow SimRangeBegin(const SimLaunch& launch);
void SimRangeRun(const SimLaunch& launch);
bool SimRangeSession(CUcontext context);
bool SimRangeIsRunning();
// From sim_cupti_pm.cc: whether a session is there; whether an image is its, and the values of one sample.
bool SimPmIsEnabled();
bool SimPmOwns(const uint8_t* image, size_t size);
CUptiResult SimPmEvaluate(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params);
#endif

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_PARTS_H_
