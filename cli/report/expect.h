// File: expect.h
//
// Makes the second estimate of an estimated run. The recorded time is what the datasheet allows ("ideal"); this adds
// what a stopwatch would show ("expected"), by the calibrated model of cli/model/expected.h.
#ifndef RFINJECT_CLI_REPORT_EXPECT_H_
#define RFINJECT_CLI_REPORT_EXPECT_H_

#include <optional>

#include "cli/model/expected.h"
#include "cli/profile/profile.h"
#include "cli/report/key_quantities.h"

namespace rfinject::cli {

// The model of the GPU that the run was estimated for; nothing for a run of another kind, or a GPU that is in no
// table.
std::optional<ExpectedTimes> ModelOf(const Run& run, const Calibration& calibration);

// Makes the key's recorded time kIdealTime, and puts its expected one with its interval into kTime, kTimeLow and
// kTimeHigh. All launches of an estimated key are alike.
void ApplyExpected(const LaunchKey& key, const ExpectedTimes& model, KeyQuantities& quantities);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_EXPECT_H_
