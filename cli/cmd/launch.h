// File: launch.h
//
// What a program needs in its environment to run under rfinject: shared by `run`, `env` and `doctor`.
#ifndef RFINJECT_CLI_CMD_LAUNCH_H_
#define RFINJECT_CLI_CMD_LAUNCH_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {

// The options that become variables: --output, --estimate and the options that go with it, --steps, --skip, --kill,
// --overhead, -q, -v.
std::span<const Option> LaunchOptions();

// Returns the path of librfinject.so: RFINJECT_LIBRARY, else ../lib/librfinject.so or ../lib/rfinject/librfinject.so
// from the executable. It is empty when the file is at none of these; `*tried` then says where it was looked for.
std::string FindLibrary(std::string* tried);

struct LaunchVariables {
  std::string library;
  std::vector<std::pair<std::string, std::string>> settings;  // RFINJECT_*
  std::string note;  // how an ambiguous option was understood; empty if there was none
};

// Checks the options and turns them into variables, all but the library. A failure says what is wrong with which
// option.
absl::StatusOr<LaunchVariables> MakeVariables(const ParsedOptions& options);

// Finds the library. A failure says why it cannot be used.
absl::Status AddLibrary(LaunchVariables* variables);

// Puts `library` in front of what the variable LD_PRELOAD holds already; it is not added a second time.
std::string PrependPreload(const std::string& library, const std::string& existing);

// Returns the absolute form of an output pattern. Percent signs in the working folder's name are doubled, because
// patterns have placeholders.
std::string AbsolutePattern(const std::string& pattern);

// Returns the part of a pattern that is a folder in any case: everything up to the last '/' before the first
// placeholder.
std::string PatternFolder(const std::string& pattern);

// Refuses an output that is there and neither a file nor a folder: the library writes through no link, and into no
// pipe or device, so the trace would get a name beside it that nobody expects.
absl::Status CheckOutputFile(const std::string& pattern);

// What is to be said where the output is a file that is there: traces replace nothing, and get a name beside it.
// Empty: nothing.
std::string TakenOutputNote(const std::string& pattern);

// Creates the folder (0700, with those above it) and checks that files can be made in it. A failure names the
// folder that it is about.
absl::Status PrepareFolder(const std::string& folder);

// "A100x: no such GPU in the table; nearest: A100-SXM4-40GB, … (rfinject gpus lists all)".
std::string UnknownGpu(std::string_view name);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_LAUNCH_H_
