// File: cell_text.h
//
// The value of a cell as text: exact for machines, rounded for people.
#ifndef RFINJECT_CLI_EMIT_CELL_TEXT_H_
#define RFINJECT_CLI_EMIT_CELL_TEXT_H_

#include <string>
#include <vector>

#include "cli/emit/text_grid.h"
#include "cli/report/row_set.h"

namespace rfinject::cli {

// Returns `value` in decimals that read back as the same number, integers without an exponent; empty when it is not
// finite.
std::string NumberText(double value);

// Returns the cell as a table shows it: "1.2 ms", "45 %", "-" for nothing.
std::string TableText(const ColumnInfo& column, const TableLook& look, const Cell& cell);

// The columns that a table shows, left to right; `view` is one of the looks of ColumnInfo.
std::vector<const Column*> ShownIn(const RowSet& rows, TableLook ColumnInfo::*view);

// A column of a table for terminals. `least_width` is that of a column that may be shortened.
GridColumn GridColumnOf(const TableLook& look, size_t least_width = 0);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_CELL_TEXT_H_
