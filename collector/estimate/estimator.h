// File: estimator.h
//
// The Source that needs no GPU: every ATen operator that runs becomes one estimated kernel of the GPU that
// RFINJECT_ESTIMATE names. docs/method/ESTIMATOR.md has the rules.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_ESTIMATOR_H_
#define RFINJECT_COLLECTOR_ESTIMATE_ESTIMATOR_H_

#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/source.h"

namespace rfinject {

// Makes the estimator for settings.estimate, a row of gpus.csv without regard to case, and tells the recorder what is
// estimated (source, GPU, device facts). Returns nullptr when the table has no such row, with an error diagnostic
// that names the nearest ones, or when memory ran out. The process owns it, and never destroys it.
Source* MakeEstimator(const Settings& settings, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_ESTIMATE_ESTIMATOR_H_
