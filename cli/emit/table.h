// File: table.h
//
// Writes a part of a report's table, for outputs that show more beside it.
#ifndef RFINJECT_CLI_EMIT_TABLE_H_
#define RFINJECT_CLI_EMIT_TABLE_H_

#include <ostream>
#include <string_view>

#include "cli/emit/emit.h"

namespace rfinject::cli {

struct RowsLook {
  std::string_view always = {};                     // the name of a column that stays, however narrow the table is
  std::string_view how_to_see_more = ": --rows 0";  // behind the number of rows that are left out
};

// The report's rows under their heads, what is left out of them as one line, and the total: so many lines as rows are
// shown, and at most three.
void EmitRows(const Report& report, const TableOptions& options, const RowsLook& look, std::ostream& out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_TABLE_H_
