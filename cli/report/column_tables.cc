#include "cli/report/column_tables.h"

#include <span>

#include "cli/report/column.h"
#include "cli/report/diff.h"
#include "cli/report/memory.h"
#include "cli/report/run_list.h"
#include "cli/report/sweep.h"
#include "cli/report/waits.h"

namespace rfinject::cli {
namespace {

std::vector<ColumnInfo> InfosOf(const RowSet& rows) {
  std::vector<ColumnInfo> infos;
  for (const Column& column : rows.columns) {
    if (column.info.data) infos.push_back(column.info);
  }
  return infos;
}

std::vector<ColumnInfo> OfReports() {
  std::vector<ColumnInfo> infos;
  for (const ReportColumn& column : ReportColumns()) {
    if (column.info.data) infos.push_back(column.info);
  }
  return infos;
}

}  // namespace

std::vector<ColumnTable> AllColumnTables() {
  return {
      {"Reports", "rfinject report",
       "Sums run over all measured steps; `steps` says how many. `--by` decides which columns say what a row is. In "
       "CSV each line begins with `record` (row, layer_phase, group_phase or roof: add up one kind only), `source`, "
       "`run`, `device`, `roofs_of`, `batch_size`, `steps` and `samples`, and lines of roofs have columns of their "
       "own, behind the others.",
       OfReports()},
      {"Runs side by side", "rfinject report --by run",
       "A row a run; numbers are a step's where their names say so. In CSV `record` is run or correlation; lines of "
       "the latter have `column_a`, `column_b`, `spearman_rho` and `correlated_runs`.",
       InfosOf(RunsOf(Sweep{}, {}))},
      {"Comparisons", "rfinject diff",
       "A is before, B is after. In CSV each line begins with `record` (row or total), `pair`, `before`, `after` and "
       "`per_step`.",
       InfosOf(RowsOf(std::span<const DiffRow>()))},
      {"What a step waits for", "rfinject report --by wait, rfinject report --by rank",
       "In CSV each line begins with `run`, `device` and `source`.", InfosOf(RowsOf(WaitTable{}))},
      {"Memory", "rfinject report --by memory", "What was allocated when most was.",
       InfosOf(MemoryOf(std::span<const MemoryRow>()))},
      {"Runs", "rfinject runs", "A row a run.", InfosOf(RunRows({}))},
  };
}

}  // namespace rfinject::cli
