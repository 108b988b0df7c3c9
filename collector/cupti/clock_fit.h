// File: clock_fit.h
//
// Finds how the clock of PM sampling lies to that of the kernels' records, by what was sampled: within kernels of one
// group the rate of DRAM bytes varies little, between groups it varies much, so the right offset is the one at which
// the variance within groups is least. On the H100 it is sharp to 0.2 us.
#ifndef RFINJECT_COLLECTOR_CUPTI_CLOCK_FIT_H_
#define RFINJECT_COLLECTOR_CUPTI_CLOCK_FIT_H_

#include <vector>

#include "collector/cupti/sample_join.h"
#include "collector/cupti/sample_timeline.h"

namespace rfinject::cupti {

struct ClockFit {
  JoinVerdict verdict = JoinVerdict::kTooFew;
  SampleClock clock;
  double unexplained = 1;  // as Joined::unexplained
};

// `fitted` is what the fitted metrics counted in each sample. Offset and ratio are looked for as far as `options`
// tolerates. Takes time in proportion to the samples times the offsets tried, where a step is an interval of
// sampling.
ClockFit FitClock(const SampleTimeline& timeline, const std::vector<TimedKernel>& kernels,
                  const std::vector<double>& fitted, const JoinOptions& options);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_CLOCK_FIT_H_
