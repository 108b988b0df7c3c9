// File: csv_writer.h
//
// Writes row sets as CSV (RFC 4180 quoting, line feeds).
#ifndef RFINJECT_CLI_EMIT_CSV_WRITER_H_
#define RFINJECT_CLI_EMIT_CSV_WRITER_H_

#include <ostream>
#include <span>

#include "cli/report/row_set.h"

namespace rfinject::cli {

// One table: the head has the columns of all sets, each where it comes up first, and a line has nothing in those that
// its set lacks.
void WriteCsv(std::span<const RowSet> sets, std::ostream& out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_CSV_WRITER_H_
