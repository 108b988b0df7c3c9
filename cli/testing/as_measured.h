// File: as_measured.h
//
// Estimates as if they had been measured: by a GPU that takes as long as is expected, with operators that were
// observed.
#ifndef RFINJECT_CLI_TESTING_AS_MEASURED_H_
#define RFINJECT_CLI_TESTING_AS_MEASURED_H_

#include <string>

#include "cli/profile/profile.h"

namespace rfinject::cli::testing {

// Reads integration_tests/golden/traces/NAME.rfx, from the working folder upwards; no runs where it is not there.
Profile ReadGoldenTrace(const std::string& name);

// The first run of `estimate`, measured on the board that it was estimated for. Each operator has two kernels, one of
// which only helps and takes no time.
Profile AsMeasured(const Profile& estimate);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_AS_MEASURED_H_
