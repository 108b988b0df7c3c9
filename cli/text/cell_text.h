// File: cell_text.h
//
// The value of a cell as text: exact for machines, rounded for people.
#ifndef RFINJECT_CLI_TEXT_CELL_TEXT_H_
#define RFINJECT_CLI_TEXT_CELL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/text/grid.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

// Returns `value` in decimals that read back as the same number, integers without an exponent; empty when it is not
// finite.
std::string NumberText(double value);

// How tables for people show a column. The order of columns is that of the list that holds these.
struct TableLook {
  std::string_view column;  // ColumnInfo::name
  std::string_view title;
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

// Returns the cell as a table shows it: "1.2 ms", "45 %", "-" for nothing.
std::string TableText(const ColumnInfo& column, const TableLook& look, const Cell& cell);

// The same as a column of a table for terminals.
GridColumn GridColumnOf(const TableLook& look);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_CELL_TEXT_H_
