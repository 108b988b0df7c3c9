// File: column_tables.h
//
// All columns that CSV and JSON have, by what prints them, with what each says: `rfinject explain` and
// docs/reference/COLUMNS.md.
#ifndef RFINJECT_CLI_REPORT_COLUMN_TABLES_H_
#define RFINJECT_CLI_REPORT_COLUMN_TABLES_H_

#include <string_view>
#include <vector>

#include "cli/report/row_set.h"

namespace rfinject::cli {

struct ColumnTable {
  std::string_view title;  // "Comparisons"
  std::string_view of;     // the command: "rfinject diff"
  std::string_view text;   // what its numbers are of, and what stands before the columns in CSV
  std::vector<ColumnInfo> columns;
};

// Reports come first.
std::vector<ColumnTable> AllColumnTables();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COLUMN_TABLES_H_
