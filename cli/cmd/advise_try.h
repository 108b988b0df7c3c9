// File: advise_try.h
//
// `rfinject advise --try`: from a run's advice to the command that makes the changes and measures them.
#ifndef RFINJECT_CLI_CMD_ADVISE_TRY_H_
#define RFINJECT_CLI_CMD_ADVISE_TRY_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cmd/options.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// The words behind `rfinject` that try what the advice of the largest run that is no validation names: `try`, the
// options, the changes, the program. Rules that no pair of programs has shown to be right count with `all` only.
// NotFound: no rule that holds names a change. FailedPrecondition: the trace does not say how to start the program
// again. The message is a line for the user.
absl::StatusOr<std::vector<std::string>> TryWords(std::span<const Report> reports, bool all);

// Shows the command and, where the person at the terminal agrees or --yes was given, carries it out. A trace may come
// from anywhere, so what it names as its command is never started unseen. Returns the exit code.
int TryAdvice(std::span<const Report> reports, const ParsedOptions& parsed);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_ADVISE_TRY_H_
