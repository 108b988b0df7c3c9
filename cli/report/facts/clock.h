// File: clock.h
//
// How long a step takes, and by whose clock; how long its kernels take; and what counting cost. All other parts of a
// report that need a step's time take it from here.
#ifndef RFINJECT_CLI_REPORT_FACTS_CLOCK_H_
#define RFINJECT_CLI_REPORT_FACTS_CLOCK_H_

#include <cstdint>
#include <span>
#include <string>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/facts/steps.h"
#include "cli/report/facts/waits.h"

namespace rfinject::cli {

// What counting cost the program, over the whole run.
struct CountingSum {
  double ns = 0;             // that steps took longer
  double all_ns = 0;         // that all measured steps took, these too
  uint64_t steps = 0;        // that it made much longer
  uint64_t other_steps = 0;  // all others
};

struct Clock {
  StepClockOf of{};
  double wall_ns = 0;  // 0: unknown, and of an estimate, whose clock is that of another machine than the GPU's
  double busy_ns = 0;  // of it, something runs on the GPU; 0: unknown
  double gpu_ns = 0;   // summed kernel time, which passes wall_ns where kernels overlap; 0: unknown
  bool measured = false;
  CountingSum counting;

  // Wall time beside which GPU time may be held; 0 of an import, whose kernels may be of other steps than its clock.
  double measured_wall_ns() const { return measured ? wall_ns : 0; }
};

// The clock alone; GPU time is known when the launches are added up.
Clock ClockOf(const Run& run, const Steps& steps, const StepWaits& waits);
// "counting took 7.3 s of this run's 21.3 s, in 14 steps; the other 136 ran as without it"; empty where it took none.
std::string CountingText(const Clock& clock);
std::span<const FactOf<Clock>> ClockFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_CLOCK_H_
