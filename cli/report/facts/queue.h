// File: queue.h
//
// Whether the GPU waits for the host to launch, by the queue of launches (cli/model/launch_queue.h). A trace has sums
// and not when each kernel was launched, so the queue goes by phase and layer, in the order of a training step.
#ifndef RFINJECT_CLI_REPORT_FACTS_QUEUE_H_
#define RFINJECT_CLI_REPORT_FACTS_QUEUE_H_

#include <span>
#include <vector>

#include "cli/model/launch_queue.h"
#include "cli/profile/profile.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// What a step by the clock has between two kernels.
inline constexpr double kGapOfStepNs = kKernelGapNs;

// Finds the interval at which the run's host launches its `launches` kernels, which take `gpu_ns` in all: `given_ns`
// (of estimates; 0: none), else what a step's own time by the clock is for a launch, else `floor_ns`. A virtual GPU's
// host is not the one that the GPU would have, so that its clock does not count here. `report` must have the run, its
// steps and its waits.
LaunchInterval IntervalOf(const Report& report, double launches, double gpu_ns, double given_ns, double floor_ns);

// Runs the queue over a run's launch keys, in the order of run.launches, whose GPU times in ns are `times`. Returns
// which of them the GPU waits for. Of an estimate whose host's time is given, or was taken on this machine beside a
// virtual GPU, it sets what a step takes by the clock (Report::step_ns).
std::vector<bool> AddLaunchWaits(const Run& run, std::span<const double> times, Report* report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_QUEUE_H_
