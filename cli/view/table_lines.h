// File: table_lines.h
//
// A Table as the texts that people read, for the formats that have them: the terminal's, Markdown and the page.
#ifndef RFINJECT_CLI_VIEW_TABLE_LINES_H_
#define RFINJECT_CLI_VIEW_TABLE_LINES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/view/document.h"

namespace rfinject::cli {

struct TableLine {
  std::vector<std::string> cells;  // one a look
  bool sums = false;               // it stands for several rows, and its first cell is a label
  std::vector<std::string> below = {};
};

struct TableLines {
  std::vector<TableLook> looks;  // of the columns that there are
  std::vector<Kind> kinds;
  size_t names = 1;  // as in Table
  std::vector<TableLine> lines;
};

// At most `most_rows` rows (0: all), those that the table says, then the line of those that were left out, then the
// total. `more` is what the former says behind "(12 more": ": --rows 0)".
TableLines LinesOf(const Table& table, size_t most_rows, std::string_view more);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_TABLE_LINES_H_
