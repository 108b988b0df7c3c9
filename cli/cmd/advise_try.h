// File: advise_try.h
//
// `rfinject advise --try`: from a run's advice to the command that makes the changes and measures them.
#ifndef RFINJECT_CLI_CMD_ADVISE_TRY_H_
#define RFINJECT_CLI_CMD_ADVISE_TRY_H_

#include <span>

#include "cli/cmd/options.h"

namespace rfinject::cli {

struct Report;

// Shows the command and, where the person at the terminal agrees or --yes was given, carries it out. A trace may come
// from anywhere, so what it names as its command is never started unseen. Returns the exit code.
int TryAdvice(std::span<const Report> reports, const ParsedOptions& parsed);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_ADVISE_TRY_H_
