// File: try_runs.h
//
// Runs a program with and without changes, in turn, and compares what came of it.
#ifndef RFINJECT_CLI_CMD_TRY_RUNS_H_
#define RFINJECT_CLI_CMD_TRY_RUNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/cmd/try_changes.h"
#include "cli/model/calibration.h"
#include "cli/report/compare/trial.h"

namespace rfinject::cli {

enum class LossCheck : uint8_t { kNone, kHere, kOnCpu };

struct TryPlan {
  std::vector<std::string> program;
  std::vector<std::string> options;  // of `rfinject run`, but for the output
  std::string folder;                // the working folder, absolute
  std::string scratch;               // a folder of ours for everything that is written, outside of it
  bool in_place = false;             // the program's files are written where it writes them
  const Gpu* gpu = nullptr;          // of an estimate
  absl::Time deadline;               // no run begins after it, but for the first of each change
  LossCheck loss = LossCheck::kNone;
  bool quiet = false;
  Calibration calibration;
};

// The baseline and a trial for each change, in the order in which they were given, then the best together where more
// than one is worth it. A failure is one of the program without any change.
absl::StatusOr<std::vector<Trial>> TryChanges(const TryPlan& plan, std::span<const WantedChange> changes);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_TRY_RUNS_H_
