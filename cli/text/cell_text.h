// File: cell_text.h
//
// The value of a cell as text: exact for machines, rounded for people.
#ifndef RFINJECT_CLI_TEXT_CELL_TEXT_H_
#define RFINJECT_CLI_TEXT_CELL_TEXT_H_

#include <string>

#include "cli/text/grid.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

// Returns `value` in decimals that read back as the same number, integers without an exponent; empty when it is not
// finite.
std::string NumberText(double value);

// Returns the cell as machines read it; empty for nothing, and for a number that is not finite.
std::string ExactText(const Cell& cell);

// Returns the cell as a table shows it: "1.2 ms", "45 %", "-" for nothing.
std::string TableText(const ColumnInfo& column, const TableLook& look, const Cell& cell);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_CELL_TEXT_H_
