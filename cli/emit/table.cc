// The table for terminals. It fits the width that it is given: what does not fit is left out from the least important
// column on, and names are shortened last. Numbers are a step's, where steps are known.
#include "cli/emit/table.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/emit/cell_text.h"
#include "cli/emit/emit.h"
#include "cli/emit/opening.h"
#include "cli/emit/text_grid.h"
#include "cli/emit/words.h"
#include "cli/report/column.h"
#include "cli/report/kernel_name.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

// Columns of a higher priority number go before names are shortened.
constexpr int kNiceToHave = 6;
constexpr size_t kMostName = 60;  // a kernel's can be a page long

// What a row is called, which depends on what the rows are.
struct NameColumn {
  const char* title;
  std::function<std::string(const Row&)> text;
  size_t least_width;
  bool keep_end;  // when shortened
};

// What is in no layer: "(backward, no layer: Net::project and 2 more)".
std::string OutsideLabel(const Row& row) {
  std::string label = row.phase ? absl::StrFormat("(%s, no layer", PhaseName(row.phase)) : "(no layer";
  if (!row.caller.empty()) label += ": " + row.caller;
  if (row.other_callers > 0) label += " and " + Grouped(row.other_callers) + " more";
  return label + ")";
}

std::string LayerLabel(const Report& report, const Row& row) {
  if (row.model.empty()) return OutsideLabel(row);
  const bool several = report.run.models.size() > 1;
  if (row.layer.empty()) return row.model;
  return several ? row.model + "/" + row.layer : row.layer;
}

std::vector<NameColumn> NameColumns(const Report& report, By by) {
  const auto model = [](const Row& row) { return row.model.empty() ? OutsideLabel(row) : row.model; };
  const auto model_or_none = [](const Row& row) { return row.model.empty() ? std::string("(no layer)") : row.model; };
  const auto phase = [](const Row& row) { return std::string(PhaseName(row.phase)); };
  const auto layer = [&report](const Row& row) { return LayerLabel(report, row); };
  switch (by) {
    case By::kModel:
      return {{"model", model, 16, false}};
    case By::kPhase:
      return {{"phase", phase, 9, false}, {"model", model_or_none, 10, false}};
    case By::kLayer:
      return {{"layer", layer, 16, true}};
    case By::kOp:
      return {{"phase", phase, 9, false}, {"op", [](const Row& row) { return row.op; }, 14, true}};
    case By::kKernel:
      return {{"kernel", [](const Row& row) { return ShortKernelName(row.kernel); }, 18, false},
              {"layer",
               [](const Row& row) {
                 return row.model.empty()   ? (row.caller.empty() ? "-" : row.caller)
                        : row.layer.empty() ? row.model
                                            : row.layer;
               },
               12, true},
              {"phase", phase, 9, false}};
    case By::kClass:
      return {{"layers",
               [several = report.run.models.size() > 1](const Row& row) {
                 if (row.model.empty()) return OutsideLabel(row);
                 return (several ? row.model + "/" : "") + (row.group.empty() ? "(no class)" : row.group) +
                        (row.layers > 1 ? " x" + Grouped(row.layers) : "");
               },
               16, false}};
    case By::kSource:
      return {{"line",
               [](const Row& row) {
                 return row.line.empty() ? absl::StrFormat("(%s, no line)", PhaseName(row.phase)) : row.line;
               },
               16, true},
              {"function", [](const Row& row) { return row.function; }, 12, true}};
  }
  return {};
}

template <typename Holds>
bool AnyRow(const std::vector<Row>& rows, Holds holds) {
  return std::any_of(rows.begin(), rows.end(), holds);
}

// Returns the titles of the columns that there was no room for.
std::vector<std::string> WriteRows(const Report& report, By by, const std::vector<Row>& rows,
                                   const TableOptions& options, const RowsLook& look, std::ostream& out) {
  const bool theory = options.columns == TableColumns::kTheory;
  TableLook ColumnInfo::*const view = theory ? &ColumnInfo::second_table : &ColumnInfo::table;
  const std::vector<NameColumn> names = NameColumns(report, by);
  TextGrid grid;
  // The mark of an estimate stands on every line.
  grid.mark = report.run.source == SourceKind::kEstimated ? "~ " : "  ";
  grid.whole_cells_above = kNiceToHave;
  for (const NameColumn& name : names) {
    grid.columns.push_back({.title = name.title,
                            .right = false,
                            .least_width = name.least_width,
                            .keep_end = name.keep_end,
                            .most_width = kMostName});
  }

  const Keep keep = options.sorted && by == report.by ? Keep::kFirst : theory ? Keep::kMostFlop : Keep::kLongest;
  const Excerpt excerpt = ExcerptOf(report, rows, options.max_rows, keep);
  std::vector<const Row*> shown = excerpt.rows;
  if (excerpt.left_out > 0) shown.push_back(&excerpt.rest);
  shown.push_back(&excerpt.total);
  const RowSet set = RowsOf(report, std::span<const Row* const>(shown));
  std::vector<const Column*> values = ShownIn(set, view);
  std::erase_if(values, [&](const Column* value) {
    const bool nothing = value->info.name == "ideal_time_per_step_ns" && report.total.ideal_ns() <= 0;
    const bool unsampled = value->info.name == "time_ci95_relative" &&
                           !AnyRow(rows, [](const Row& row) { return HasInterval(row.time.trust); });
    // That an interval is by step need not be said on every line; why there is none, or not as good a one, must.
    const bool as_meant = value->info.name == "time_interval" && !AnyRow(rows, [](const Row& row) {
                            return row.time.trust != Trust::kNone && row.time.trust != Trust::kByStep;
                          });
    return nothing || unsampled || as_meant || !Keeps(by, value->info.name) ||
           (value->info.of_roofs && report.machine.name.empty());
  });
  for (const Column* value : values) {
    grid.columns.push_back(GridColumnOf(value->info.*view));
    if (value->info.name == look.always) grid.columns.back().priority = 0;
  }
  for (size_t i = 0; i < shown.size(); ++i) {
    GridLine line;
    if (i < excerpt.rows.size()) {
      for (const NameColumn& name : names) line.cells.push_back(name.text(*shown[i]));
    } else {
      line.span = names.size();
      line.cells.resize(names.size());
      line.cells[0] = shown[i] == &excerpt.total
                          ? "total"
                          : "(" + Grouped(excerpt.left_out) + " more" + std::string(look.how_to_see_more) + ")";
    }
    for (const Column* value : values) {
      const TableLook& look = value->info.*view;
      const bool blank = look.row_only && i >= excerpt.rows.size();
      std::string text = TableText(value->info, look, blank ? Cell{} : value->value(i));
      // Counted for the layer as a whole.
      if (!theory && value->info.of_counters && text != "-" && shown[i]->counters_shared) text.insert(0, "~");
      line.cells.push_back(std::move(text));
    }
    grid.lines.push_back(std::move(line));
  }
  return WriteGrid(grid, options.wide ? kAnyWidth : options.width, options.color, out);
}

void WriteHidden(const std::vector<std::string>& titles, int width, std::ostream& out) {
  if (titles.empty()) return;
  std::string text = absl::StrFormat("%d %s hidden", titles.size(), titles.size() == 1 ? "column" : "columns");
  for (size_t i = titles.size(); i-- > 0;) text += (i + 1 == titles.size() ? " (" : ", ") + titles[i];
  WriteWrapped(out, text + "): --wide", width, "  ", "  ");
}

const char* ByTitle(By by) {
  switch (by) {
    case By::kModel:
      return "By model";
    case By::kPhase:
      return "By phase";
    case By::kLayer:
      return "By layer";
    case By::kOp:
      return "By operator";
    case By::kKernel:
      return "By kernel";
    case By::kClass:
      return "By class of layers";
    case By::kSource:
      return "By line of the program";
  }
  return "";
}

std::string RunLine(const Report& report) {
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : ", ") + text; };
  for (const ModelInfo& model : report.models) {
    if (model.parameters > 0) add(model.class_name + " (" + Grouped(model.parameters) + " parameters)");
  }
  if (report.run.batch_size > 0) add("batch " + std::to_string(report.run.batch_size));
  add(StepsText(report));
  if (report.step_gpu_ns > 0) {
    add(Duration(report.step_gpu_ns) + " of GPU time a step");
    // An estimate's wall time is the time of another machine.
    if (report.run.source == SourceKind::kMeasured && report.step_wall_ns > 0) {
      add(Duration(report.step_wall_ns) + " of wall time");
    }
  }
  // All processes' of the device, and what a caching allocator keeps: what must fit, not what the tensors need.
  if (report.memory_peak_bytes > 0) {
    add("at most " + WithPrefix(static_cast<double>(report.memory_peak_bytes), "B") + " of device memory in use");
  }
  if (report.process_count > 1) add(Grouped(report.process_count) + " processes");
  if (!report.processes.empty() && !report.processes.front().torch_version.empty()) {
    add("torch " + report.processes.front().torch_version);
  }
  return line;
}

void WriteReport(const Report& report, const TableOptions& options, std::ostream& out) {
  const int width = options.width;
  const Letters letters(options.color);
  out << letters.bold;
  for (const std::string& line : OpeningText(report)) WriteWrapped(out, line, width, "", "  ");
  out << letters.plain << '\n';
  for (const std::string& line : FactsText(report)) WriteWrapped(out, line, width, "", "  ");
  WriteWrapped(out, RunLine(report), width, "", "  ");
  if (const std::string known = IntervalText(report); !known.empty()) WriteWrapped(out, known, width, "", "  ");
  WriteWrapped(out, "Attribution tier " + TierText(report.tier), width, "", "  ");

  const std::string per = report.steps > 0 ? ", a step" : ", over all";
  const std::string mark = report.run.source == SourceKind::kEstimated ? "   (~ estimated)" : "";
  if (report.by != By::kPhase) {
    out << '\n' << letters.bold << "By phase" << per << letters.plain << mark << '\n';
    WriteRows(report, By::kPhase, report.phases, options, {}, out);
  }
  out << '\n' << letters.bold << ByTitle(report.by) << per << letters.plain << mark << '\n';
  WriteHidden(WriteRows(report, report.by, report.rows, options, {}, out), width, out);

  const std::vector<DiagnosticInfo> diagnostics = DiagnosticsText(report);
  if (!report.alarms.empty() || !diagnostics.empty() || !report.drops.empty()) out << '\n';
  for (const Alarm& alarm : report.alarms) {
    out << letters.red;
    const std::string where = AlarmWhere(alarm), causes(AlarmCauses(alarm));
    WriteWrapped(out, AlarmText(alarm) + (where.empty() ? "" : " [" + where + "]"), width, alarm.id + " ", "     ");
    out << letters.plain;
    if (!causes.empty()) WriteWrapped(out, "likely: " + causes, width, "     ", "     ");
  }
  static constexpr const char* kSeverities[] = {"note: ", "warning: ", "error: "};
  for (const DiagnosticInfo& diagnostic : diagnostics) {
    WriteWrapped(out, diagnostic.text, width, kSeverities[std::clamp(diagnostic.severity, 0, 2)], "  ");
    if (!diagnostic.remedy.empty()) WriteWrapped(out, diagnostic.remedy, width, "  mend it: ", "  ");
  }
  for (const auto& [what, count] : report.drops) {
    WriteWrapped(out, Grouped(count) + " lost: " + what, width, "warning: ", "  ");
  }
}

}  // namespace

void EmitRows(const Report& report, const TableOptions& options, const RowsLook& look, std::ostream& out) {
  WriteRows(report, report.by, report.rows, options, look, out);
}

void EmitTable(std::span<const Report> reports, const TableOptions& options, std::ostream& out) {
  bool first = true;
  for (const Report& report : reports) {
    if (!first) out << '\n';
    first = false;
    WriteReport(report, options, out);
  }
}

}  // namespace rfinject::cli
