// File: csv_writer.h
//
// Writes row sets as CSV (RFC 4180 quoting, line feeds).
//
// A spreadsheet takes a cell that begins with "=", "+", "-" or "@" for a formula, which can fetch a page or start a
// program, and names come from programs that we do not know. Such a text gets an apostrophe in front unless texts are
// wanted exactly as they are; numbers are never touched.
#ifndef RFINJECT_CLI_EMIT_CSV_WRITER_H_
#define RFINJECT_CLI_EMIT_CSV_WRITER_H_

#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

#include "cli/report/row_set.h"

namespace rfinject::cli {

enum class CsvTexts : uint8_t {
  kForSpreadsheets,  // no text is a formula
  kExact,            // for machines
};

// Whether a spreadsheet could take a cell with `text` for a formula.
bool LooksLikeFormula(std::string_view text);

// Writes one table. Its head has the columns of all sets, each where it first occurs; a line is empty in the columns
// that its set lacks.
void WriteCsv(std::span<const RowSet> sets, CsvTexts texts, std::ostream& out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_CSV_WRITER_H_
