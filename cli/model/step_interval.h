// File: step_interval.h
//
// Says how well the mean of a run's steps is known from a few that were sampled. docs/method/INTERVALS.md has the
// formulas, what they assume, and when no interval is given. It is pure.
//
// Sources: batch means for correlated samples, Law and Kelton, "Simulation Modeling and Analysis", 9.5.3; degrees of
// freedom of a weighted mean's variance, Satterthwaite, Biometrics Bulletin 2, 1946; finite population, Cochran,
// "Sampling Techniques", 2.6; von Neumann's ratio, Annals of Mathematical Statistics 12, 1941.
#ifndef RFINJECT_CLI_MODEL_STEP_INTERVAL_H_
#define RFINJECT_CLI_MODEL_STEP_INTERVAL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "cli/model/statistics.h"

namespace rfinject::cli {

// Why there is an interval, or none.
enum class Trust : uint8_t {
  kNone,      // nothing was sampled: an estimate, or no times and no counters
  kByStep,    // from steps, as this file does it
  kByLaunch,  // from launches as if they were independent: a trace of an older version, or another tool's file
  kFewSteps,  // too few steps, or too close together
  kDrifting,  // the steps remember one another for longer than the sampled ones are apart
  kTwoSpeeds  // the steps have two durations, and change between them seldom
};
// "", "by step", "by launch", "few steps", "drifting", "two speeds".
std::string_view TrustName(Trust trust);
constexpr bool HasInterval(Trust trust) { return trust == Trust::kByStep || trust == Trust::kByLaunch; }

// Steps closer than this count as one observation, where they were not drawn from all of the run's: a GPU's clock, a
// batch's shape and a cache's content outlast a step or two. What lasts longer shows in the durations of all
// steps, and is reported.
inline constexpr uint64_t kBatchSteps = 8;
// With fewer observations Student's factor is above 3, and one cannot tell whether the steps drift.
inline constexpr size_t kLeastBatches = 4;
// So many steps in two or three places have an interval all the same, of the larger of both variances: a GPU's times
// scatter by a thousandth, and mostly from step to step.
inline constexpr size_t kLeastCloseSteps = 5;

struct StepInterval {
  Trust trust = Trust::kNone;
  double mean = 0;
  // The uncertainty of the mean of all steps that such a run could have, for comparisons with another run.
  Uncertainty uncertainty;
  // The same if the steps had nothing in common, which is the least that it can be: a difference that this allows is
  // chance, also where the uncertainty is not known. Unknown with fewer than three steps.
  Uncertainty least{.known = false};
  double half_width = 0;  // of the 95 % interval of the mean of this run's own steps; 0 where none is printed
  double spread = 0;      // robust standard deviation of a step: 1.4826 times the median distance from the median
  double p95 = 0;         // the 95th percentile of the sampled steps; 0 below 20 of them
  size_t steps = 0, batches = 0;
  // Too few of the steps are far apart: some of those that the interval is of lie close together.
  bool close = false;
};

// `values[i]` is what was sampled in step `steps[i]`, which ascend. `run_steps`: how many steps the run has, all
// together. `own`: those of the steps in which something of the row ran, if it does not run in all of them; only they
// tell how it scatters. Empty: all. `most_degrees`: the degrees of freedom of the values' variance, if these are
// fewer than the steps leave.
StepInterval IntervalOf(std::span<const uint64_t> steps, std::span<const double> values, double run_steps,
                        std::span<const uint64_t> own = {},
                        double most_degrees = std::numeric_limits<double>::infinity());

// Whether the sampled values themselves drift: neighbours resemble each other more than chance would have it. It is
// called for the run's total, which has the least noise; returns false for fewer than 8 values.
bool SamplesDrift(std::span<const uint64_t> steps, std::span<const double> values);

// Returns which of the values are far above the others, if these are few: slow steps, over which no small sample can
// average. The result has one entry for each value. `least`: how far above the median at least, relative to it.
// `most`: the share of the values that may be slow; more are no exceptions.
inline constexpr double kMostSlow = 0.2;
std::vector<bool> SlowSteps(std::span<const double> values, double least = 0, double most = kMostSlow);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_STEP_INTERVAL_H_
