// File: stacks.h
//
// The outputs of `report --by stack`: the launches in no layer, with the native call stacks that they came from.
#ifndef RFINJECT_CLI_EMIT_STACKS_H_
#define RFINJECT_CLI_EMIT_STACKS_H_

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cli/emit/csv_writer.h"
#include "cli/report/stacks.h"

namespace rfinject::cli {

struct StackTable {
  std::string title;   // of the run
  uint64_t steps = 0;  // measured ones
  std::vector<StackRow> rows;
};

// At most `max_rows` rows a run (0: all), each with its frames, innermost first. Times are a step's.
void EmitStackTable(std::span<const StackTable> tables, size_t max_rows, std::ostream& out);

// All rows; the object of schema rfinject.stacks/1 and the CSV have the sums over all measured steps, and the steps.
void EmitStackJson(std::span<const StackTable> tables, std::ostream& out);
void EmitStackCsv(std::span<const StackTable> tables, std::ostream& out, CsvTexts texts = CsvTexts::kForSpreadsheets);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_STACKS_H_
