// File: attached.h
//
// What `attach` and `detach` share: the processes that are named, and how long one is waited for.
#ifndef RFINJECT_CLI_CMD_ATTACHED_H_
#define RFINJECT_CLI_CMD_ATTACHED_H_

#include <sys/types.h>

#include <climits>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {

inline constexpr Option kWaitOption = {
    "wait", 0, "SECONDS", "how long the program may stay out of Python (a sleep, a computation in C); default 5"};

// Reads the process ids and --wait. Returns 0, or the exit code after a complaint.
inline int ReadAttachWords(std::string_view verb, const ParsedOptions& parsed, std::vector<pid_t>* pids,
                           absl::Duration* patience) {
  uint64_t seconds = 5;
  if (parsed.Has("wait") && (!ParseNumber(parsed.Value("wait"), &seconds) || seconds > INT_MAX)) {
    return UsageError(verb, "--wait wants a number of seconds, not '" + parsed.Value("wait") + "'");
  }
  *patience = absl::Seconds(seconds);
  for (const std::string& word : parsed.words) {
    uint64_t pid = 0;
    if (!ParseNumber(word, &pid) || pid == 0 || pid > INT_MAX) {
      return UsageError(verb, absl::StrCat("'", word, "' is no number of a process"));
    }
    pids->push_back(static_cast<pid_t>(pid));
  }
  return pids->empty() ? UsageError(verb, "no process is named") : 0;
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_ATTACHED_H_
