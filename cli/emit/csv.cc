// The CSV of reports (RFC 4180 quoting, line feeds). The first column says what a line is: "row" (one of the chosen
// --by), "layer_phase" (the rows again, split by phase, with --by layer) or "roof". Sum over one kind of line only.
#include <string>
#include <vector>

#include "cli/emit/columns.h"
#include "cli/emit/csv_writer.h"
#include "cli/emit/emit.h"

namespace rfinject::cli {
namespace {

void WriteRun(CsvWriter& csv, std::string_view record, size_t index, const Report& report) {
  csv.Text(record);
  csv.Text(SourceName(report.run.source));
  csv.Text(std::to_string(index));
  csv.Text(report.device_name);
  csv.Text(report.machine.name);
  csv.Value(report.run.batch_size == 0 ? Cell{} : Cell{report.run.batch_size});
  csv.Value(report.steps);
  csv.Value(report.samples);
}

void WriteRows(CsvWriter& csv, std::string_view record, size_t index, const Report& report,
               const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    WriteRun(csv, record, index, report);
    for (const Column& column : IdentityColumns()) csv.Value(column.cell(report, row));
    for (const Column& column : NumberColumns()) csv.Value(column.cell(report, row));
    for (int i = 0; i < 7; ++i) csv.Value({});
    csv.EndLine();
  }
}

}  // namespace

void EmitCsv(std::span<const Report> reports, std::ostream& out) {
  CsvWriter csv(out);
  for (const char* name : {"record", "source", "run", "device", "roofs_of", "batch_size", "steps", "samples"}) {
    csv.Text(name);
  }
  for (const Column& column : IdentityColumns()) csv.Text(column.name);
  for (const Column& column : NumberColumns()) csv.Text(column.name);
  for (const char* name : {"roof_precision", "roof_level", "roof_kind", "roof_peak_flop_per_s", "roof_bytes_per_s",
                           "ridge_flop_per_byte", "roof_path"}) {
    csv.Text(name);
  }
  csv.EndLine();
  for (size_t i = 0; i < reports.size(); ++i) {
    const Report& report = reports[i];
    WriteRows(csv, "row", i + 1, report, report.rows);
    WriteRows(csv, "layer_phase", i + 1, report, report.layer_phases);
    for (const RoofLine& roof : report.roofs) {
      WriteRun(csv, "roof", i + 1, report);
      for (size_t c = IdentityColumns().size() + NumberColumns().size(); c > 0; --c) csv.Value({});
      const auto known = [](double value) { return value > 0 ? Cell{value} : Cell{}; };
      csv.Text(roof.peak_flop_per_s > 0 ? kPrecisionNames[static_cast<size_t>(roof.precision)] : "");
      csv.Text(roof.level);
      csv.Text(roof.kind);
      csv.Value(known(roof.peak_flop_per_s));
      csv.Value(known(roof.bytes_per_s));
      csv.Value(known(roof.ridge_flop_per_byte));
      csv.Text(roof.path);
      csv.EndLine();
    }
  }
}

}  // namespace rfinject::cli
