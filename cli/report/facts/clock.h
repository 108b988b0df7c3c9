// File: clock.h
//
// How long a mean step takes: by the clock, and on the GPU.
#ifndef RFINJECT_CLI_REPORT_FACTS_CLOCK_H_
#define RFINJECT_CLI_REPORT_FACTS_CLOCK_H_

#include <span>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/facts/steps.h"

namespace rfinject::cli {

struct Clock {
  double wall_ns = 0;  // 0: unknown, and of an estimate, whose clock is that of another machine than the GPU's
  double gpu_ns = 0;   // summed kernel time; 0: unknown
  bool measured = false;

  // Wall time beside which GPU time may be held; 0 of an import, whose kernels may be of other steps than its clock.
  double measured_wall_ns() const { return measured ? wall_ns : 0; }
};

// The clock alone; GPU time is known when the launches are added up.
Clock ClockOf(const Run& run, const Steps& steps);
std::span<const FactOf<Clock>> ClockFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_CLOCK_H_
