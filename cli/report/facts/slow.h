// File: slow.h
//
// Steps that took much longer than the others, which sums of ordinary steps leave out.
#ifndef RFINJECT_CLI_REPORT_FACTS_SLOW_H_
#define RFINJECT_CLI_REPORT_FACTS_SLOW_H_

#include <cstdint>
#include <span>
#include <string>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/keys/sampled_run.h"

namespace rfinject::cli {

struct Slow {
  uint64_t sampled = 0;    // steps of times that count
  uint64_t set_aside = 0;  // those that were set aside, of times or of bytes
  // Of all steps that were not armed, `timed`: those that were slow, and how much longer they took together.
  uint64_t steps = 0, timed = 0;
  double extra_ns = 0;
};

Slow SlowStepsOf(const Run& run, const SampledRun& sampled);
// A sentence; empty where no step was slow.
std::string SlowStepsText(const Slow& slow);
std::span<const FactOf<Slow>> SlowFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_SLOW_H_
