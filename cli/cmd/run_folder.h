// File: run_folder.h
//
// Names the folder that a run gets when the user names none, and makes the id that its processes share.
#ifndef RFINJECT_CLI_CMD_RUN_FOLDER_H_
#define RFINJECT_CLI_CMD_RUN_FOLDER_H_

#include <span>
#include <string>

#include "absl/time/time.h"

namespace rfinject::cli {

// Returns the name of the program: "train" for `python -u train.py -a`, "pkg.train" for `python -m pkg.train`,
// "torchrun" where no script is named. It has letters, digits, '.', '_' and '-' only.
std::string ScriptName(std::span<const std::string> words);

// "20260102-030405-train-4711": local time, script and the number of this process, so that two runs that start in the
// same second have a folder each; followed by -2, -3, ... where `folder` has that already. In a rank that a launcher
// started, the launcher's number takes the place of both numbers, so that all ranks get one name: "job77.0-train".
std::string RunFolderName(const std::string& folder, std::span<const std::string> words, absl::Time now, int process);

// A new id for RFINJECT_JOB: "HOST.PID.TIME". Empty in a rank that a launcher started, whose id counts, and where the
// variable is set already.
std::string NewJobId();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_RUN_FOLDER_H_
