// File: try_changes.h
//
// The changes of `rfinject try`: those of injector/changes/, which are compiled in, and files of the user's own.
#ifndef RFINJECT_CLI_CMD_TRY_CHANGES_H_
#define RFINJECT_CLI_CMD_TRY_CHANGES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// A change that is compiled in.
struct ShippedChange {
  std::string_view name;    // "channels-last"
  std::string title;        // what it changes, from the file's first line
  std::string write;        // what a person writes instead
  std::string_view source;  // Python
};
// In the order of their names.
const std::vector<ShippedChange>& ShippedChanges();

// A change that the command line names.
struct WantedChange {
  std::string name;    // as it was given: "tf32", "compile=reduce-overhead", "@mine.py"
  std::string value;   // "reduce-overhead"
  std::string source;  // Python
  std::string write;
  std::string base;  // "compile"
};
// Whether the word means a change: the name of one, with or without =VALUE, or @FILE.
bool NamesAChange(std::string_view word);
// Fails where the file of @FILE cannot be read, or where no change has the name.
absl::StatusOr<WantedChange> FindChange(std::string_view word);

// What the file that the library runs in the program is to do besides.
struct ChangeOptions {
  std::string report;        // the file that it writes what it did to
  const Gpu* gpu = nullptr;  // of an estimate
  bool guard = true;         // writing outside of the program's folder ends the program
  bool seed = false;         // random numbers are the same in every run
  uint64_t losses = 0;       // so many losses are noted, and the program then ends; 0: none
  bool perturb = false;      // weights are rounded once
};
// The text of that file.
std::string ChangeFile(const ChangeOptions& options, std::span<const WantedChange> changes);

// What the file reported.
struct ChangeReport {
  struct Line {
    std::string change, state, text;
    bool edited = false;  // a patch does the same
  };
  std::vector<Line> lines;
  std::map<std::string, std::string> patches;  // by process, the unified diff of all that it changed
  std::vector<double> losses;                  // of the first process that had any
  std::string exception;                       // of the last process that ended with one
  std::string outside;                         // a file that would have been written outside of the folder
};
ChangeReport ReadChangeReport(std::string_view text);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_TRY_CHANGES_H_
