// File: sweep.h
//
// The outputs of `report --by run`: one function a format, as in emit.h.
#ifndef RFINJECT_CLI_EMIT_SWEEP_H_
#define RFINJECT_CLI_EMIT_SWEEP_H_

#include <ostream>
#include <span>

#include "cli/emit/emit.h"
#include "cli/report/sweep.h"

namespace rfinject::cli {

void EmitSweepTable(const Sweep& sweep, const TableOptions& options, std::ostream& out);
// Schema rfinject.sweep/1. Numbers are a step's unless their name says otherwise; what is unknown is null.
void EmitSweepJson(const Sweep& sweep, std::ostream& out);
// The column `record` is "run", or "correlation" with the two columns' names and Spearman's rho.
void EmitSweepCsv(const Sweep& sweep, std::ostream& out, CsvTexts texts = CsvTexts::kForSpreadsheets);
// The pictures are those of emit.h, of SweepPictures().

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_SWEEP_H_
