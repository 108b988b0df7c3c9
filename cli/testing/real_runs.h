// File: real_runs.h
//
// Traces of runs on a real GPU, which lie beside the tree (../shared/h100/runs) and not everywhere.
#ifndef RFINJECT_CLI_TESTING_REAL_RUNS_H_
#define RFINJECT_CLI_TESTING_REAL_RUNS_H_

#include <string>

#include "cli/profile/profile.h"

namespace rfinject::cli::testing {

// The runs' folder, looked for from the working folder upwards; empty where it is not.
std::string RealRunsFolder();

// Reads a run that is there, by its name without ".rfx".
Profile ReadRealRun(const std::string& name);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_REAL_RUNS_H_
