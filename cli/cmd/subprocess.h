// File: subprocess.h
//
// Runs a program to its end and keeps what it wrote, for `doctor`, `calibrate` and `try`.
#ifndef RFINJECT_CLI_CMD_SUBPROCESS_H_
#define RFINJECT_CLI_CMD_SUBPROCESS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rfinject::cli {

struct SubprocessResult {
  int code = -1;  // exit code; 128 + signal; -1: could not be started, or did not end in time
  bool timed_out = false;
  std::string output;  // standard output, at most 64 KiB
  std::string errors;  // standard error, as much of it
};

// `environment` is added to ours; an empty value unsets. Killed after `timeout_s` seconds, with all it started; ends
// when we do. `in_child` is called in the new process before the program; where it returns false there is no program,
// and the exit code is 127.
SubprocessResult RunSubprocess(const std::vector<std::string>& words,
                               const std::vector<std::pair<std::string, std::string>>& environment, int timeout_s,
                               const std::string& folder = {}, const std::function<bool()>& in_child = nullptr);

// The last line of what a program wrote, without blanks behind it.
std::string LastLine(std::string_view text);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_SUBPROCESS_H_
