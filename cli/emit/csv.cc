// The CSV of reports (RFC 4180 quoting, line feeds). The first column says what a line is: "row" (one of the chosen
// --by), "layer_phase" (the rows again, split by phase, with --by layer) or "roof". Sum over one kind of line only.
#include <string>
#include <utility>
#include <vector>

#include "cli/emit/csv_writer.h"
#include "cli/emit/emit.h"
#include "cli/report/column.h"

namespace rfinject::cli {
namespace {

// What every line begins with.
RowSet LinesOf(std::string_view record, size_t index, const Report& report, size_t size) {
  RowSet set;
  set.size = size;
  AppendConstant("record", std::string(record), &set);
  AppendConstant("source", std::string(SourceName(report.run.source)), &set);
  AppendConstant("run", uint64_t{index}, &set);
  AppendConstant("device", report.device_name, &set);
  AppendConstant("roofs_of", report.machine.name, &set);
  AppendConstant("batch_size", KnownCount(report.run.batch_size), &set);
  AppendConstant("steps", report.steps, &set);
  AppendConstant("samples", report.samples, &set);
  return set;
}

RowSet RowLines(std::string_view record, size_t index, const Report& report, const std::vector<Row>& rows) {
  RowSet set = LinesOf(record, index, report, rows.size());
  for (Column& column : RowsOf(report, rows).columns) {
    if (column.info.data) set.columns.push_back(std::move(column));
  }
  return set;
}

RowSet RoofLines(size_t index, const Report& report) {
  RowSet set = LinesOf("roof", index, report, report.roofs.size());
  const RowSet roofs = RoofsOf(report);
  for (const auto& [name, of_roof] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"roof_precision", "precision"},
           {"roof_level", "level"},
           {"roof_kind", "kind"},
           {"roof_peak_flop_per_s", "peak_flop_per_s"},
           {"roof_bytes_per_s", "bytes_per_s"},
           {"ridge_flop_per_byte", "ridge_flop_per_byte"},
           {"roof_path", "path"}}) {
    set.columns.push_back(*roofs.Find(of_roof));
    set.columns.back().info.name = name;
  }
  return set;
}

}  // namespace

void EmitCsv(std::span<const Report> reports, std::ostream& out, CsvTexts texts) {
  std::vector<RowSet> sets;
  for (size_t i = 0; i < reports.size(); ++i) {
    sets.push_back(RowLines("row", i + 1, reports[i], reports[i].rows));
    sets.push_back(RowLines("layer_phase", i + 1, reports[i], reports[i].layer_phases));
    if (reports[i].by == By::kClass)
      sets.push_back(RowLines("group_phase", i + 1, reports[i], reports[i].group_phases));
    sets.push_back(RoofLines(i + 1, reports[i]));
  }
  const Report none;  // for the head
  if (reports.empty()) sets = {RowLines("row", 0, none, none.rows), RoofLines(0, none)};
  WriteCsv(sets, texts, out);
}

}  // namespace rfinject::cli
