// File: memory.h
//
// The outputs of `report --by memory`: what was in the device's memory when it was fullest.
#ifndef RFINJECT_CLI_EMIT_MEMORY_H_
#define RFINJECT_CLI_EMIT_MEMORY_H_

#include <ostream>
#include <span>

#include "cli/emit/csv_writer.h"
#include "cli/emit/emit.h"
#include "cli/report/memory.h"

namespace rfinject::cli {

void EmitMemoryTable(std::span<const MemoryTable> tables, const TableOptions& options, std::ostream& out);

// All rows: the object of schema rfinject.memory/1, and the CSV.
void EmitMemoryJson(std::span<const MemoryTable> tables, std::ostream& out);
void EmitMemoryCsv(std::span<const MemoryTable> tables, std::ostream& out,
                   CsvTexts texts = CsvTexts::kForSpreadsheets);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_MEMORY_H_
