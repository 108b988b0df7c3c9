// File: user_calibration.h
//
// The user's own calibration, which `rfinject calibrate` writes: $XDG_CONFIG_HOME/rfinject/calibration.csv
// (~/.config/rfinject/calibration.csv). Every verb that makes reports uses it.
#ifndef RFINJECT_CLI_CMD_USER_CALIBRATION_H_
#define RFINJECT_CLI_CMD_USER_CALIBRATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/cmd/options.h"
#include "cli/cmd/user_file.h"
#include "cli/model/calibration.h"

namespace rfinject::cli {

inline constexpr Option kCalibrationOption = {
    "calibration", 0, "FILE",
    "of estimates: what rfinject calibrate measured; default: the file in ~/.config/rfinject.\n"
    "none: only what the command brings",
    kFiles};

// Returns its path; empty where RFINJECT_CONFIG is set, which replaces the user's settings, or where the environment
// names no folder.
std::string UserCalibrationPath();

// Its text; an error's message names the file and why it may not be used. NotFound: there is none.
absl::StatusOr<std::string> ReadCalibration(const std::string& path, WhoseFile whose);

// The calibration of reports: the table that the command brings and, over it, the file that --calibration names, or
// else the user's own. A failure is that of the file that was named; a user's own file that cannot be used is named
// in a message and left out.
absl::StatusOr<Calibration> ChosenCalibration(const ParsedOptions& parsed);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_USER_CALIBRATION_H_
