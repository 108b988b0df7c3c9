// File: fold.h
//
// Folds a Profile into Reports. Pure: no I/O, no clock.
//
//   std::vector<Report> reports = FoldProfile(profile, MachineFor, {.by = By::kLayer});
#ifndef RFINJECT_CLI_REPORT_FOLD_H_
#define RFINJECT_CLI_REPORT_FOLD_H_

#include <functional>
#include <span>
#include <vector>

#include "cli/model/calibration.h"
#include "cli/profile/profile.h"
#include "cli/report/report.h"
#include "cli/report/rows/roofs.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

struct FoldOptions {
  By by = By::kLayer;
  size_t depth = 0;  // layers are folded to so many parts of their names (layer_group.h); 0: not
  StepBy step_by = StepBy::kIteration;
  // Estimated runs that lend their model FLOP and compulsory bytes to runs that have none (theory.h). Not owned.
  const Profile* theory = nullptr;
  RoofOptions roofs;
  // Of an estimate: how long the host takes to launch a kernel. 0: not known. What was measured has a wall time.
  double host_ns_per_launch = 0;
  // The host launches a kernel at this interval at best, where its time is not known.
  double launch_floor_ns = kLaunchIntervalNs;
  // The GPU that what was measured or recorded is held against (other_gpu.h). Not owned; nullptr: none.
  const Gpu* on = nullptr;
  // What an estimate's expected times are made with. Not owned; nullptr: Calibration::Shipped().
  const Calibration* calibration = nullptr;
};

// Folds one run, on one machine. Rows of By::kLayer are in the order in which the program runs the layers, those of
// By::kPhase in that of a training step, all others by time, longest first. What is in no layer comes last.
Report FoldRun(const Profile& profile, const Run& run, const Machine& machine, const FoldOptions& options);

// The same by several groupings at once: the run is read once, and the reports differ in their rows alone.
std::vector<Report> FoldRunBy(const Profile& profile, const Run& run, const Machine& machine,
                              const FoldOptions& options, std::span<const By> groupings);

// Makes a Report for each run, on the machine that `machine_for` has for it (machine.h's MachineFor, or a user's own
// roofs).
std::vector<Report> FoldProfile(const Profile& profile, const std::function<Machine(const Run&)>& machine_for,
                                const FoldOptions& options);

// The chip whose formulas the run's counters follow ("GA100"); empty when the trace does not say.
std::string ChipOf(const Run& run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FOLD_H_
