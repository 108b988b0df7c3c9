// File: gpu_idle.h
//
// What the GPU was idle before: kernels, copies and memory sets that were launched too late, by layer and phase.
// Windows in which all of them were timed show it; so it is of measured runs.
#ifndef RFINJECT_CLI_REPORT_FACTS_GPU_IDLE_H_
#define RFINJECT_CLI_REPORT_FACTS_GPU_IDLE_H_

#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

struct IdleBefore {
  LayerKey layer;  // no model: in no layer
  Phase phase = Phase::kOther;
  double ns = 0;  // a step
};

// For a run whose GPU is idle for `idle_ns` of a step: what it was idle before, the longest first, which together is
// that. Empty where it is not known.
std::vector<IdleBefore> IdleByLayer(const Run& run, double idle_ns);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_GPU_IDLE_H_
