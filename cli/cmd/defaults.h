// File: defaults.h
//
// Defaults are the values that the user wants options to have where a command line gives none: files in TOML with a
// table for each verb, whose keys are the long names of its options.
//
//   [run]
//   overhead = 0.5
//   [report]
//   by = "op"
//
// Read are ./.rfinject.toml, then $XDG_CONFIG_HOME/rfinject.toml (~/.config/rfinject.toml); RFINJECT_CONFIG names one
// file in their place. A value in an earlier file wins.
//
// A variable of the environment goes before the files. The options of `run` and `env` are RFINJECT_OVERHEAD and so
// on, which the injected library reads; those of the other verbs have the verb's name in them, RFINJECT_REPORT_BY=op.
// A flag is turned on by 1 and off by 0. An empty RFINJECT_CONFIG turns off the files and the variables of other
// verbs.
//
// A file is used only if it is the user's (or root's) and nobody else may write to it. The one in the working folder
// may have come with a program that somebody else wrote: options that name files or programs, or that replace files,
// are not taken from it.
#ifndef RFINJECT_CLI_CMD_DEFAULTS_H_
#define RFINJECT_CLI_CMD_DEFAULTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {

struct Default {
  std::string verb, option, value;  // a flag's value is empty, as in ParsedOptions
};

struct DefaultsFile {
  std::string path;
  std::vector<Default> defaults;
  std::string ignored;  // why it is not used, in a clause; empty: it is
};

// The files that are there, in the order in which they count. An error names file, line and reason.
absl::StatusOr<std::vector<DefaultsFile>> ReadDefaultsFiles();

// Reads the text of one file. `of_folder` says that it is the one in the working folder, which may not set every
// option. For ReadDefaultsFiles and tests.
absl::StatusOr<std::vector<Default>> ParseDefaults(std::string_view text, const std::string& path, bool of_folder);

// Gives those options of `verb` that the command line does not have the values of the variables and the files. Those
// of `run` and `env` that a variable gives are left as they are: the variable reaches the library by itself.
absl::Status ApplyDefaults(std::string_view verb, const VerbHelp& help, ParsedOptions* parsed);

// Returns the variable that does what an option does: "RFINJECT_MAX_SIZE" for run --max-size, "RFINJECT_REPORT_BY"
// for report --by.
std::string VariableOf(std::string_view verb, std::string_view option);

// Returns the variables among `names` that begin as one of a verb's options would, and are none's.
std::vector<std::string> UnknownVariables(const std::vector<std::string>& names);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_DEFAULTS_H_
