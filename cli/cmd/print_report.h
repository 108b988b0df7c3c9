// File: print_report.h
//
// What `report`, `diff` and `run --report` share: choosing a format, and where the text goes.
#ifndef RFINJECT_CLI_CMD_PRINT_REPORT_H_
#define RFINJECT_CLI_CMD_PRINT_REPORT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/emit/formats.h"
#include "cli/profile/limit.h"

namespace rfinject::cli {

// The width and colour that the terminal behind `fd` has; 80 columns without colour where it is none.
TableOptions TableOptionsFor(int fd);

// The index of `word` in `words`. False after a complaint that says what there is; *code is the exit code then.
bool ChooseWord(std::string_view verb, std::string_view option, const std::string& word,
                std::span<const std::string_view> words, size_t* index, int* code);

// Reads --`name`, the microseconds of a launch, from 0 to a second; `us` stays as it is where the option was not
// given. Returns false after a complaint; *code is the exit code then.
bool ChooseMicroseconds(std::string_view verb, const std::string& name, const ParsedOptions& parsed, double* us,
                        int* code);

// What --format of this verb may name.
std::vector<std::string_view> FormatsOf(std::string_view verb);
// The format that --format names, or else the name of the output file. nullptr after a complaint; *code is the exit
// code then.
const Format* ChooseFormat(std::string_view verb, const ParsedOptions& parsed, int* code);

// Returns whether the sequences that set colours in a text of this format are ours.
inline Colors ColorsOf(const Format& format) { return format.name == "table" ? Colors::kOurs : Colors::kNone; }

// --raw, for CSV only. False after a complaint; *code is the exit code then.
bool ChooseCsvTexts(std::string_view verb, const ParsedOptions& parsed, const Format& format, CsvTexts* texts,
                    int* code);
inline constexpr Option kRawOption = {"raw", 0, "",
                                      "CSV with texts exactly as they are; without it, one that a spreadsheet\n"
                                      "would take for a formula gets an apostrophe in front"};

// --limit, what an output may hold at most.
inline constexpr Option kLimitOption = {"limit", 0, "WHAT=N",
                                        "at most so many runs, rows of a run, and bytes of a name, commas between;\n"
                                        "0: no limit. Default runs=1000,rows=100000,name=16384"};
// Bounds the profile by --limit and says on standard error what was left out. False after a mistake in the option;
// *code is the exit code then. Called before the traces are read with nullptr, which only looks at the option.
bool ApplyLimits(std::string_view verb, const ParsedOptions& parsed, Profile* profile, int* code);

// Chooses how wide tables are: --width, else --wide (every column), else what TableOptionsFor() says of standard
// output; in the file that -o names 80 columns without colours. False after a complaint; *code is the exit code then.
bool ChooseTableWidth(std::string_view verb, const ParsedOptions& parsed, TableOptions* options, int* code);
inline constexpr Option kWidthOption = {
    "width", 0, "N",
    "columns of the terminal that a table may take; default: $COLUMNS, else those of\n"
    "the terminal, else 80"};
inline constexpr Option kWideOption = {"wide", 0, "", "every column of a table, however wide that makes it"};

// TextOutput is where a verb's text goes: the file that -o names, complete or not at all, else standard output.
class TextOutput {
 public:
  // Opens the file before the work, so that a mistyped folder is known early. False after a complaint.
  bool Open(const std::string& output, const Replace& replace);
  bool to_file() const { return to_file_; }
  // Returns false after a complaint. `colors` says whether the sequences in `text` that set colours are ours
  // (tables).
  bool Write(const std::string& text, Colors colors);

 private:
  OutputFile file_;
  std::string output_;
  bool to_file_ = false;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_PRINT_REPORT_H_
