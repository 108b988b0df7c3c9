// File: fold.h
//
// Folds a Profile into Reports. Pure: no I/O, no clock.
//
//   std::vector<Report> reports = FoldProfile(profile, MachineFor, {.by = By::kLayer});
#ifndef RFINJECT_CLI_REPORT_FOLD_H_
#define RFINJECT_CLI_REPORT_FOLD_H_

#include <functional>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/report.h"

namespace rfinject::cli {

struct FoldOptions {
  By by = By::kLayer;
};

// One run on one machine. Rows of By::kLayer come as the program runs the layers, those of By::kPhase in the order of
// a training step, all others by time, longest first. What is in no layer comes last, one row a phase.
Report FoldRun(const Profile& profile, const Run& run, const Machine& machine, const FoldOptions& options);

// A Report a run, each on the machine that `machine_for` has for it (machine.h's MachineFor, or a user's own roofs).
std::vector<Report> FoldProfile(const Profile& profile, const std::function<Machine(const Run&)>& machine_for,
                                const FoldOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FOLD_H_
