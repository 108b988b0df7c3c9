// File: format.h
//
// An output format is one file of this folder: a function that writes any Document. The build finds it by its name:
// csv.cc defines formats::csv().
#ifndef RFINJECT_CLI_FORMAT_FORMAT_H_
#define RFINJECT_CLI_FORMAT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cli/view/document.h"

namespace rfinject::cli {

// A spreadsheet takes a text that begins with "=", "+", "-" or "@" for a formula, which can fetch a page or start a
// program, and names come from programs that we do not know.
enum class CsvTexts : uint8_t {
  kForSpreadsheets,  // such a text gets an apostrophe in front
  kExact,            // for machines
};

struct WriteOptions {
  int width = 80;     // columns of the terminal
  bool wide = false;  // tables show every column, however wide that makes them
  bool color = false;
  size_t most_rows = 40;  // of a table; the rest is summed up in one line. 0: all
  size_t height = 0;      // lines of a screen: the last table gets what is left, and no more is written; 0: no limit
  CsvTexts csv_texts = CsvTexts::kForSpreadsheets;
};

struct Format {
  std::string_view name;  // as --format has it, and the ending of a file's name
  // Fails with InvalidArgument, and a message that goes on after the document's name, where the document has nothing
  // that this format shows.
  absl::Status (*write)(const Document& document, const WriteOptions& options, std::ostream& out);
  std::string_view also = {};  // an older name, which --format still takes
  bool colors = false;         // the sequences that set colours in its texts are ours
  bool pictures_only = false;  // of no use to a command whose documents hold no picture
  bool whole_run = false;      // it has room for all views of a run (view/page.h)
};

// In the order of their names.
std::span<const Format> AllFormats();

// The one that is written where nothing asks for another.
inline constexpr std::string_view kDefaultFormat = "table";

// The format of this name, or older name; nullptr when there is none.
const Format* FindFormat(std::string_view name);

// The name of the format that a file's name asks for: "svg" for "picture.svg", the default where it asks for none.
std::string_view FormatOfName(std::string_view output);

// The names of all formats, for --format and its help; without those that show only pictures where `pictures` is
// false.
std::vector<std::string_view> FormatNames(bool pictures = true);

// Whether a spreadsheet could take a cell with `text` for a formula.
bool LooksLikeFormula(std::string_view text);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_FORMAT_FORMAT_H_
