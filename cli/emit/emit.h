// File: emit.h
//
// Each format has a function that takes Reports and writes the text of the output. It computes nothing: every number
// comes from the Report. Several reports (runs) make one document.
#ifndef RFINJECT_CLI_EMIT_EMIT_H_
#define RFINJECT_CLI_EMIT_EMIT_H_

#include <cstdint>
#include <ostream>
#include <span>

#include "cli/emit/csv_writer.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// What the columns of a table are about.
enum class TableColumns : uint8_t {
  kRoofline,  // time, FLOP, intensity, share of attainable
  kTheory,    // executed and model FLOP, DRAM and compulsory bytes, their ratios and what explains them
};

struct TableOptions {
  int width = 80;       // columns of the terminal
  bool wide = false;    // tables show every column, however wide that makes them
  bool sorted = false;  // the rows have an order that the user chose: tables show the first, not the longest
  bool color = false;
  size_t max_rows = 40;  // the rest is summed in one line "(n more)"; 0: all
  TableColumns columns = TableColumns::kRoofline;
  CsvTexts csv_texts = CsvTexts::kForSpreadsheets;
};

void EmitTable(std::span<const Report> reports, const TableOptions& options, std::ostream& out);
void EmitJson(std::span<const Report> reports, std::ostream& out);  // schema rfinject.report/1
// Units in the columns' names.
void EmitCsv(std::span<const Report> reports, std::ostream& out, CsvTexts texts = CsvTexts::kForSpreadsheets);
void EmitSvg(std::span<const Report> reports, std::ostream& out);
void EmitHtml(std::span<const Report> reports, std::ostream& out);  // one self-contained file

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_EMIT_H_
