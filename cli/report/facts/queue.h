// File: queue.h
//
// Whether the GPU waits for the host to launch, by the queue of launches (cli/model/launch_queue.h). A trace has sums
// and not when each kernel was launched, so the queue goes by phase and layer, in the order of a training step.
#ifndef RFINJECT_CLI_REPORT_FACTS_QUEUE_H_
#define RFINJECT_CLI_REPORT_FACTS_QUEUE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cli/model/launch_queue.h"
#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/facts/steps.h"
#include "cli/report/facts/waits.h"

namespace rfinject::cli {

// The time that a launch takes whatever its kernel does, where no model says more: kernels that do nothing follow one
// another at this interval (operators/cost.h has the sources).
inline constexpr double kLaunchFloorNs = 3000;

// The interval at which the host launches kernels at best, where nothing is known of it. Eager PyTorch takes 5 to 60
// us for a launch, and in the mean of a step more than 10: in recordings of operators, which hold what recording
// costs, the mean is 39 us at least, and the closest tenth of the launches are 8 to 45 us apart
// (bench/launch_intervals.py).
inline constexpr double kLaunchIntervalNs = 10'000;

// Where a host's time comes from: it is not known, the user gave it, or, beside a virtual GPU, it is that of the
// machine on which the program ran.
enum class HostTime : uint8_t { kUnknown, kGiven, kThisMachine };
// "floor", since that is what counts where it is not known; "given", "this machine".
std::string_view HostTimeName(HostTime of);
struct LaunchInterval {
  double ns = 0;  // between the launches of two kernels; 0: none is assumed
  HostTime of = HostTime::kUnknown;
};

struct Queue {
  // For an estimate of which the host's time is known, and whose it is: how long a step's launches take the host, how
  // many there are, and how long a step takes by the clock, along the queue. 0: not known.
  HostTime host_of = HostTime::kUnknown;
  double host_ns = 0, launches = 0, step_ns = 0;
  double gpu_waits_share = 0;           // of such a step, in which the GPU waits for a launch
  bool launch_bound = false;            // such a step is: the launches take longer than the GPU's work
  LaunchInterval interval;              // by which launches are bound by launching
  double floor_ns = kLaunchIntervalNs;  // as it was given
  double shortest_ns = 0;               // the shortest launch seen; 0: unknown
};
std::span<const FactOf<Queue>> QueueFacts();

// What a step by the clock has between two kernels.
inline constexpr double kGapOfStepNs = kKernelGapNs;

// Finds the interval at which the host of an estimate launches kernels: `given_ns`, or `floor_ns` where that is 0. A
// virtual GPU's host is not the one that the GPU would have, so that its clock does not count here.
LaunchInterval IntervalOf(double given_ns, double floor_ns);

// Runs the queue over an estimate's launch keys, in the order of run.launches, whose GPU times in ns are `times`;
// `counted` and `waits` are the run's. Returns which of them the GPU waits for. Where the host's time is given, or
// was taken on this machine beside a virtual GPU, it sets what a step takes by the clock (Queue::step_ns) in
// `*found`.
std::vector<bool> AddLaunchWaits(const Run& run, std::span<const double> times, const Steps& counted,
                                 const StepWaits& waits, Queue* found);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_QUEUE_H_
