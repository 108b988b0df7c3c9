// File: attached.h
//
// What `attach` and `detach` share: the processes that are named, and how long one is waited for.
#ifndef RFINJECT_CLI_CMD_ATTACHED_H_
#define RFINJECT_CLI_CMD_ATTACHED_H_

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {

inline constexpr Option kWaitOption = {
    "wait", 0, "SECONDS", "how long the program may stay out of Python (a sleep, a computation in C); default 5"};
inline constexpr Option kJobOption = {
    "job", 0, "NAME",
    "all ranks of a job on this machine: Slurm's number, torchrun's --rdzv-id, or a PID of the job"};

struct Target {
  pid_t pid = 0;
  bool named = false;  // by the user; else found below a launcher or in a job
};

// Reads the process ids, --job and --wait. In the place of a launcher are the ranks that it started. Returns 0, or
// the exit code after a complaint.
int ReadAttachWords(std::string_view verb, const ParsedOptions& parsed, std::vector<Target>* targets,
                    absl::Duration* patience);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_ATTACHED_H_
