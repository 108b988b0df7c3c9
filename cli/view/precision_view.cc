// The precisions that the FLOP of a run ran in, and what each could do: whether autocast and TF32 are at work.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/picture/names.h"
#include "cli/report/rows/picture_data.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

// FLOP of one precision in a run.
struct PrecisionRow {
  Precision precision{};
  double flop = 0;  // of all measured steps
  double flop_per_step = 0;
  double share = 0;            // of the run's FLOP
  double peak_flop_per_s = 0;  // the datasheet's; 0: not known
};

constexpr auto kColumns = std::to_array<ColumnOf<PrecisionRow>>({
    {TextColumn("precision", "Number type, and _tc on tensor cores."),
     [](const PrecisionRow& row) { return TextCell(kPrecisionNames[static_cast<size_t>(row.precision)]); }},
    {UnitColumn("flop", "FLOP", "Executed FLOP over all measured steps.").Additive(),
     [](const PrecisionRow& row) { return Cell{row.flop}; }},
    {UnitColumn("flop_per_step", "FLOP", "The same of a step.").Additive(),
     [](const PrecisionRow& row) { return Cell{row.flop_per_step}; }},
    {ShareColumn("flop_share", "Of the run's FLOP.").Additive(),
     [](const PrecisionRow& row) { return Cell{row.share}; }},
    {UnitColumn("peak_flop_per_s", "FLOP/s", "What the datasheet allows."),
     [](const PrecisionRow& row) { return KnownCell(row.peak_flop_per_s); }},
    {UnitColumn("least_time_per_step_ns", "ns", "FLOP of a step over that peak.").Additive(),
     [](const PrecisionRow& row) {
       return row.peak_flop_per_s > 0 ? Cell{1e9 * row.flop_per_step / row.peak_flop_per_s} : Cell{};
     }},
});

constexpr auto kPrecisionLooks = std::to_array<TableLook>({
    {.column = "name", .title = "precision", .left = true},
    {.column = "flop_per_step", .title = "FLOP a step"},
    {.column = "flop_share", .title = "share"},
    {.column = "peak_flop_per_s", .title = "peak FLOP/s"},
    {.column = "least_time_per_step_ns", .title = "least time", .priority = 1},
});

struct OwnedPrecisions {
  std::vector<Report> reports;
  std::vector<std::vector<PrecisionRow>> rows;  // of each report, most FLOP first
};

std::vector<PrecisionRow> RowsOf(const Report& report) {
  std::vector<PrecisionRow> rows;
  const FlopByPrecision flop = report.total.sums.flop();
  for (const Headline::PrecisionShare& one : report.headline.precisions) {
    const auto index = static_cast<size_t>(one.precision);
    rows.push_back({.precision = one.precision,
                    .flop = flop[index],
                    .flop_per_step = PerStep(report, flop[index]),
                    .share = one.share,
                    .peak_flop_per_s = report.machine.peak[index]});
  }
  return rows;
}

Section SectionOf(const Report& report, const std::vector<PrecisionRow>& rows) {
  Section section{.id = "precisions"};
  section.heading =
      ReportTitle(report) + ": FLOP by precision" + (report.steps.count > 0 ? ", a step" : ", over all");
  if (rows.empty()) {
    section.lead.push_back({.text = "No FLOP are known."});
    return section;
  }
  Table table{.rows = RowSetOf(kColumns, rows), .looks = {kPrecisionLooks.begin(), kPrecisionLooks.end()}};
  table.rows.AddText(
      "name", [&rows](size_t i) { return std::string(kPrecisionTitles[static_cast<size_t>(rows[i].precision)]); });
  table.estimated = report.run.source == SourceKind::kEstimated;
  section.table = std::move(table);
  return section;
}

}  // namespace

RowSet PrecisionColumns() { return RowSetOf(kColumns, std::span<const PrecisionRow>()); }

Document PrecisionDocument(std::vector<Report> reports) {
  const auto owner = std::make_shared<OwnedPrecisions>();
  owner->reports = std::move(reports);
  for (const Report& report : owner->reports) owner->rows.push_back(RowsOf(report));
  Document document{.title = DocumentTitle("rfinject report", owner->reports), .owner = owner};
  Data runs = Data::List();
  for (size_t i = 0; i < owner->reports.size(); ++i) {
    const Report& report = owner->reports[i];
    document.sections.push_back(SectionOf(report, owner->rows[i]));
    const RowSet rows = RowSetOf(kColumns, owner->rows[i]);
    runs.Append(Data::Object()
                    .Add("device", report.device.name)
                    .Add("source", SourceName(report.run.source))
                    .Add("steps", Cell{report.steps.count})
                    .Add("rows", rows));
    document.lines.push_back(WithConstants({{"run", uint64_t{i + 1}},
                                            {"device", report.device.name},
                                            {"source", std::string(SourceName(report.run.source))},
                                            {"steps", report.steps.count}},
                                           rows));
  }
  document.data.Add("schema", "rfinject.precisions/1").Add("runs", std::move(runs));
  return document;
}

}  // namespace rfinject::cli
