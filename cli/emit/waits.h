// File: waits.h
//
// The outputs of `report --by wait`, what a step waits for, and of `report --by rank`, the same for each rank.
#ifndef RFINJECT_CLI_EMIT_WAITS_H_
#define RFINJECT_CLI_EMIT_WAITS_H_

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cli/emit/csv_writer.h"
#include "cli/emit/emit.h"
#include "cli/report/waits.h"

namespace rfinject::cli {

enum class WaitRows : uint8_t { kParts, kRanks };

void EmitWaitTable(std::span<const WaitTable> tables, WaitRows rows, const TableOptions& options, std::ostream& out);

// All there is, whichever rows a table would have: the object of schema rfinject.waits/1, and the CSV.
void EmitWaitJson(std::span<const WaitTable> tables, std::ostream& out);
void EmitWaitCsv(std::span<const WaitTable> tables, std::ostream& out, CsvTexts texts = CsvTexts::kForSpreadsheets);

// What a reader is told first, a sentence each: how long a step takes, whose clock that is, and how ranks differ.
std::vector<std::string> WaitTexts(const WaitTable& table);
// The first of these sentences, and those about ranks, of which a single rank has none. Some step must have a time.
std::string StepText(const WaitTable& table);
std::vector<std::string> RankTexts(const WaitTable& table);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_WAITS_H_
