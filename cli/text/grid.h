// File: grid.h
//
// Writes tables for terminals, of any content, in columns that fit a width; the least important column is left out
// first.
#ifndef RFINJECT_CLI_TEXT_GRID_H_
#define RFINJECT_CLI_TEXT_GRID_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

// What turns bold and red letters on, and both off; nothing where there are no colours.
struct Letters {
  explicit Letters(bool color) {
    if (!color) return;
    bold = "\033[1m";
    red = "\033[31m";
    plain = "\033[0m";
  }
  const char* bold = "";
  const char* red = "";
  const char* plain = "";
};

// The first or the last `width` characters of printable `text`, with ".." for the rest.
std::string Shortened(const std::string& text, size_t width, bool keep_end);
// How tables for people show a column. The order of columns is that of the list that holds these.
struct TableLook {
  std::string_view column = {};  // ColumnInfo::name, where the table is of a row set
  std::string_view title = {};
  size_t width = 0;            // fixed; what is wider sticks out. 0: that of the widest cell
  int priority = 0;            // columns of the highest are left out first where there is no room; 0 always stays
  std::string_view unit = {};  // behind the prefix, where it is not the title that says it
  bool left = false;           // aligned
  bool row_only = false;       // lines that sum up rows have nothing here
  size_t least_width = 0;      // of a column that may be shortened; 0: it may not
  bool keep_end = false;       // when shortened
  size_t most_width = SIZE_MAX;
  size_t gap = 1;  // in front of it
};

struct GridLine {
  std::vector<std::string> cells;  // one a column
  size_t span = 0;                 // > 0: the first cell is a label over that many columns
  std::vector<std::string> below;  // lines of their own, indented, of any width
};

struct TextGrid {
  std::vector<TableLook> columns;
  std::vector<GridLine> lines;
  std::string mark = "  ";  // in front of every line, "~ " for estimates
  bool head = true;         // the titles come first
};

// Writes the head and the lines in at most `width` columns, as far as the columns that must stay allow it. Returns
// the titles of the columns that were left out.
std::vector<std::string> WriteGrid(const TextGrid& grid, int width, bool color, std::ostream& out);
inline constexpr int kAnyWidth = INT_MAX;

// `text` in lines of at most `width` columns, broken at spaces; further lines are indented.
void WriteWrapped(std::ostream& out, std::string_view text, int width, const std::string& first,
                  const std::string& indent);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_GRID_H_
