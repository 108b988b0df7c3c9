// File: shared_options.h
//
// Options that several verbs have, read the same everywhere. A verb reads its options into a struct:
//
//   absl::StatusOr<ReportArguments> Read(const ParsedOptions& parsed) {
//     OptionReader reader(parsed);
//     ReportArguments given{.format = reader.FormatOption(), .rows = reader.Number("rows", 40)};
//     return reader.ok() ? absl::StatusOr<ReportArguments>(given) : reader.status();
//   }
#ifndef RFINJECT_CLI_CMD_SHARED_OPTIONS_H_
#define RFINJECT_CLI_CMD_SHARED_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/cmd/options.h"
#include "cli/format/format.h"
#include "cli/model/calibration.h"
#include "cli/profile/limit.h"

namespace rfinject::cli {

inline constexpr Option kRawOption = {"raw", 0, "",
                                      "CSV with texts exactly as they are; without it, one that a spreadsheet\n"
                                      "would take for a formula gets an apostrophe in front"};
inline constexpr Option kLimitOption = {"limit", 0, "WHAT=N",
                                        "at most so many runs, rows of a run, and bytes of a name, commas between;\n"
                                        "0: no limit. Default runs=1000,rows=100000,name=16384"};
inline constexpr Option kWidthOption = {
    "width", 0, "N",
    "columns of the terminal that a table may take; default: $COLUMNS, else those of\n"
    "the terminal, else 80"};
inline constexpr Option kWideOption = {"wide", 0, "", "every column of a table, however wide that makes it"};
inline constexpr Option kRowsOption = {"rows", 0, "N", "rows of a table, those that matter most; 0: all. Default 40"};

// --format, which takes any format, or any but pictures.
Option FormatOption(bool pictures = true);

// The width and colour that the terminal behind `fd` has; 80 columns without colour where it is none.
WriteOptions WriteOptionsFor(int fd);

// Reads options one after the other. After a mistake it gives defaults, and status() says what the first one was:
// InvalidArgument, with a line for the user that goes on after "rfinject VERB: ".
class OptionReader {
 public:
  explicit OptionReader(const ParsedOptions& parsed) : parsed_(parsed) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  // Only the first mistake is kept.
  void Refuse(std::string_view text) { Keep(absl::InvalidArgumentError(std::string(text))); }
  void Keep(absl::Status status) { status_.Update(std::move(status)); }

  // The index in `words` of the option's word, or else of `otherwise`, which must be one of them.
  size_t Word(std::string_view name, std::span<const std::string_view> words, std::string_view otherwise);
  // A number of at least `least`.
  uint64_t Number(std::string_view name, uint64_t otherwise, uint64_t least = 0);
  // Microseconds from 0 to a second, as ns.
  double MicrosecondsAsNs(std::string_view name, double otherwise_ns);
  // What --format names, or else the name of the output file.
  const Format* FormatOption(bool pictures = true);
  // --width, --wide, --rows and --raw, for text that goes to what -o names.
  WriteOptions Writing(const Format* format);
  // --limit.
  Limits Limit();
  // --calibration: the table that the command brings and, over it, the file that the option names, or else the user's
  // own. A user's own file that cannot be used is named in a message and left out.
  Calibration CalibrationOption();

 private:
  const ParsedOptions& parsed_;
  absl::Status status_;
};

// Says why a verb cannot go on. Returns the exit code: 2 for InvalidArgument, else 1. Of a Cancelled status nothing
// is said, because something was said already.
int Refused(std::string_view verb, const absl::Status& status);

// Bounds the profile and says on standard error what was left out.
void ApplyLimits(const Limits& limits, Profile* profile);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_SHARED_OPTIONS_H_
