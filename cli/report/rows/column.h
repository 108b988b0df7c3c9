// File: column.h
//
// The columns of reports: one table, from which the terminal's table, CSV, JSON and the page take theirs. A new
// column is an entry of column.cc; a new sum is a line of quantity.h, which makes a column here.
#ifndef RFINJECT_CLI_REPORT_ROWS_COLUMN_H_
#define RFINJECT_CLI_REPORT_ROWS_COLUMN_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cli/report/report.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

struct ReportRow {
  const Report& report;
  const Row& row;
};
using ReportColumn = ColumnOf<ReportRow>;

// The columns of a report: those that say which row it is and what is known of its layer, its sums over all measured
// steps, what follows from these, and what is a step's.
std::span<const ReportColumn> ReportColumns();

// Whether rows of this grouping have the column at all; the others would be nothing in every row.
bool Keeps(By by, std::string_view column);
// Whether the column says which row it is.
bool IsIdentity(std::string_view column);

// `rows`, which are of `report`, with all columns.
RowSet RowsOf(const Report& report, std::span<const Row> rows);
RowSet RowsOf(const Report& report, std::span<const Row* const> rows);

// The report's roofs, with the columns that JSON and CSV call "peak_flop_per_s" and so on.
RowSet RoofsOf(const Report& report);

// The GPUs of the run, as the driver describes them. Facts that the trace does not have are empty cells.
RowSet DevicesOf(const Report& report);

// The whole run as a row: the last line of tables.
Row TotalRow(const Report& report);

// The column that has `name` in CSV and JSON, in any case; nullptr where there is none.
const ReportColumn* FindColumn(std::string_view name);

// Puts the rows of the report into the order of a column: numbers from the largest on, texts from A on, rows without
// a value last. Rows that are equal keep their order.
void SortRows(const ReportColumn& column, Report* report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_COLUMN_H_
