// File: expect.h
//
// Makes the second estimate of an estimated run: what a GPU's counters and a stopwatch would show, by the calibrated
// model of cli/model/expected.h, where the trace has the least that the datasheet allows.
#ifndef RFINJECT_CLI_REPORT_KEYS_EXPECT_H_
#define RFINJECT_CLI_REPORT_KEYS_EXPECT_H_

#include <optional>
#include <string_view>

#include "cli/model/estimated_kernel.h"
#include "cli/model/expected.h"
#include "cli/profile/profile.h"
#include "cli/report/keys/key_quantities.h"

namespace rfinject::cli {

// A launch of an estimated key; `sums` are those of all its launches, at least one. The key must outlive it.
EstimatedKernel KernelOf(const LaunchKey& key, const Sums& sums);

// The model of the GPU that the run was estimated for; nothing for a run of another kind, or a GPU that is in no
// table.
std::optional<ExpectedTimes> ModelOf(const Run& run, const Calibration& calibration);

// Puts the key's expected time with its interval into kTime, kTimeLow and kTimeHigh, the DRAM bytes that the L2 cache
// leaves of its compulsory ones into kDramBytes, and the least time for those into kIdealTime. All launches of an
// estimated key are alike.
void ApplyExpected(const LaunchKey& key, const ExpectedTimes& model, KeyQuantities& quantities);

// What one call of a key's operator computes, and how many calls the key's launches are the work of: kernels of one
// call share it.
struct CallWork {
  double calls = 0, bytes = 0;
  FlopByPrecision flop{};
};
// Nothing where no operator is known of the key. No calls: a kernel that only helps others.
std::optional<CallWork> CallWorkOf(const LaunchStats& stats);

// The model of the GPU that a run was measured or recorded on, by its row in the table of GPUs; nothing where no
// operators are known, and for a GPU that is in no table.
std::optional<ExpectedTimes> UsualModelOf(const Run& run, std::string_view machine, const Calibration& calibration);

// Adds to `sums` what the key's operators usually take and the least that the datasheet allows, where their work is
// known by shapes. A key has the part of it that it has of the operators' work (kMetricCallPart); kernels that help
// have none, and their time belongs to it.
void AddUsual(const LaunchKey& key, const LaunchStats& stats, const ExpectedTimes& model, Sums* sums);

// Adds what they are expected to take on another GPU, whose model that is (kOtherTime).
void AddOther(const LaunchKey& key, const LaunchStats& stats, const ExpectedTimes& other, Sums* sums);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_KEYS_EXPECT_H_
