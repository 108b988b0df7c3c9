// The rows of reports as tables, and the sentences around them.
#include "cli/view/report_view.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cli/picture/frames.h"
#include "cli/picture/names.h"
#include "cli/picture/roofline.h"
#include "cli/picture/time_view.h"
#include "cli/report/rows/kernel_name.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/cell_text.h"
#include "cli/text/units.h"
#include "cli/words/opening.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

// The columns of tables behind the rows' names, from left to right.
constexpr auto kRoofline = std::to_array<TableLook>({
    {.column = "class", .title = "class", .width = 14, .priority = 10, .left = true, .row_only = true},
    {.column = "launches_per_step", .title = "launches", .width = 8, .priority = 9},
    {.column = "time_per_step_ns", .title = "time", .width = 8},
    {.column = "time_ci95_relative", .title = "+-95 %", .width = 6, .priority = 8},
    {.column = "time_interval", .title = "interval", .width = 10, .priority = 9, .left = true},
    {.column = "time_share", .title = "share", .width = 6, .priority = 1},
    {.column = "ideal_time_per_step_ns", .title = "ideal", .width = 8, .priority = 4},
    {.column = "usual_time_per_step_ns", .title = "usual", .width = 8, .priority = 7},
    {.column = "measured_over_usual", .title = "x usual", .width = 7, .priority = 2},
    {.column = "other_gpu_time_per_step_ns", .title = "there", .width = 8, .priority = 1},
    {.column = "flop_per_step", .title = "FLOP", .width = 7, .priority = 6},
    {.column = "dram_bytes_per_step", .title = "bytes", .width = 7, .priority = 8, .unit = "B"},
    {.column = "oi_flop_per_byte", .title = "FLOP/B", .width = 6, .priority = 3},
    {.column = "performance_flop_per_s", .title = "FLOP/s", .width = 7, .priority = 4},
    {.column = "bandwidth_bytes_per_s", .title = "DRAM/s", .width = 7, .priority = 7, .unit = "B"},
    {.column = "attained_share", .title = "of roof", .width = 7, .priority = 2},
    {.column = "bound", .title = "bound", .width = 7, .priority = 5},
    {.column = "to_win_per_step_ns", .title = "to win", .width = 8, .priority = 6},
});
constexpr auto kTheory = std::to_array<TableLook>({
    {.column = "class", .title = "class", .width = 14, .priority = 10, .left = true, .row_only = true},
    {.column = "model_flop_per_step", .title = "model", .width = 7, .priority = 2},
    {.column = "flop_per_step", .title = "FLOP", .width = 7},
    {.column = "executed_flop_per_model_flop", .title = "ratio", .width = 6},
    {.column = "compulsory_bytes_per_step", .title = "must", .width = 7, .priority = 4, .unit = "B"},
    {.column = "dram_bytes_per_step", .title = "bytes", .width = 7, .priority = 3, .unit = "B"},
    {.column = "dram_bytes_per_compulsory_byte", .title = "ratio", .width = 6, .priority = 4},
    {.column = "flop_reason", .title = "reason", .width = 13, .priority = 5, .row_only = true},
});

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

// One row that no Report holds, with all columns. `report` must outlive it.
RowSet SingleRow(const Report& report, Row row) {
  RowSet set;
  set.size = 1;
  Append(
      ReportColumns(),
      [&report, owned = std::make_shared<const Row>(std::move(row))](size_t) {
        return ReportRow{report, *owned};
      },
      &set);
  return set;
}

RowSet SumOf(const Report& report, const std::vector<Row>& rows, std::span<const size_t> which) {
  Row sum;
  for (const size_t i : which) {
    sum.sums.Add(rows[i].sums);
    sum.time_share += rows[i].time_share;
  }
  sum.derived = Derive(sum.sums);
  return SingleRow(report, std::move(sum));
}

// Whether a table of these rows says something by this column.
bool Says(const Report& report, By by, const std::vector<Row>& rows, const ColumnInfo& column) {
  if (!Keeps(by, column.name) || (column.of_roofs && report.machine.name.empty())) return false;
  if (column.name == "ideal_time_per_step_ns") return report.total.sums.ideal_ns() > 0;
  if (column.name == "usual_time_per_step_ns" || column.name == "measured_over_usual") {
    return report.total.sums[Quantity::kUsualTime] > 0;
  }
  if (column.name == "other_gpu_time_per_step_ns") return report.device.other.step_ns > 0;
  const auto any = [&rows](auto holds) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return holds(row.time.trust); });
  };
  if (column.name == "time_ci95_relative") return any(HasInterval);
  // That an interval is by step need not be said on every line; why there is none, or not as good a one, must.
  if (column.name == "time_interval") {
    return any([](Trust trust) { return trust != Trust::kNone && trust != Trust::kByStep; });
  }
  return true;
}

std::string_view ByTitle(By by) {
  static constexpr std::string_view kTitles[] = {
      "By model", "By phase", "By layer", "By operator", "By kernel", "By line of the program", "By class of layers"};
  return kTitles[static_cast<size_t>(by)];
}

std::string ProgramLine(const Report& report) {
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : ", ") + text; };
  for (const ModelInfo& model : report.process.models) {
    if (model.parameters > 0) add(model.class_name + " (" + Grouped(model.parameters) + " parameters)");
  }
  if (report.run.batch_size > 0) add("batch " + std::to_string(report.run.batch_size));
  add(StepsText(report.steps));
  if (report.clock.gpu_ns > 0) {
    add(Duration(report.clock.gpu_ns) + " of GPU time a step");
    if (const double wall_ns = report.clock.measured_wall_ns(); wall_ns > 0) add(Duration(wall_ns) + " of wall time");
  }
  // All processes' of the device, and what a caching allocator keeps: what must fit, not what the tensors need.
  if (report.memory.peak_bytes > 0) {
    add("at most " + WithPrefix(static_cast<double>(report.memory.peak_bytes), "B") + " of device memory in use");
  }
  if (report.process.count > 1) add(Grouped(report.process.count) + " processes");
  if (!report.process.list.empty() && !report.process.list.front().torch_version.empty()) {
    add("torch " + report.process.list.front().torch_version);
  }
  return line;
}

}  // namespace

namespace {

// Whether no row has anything in a column. Another tool's file lacks what it lacks in all of them.
bool IsEmpty(const Column& column, const TableLook& look, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    const std::string text = TableText(column.info, look, column.value ? column.value(row) : Cell{});
    if (!text.empty() && text != "-") return false;
  }
  return rows > 0;
}

}  // namespace

std::string RowLabel(const Report& report, const Row& row) {
  const std::vector<NameColumn> names = NameColumns(report, report.by);
  // A kernel's layer and phase stand behind its name, and have no room.
  if (report.by == By::kKernel) return names.front().text(row);
  std::string label;
  for (const NameColumn& name : names) label += (label.empty() ? "" : " ") + name.text(row);
  return label;
}

Section RowSection(const Report& report, By by, const std::vector<Row>& rows, const ReportLook& look) {
  static constexpr std::array<std::string_view, 3> kNames = {"name", "name_2", "name_3"};
  const bool theory = look.columns == TableColumns::kTheory;
  const bool imported = report.run.source == SourceKind::kImported;
  Table table;
  table.rows = RowsOf(report, rows);
  table.estimated = report.run.source == SourceKind::kEstimated;
  const std::vector<NameColumn> names = NameColumns(report, by);
  table.names = names.size();
  for (size_t i = 0; i < names.size(); ++i) {
    table.rows.AddText(kNames[i], [&rows, text = names[i].text](size_t row) { return text(rows[row]); });
    table.looks.push_back({.column = kNames[i],
                           .title = names[i].title,
                           .left = true,
                           .least_width = names[i].least_width,
                           .keep_end = names[i].keep_end,
                           .most_width = kMostName});
  }
  for (const TableLook& one : theory ? std::span<const TableLook>(kTheory) : std::span<const TableLook>(kRoofline)) {
    if (!Says(report, by, rows, table.rows.Find(one.column)->info)) continue;
    const bool sorted_by = look.sort != nullptr && look.sort->info.name == one.column;
    if (imported && !theory && !sorted_by && IsEmpty(*table.rows.Find(one.column), one, rows.size())) continue;
    table.looks.push_back(one);
    if (look.sort != nullptr && look.sort->info.name == one.column) table.looks.back().priority = 0;
  }
  if (theory) {
    table.weight = [&rows](size_t i) { return std::max(rows[i].sums.model_flop(), rows[i].sums.total_flop()); };
  } else if (look.sort == nullptr || by != report.by) {
    table.weight = [&rows](size_t i) { return rows[i].sums.time_ns(); };
  }
  table.rest = [&report, &rows](std::span<const size_t> which) { return SumOf(report, rows, which); };
  table.total = SingleRow(report, TotalRow(report));
  if (!theory) {
    table.shared = [&rows](const ColumnInfo& column, size_t row) {
      return column.of_counters && rows[row].bytes.shared;
    };
  }
  Section section{.id = std::string(ByName(by))};
  section.heading = std::string(ByTitle(by)) + (report.steps.count > 0 ? ", a step" : ", over all") +
                    (table.estimated ? "   (~ estimated)" : "");
  section.table = std::move(table);
  return section;
}

std::vector<std::vector<Figure>> ReportFigures(std::span<const Report> reports) {
  static constexpr Size kAlone = {900, 660}, kOneOfMany = {700, 580};  // of files
  static constexpr Size kAloneOnPage = {780, 700}, kOneOfManyOnPage = {660, 580};
  const bool many = reports.size() > 1;
  const auto size_of = [many](Medium medium) {
    if (medium == Medium::kPhone) return kPhoneSize;
    if (medium == Medium::kPage) return many ? kOneOfManyOnPage : kAloneOnPage;
    return many ? kOneOfMany : kAlone;
  };
  const auto frames = std::make_shared<const Frames>(FramesFor(reports));
  const size_t columns = many ? 2 : 1;
  std::vector<std::vector<Figure>> figures;
  for (const bool time_view : {false, true}) {
    for (size_t i = 0; i < reports.size(); ++i) {
      if (i % columns == 0) figures.emplace_back();
      figures.back().push_back({(time_view ? "time" : "roofline") + std::to_string(i),
                                [&report = reports[i], frames, time_view, size_of](Medium medium) {
                                  const Size size = size_of(medium);
                                  return Drawn{time_view ? LayOutTimeView(report, *frames, size)
                                                         : LayOutRoofline(report, *frames, size),
                                               &report};
                                }});
    }
  }
  return figures;
}

const ReportColumn* FindColumnOrHead(std::string_view name) {
  if (const ReportColumn* const column = FindColumn(name)) return column;
  for (const auto& looks : {std::span<const TableLook>(kRoofline), std::span<const TableLook>(kTheory)}) {
    for (const TableLook& look : looks) {
      if (absl::EqualsIgnoreCase(absl::string_view(look.title.data(), look.title.size()),
                                 absl::string_view(name.data(), name.size()))) {
        return FindColumn(look.column);
      }
    }
  }
  return nullptr;
}

std::vector<Sentence> AlarmsOf(const Report& report) {
  std::vector<Sentence> sentences;
  for (const Alarm& alarm : report.alarms) {
    const std::string where = AlarmWhere(alarm), causes(alarm.causes);
    Sentence& sentence = sentences.emplace_back(Sentence{.text = alarm.text, .label = alarm.id + " "});
    sentence.tone = Tone::kAlarm;
    if (!where.empty()) sentence.text += " [" + where + "]";
    if (!causes.empty()) sentence.details.emplace_back("likely: ", causes);
  }
  return sentences;
}

std::vector<Sentence> NotesOf(const Report& report) {
  std::vector<Sentence> sentences;
  static constexpr const char* kSeverities[] = {"note: ", "warning: ", "error: "};
  for (const DiagnosticInfo& diagnostic : DiagnosticsText(report)) {
    Sentence& sentence = sentences.emplace_back(
        Sentence{.text = diagnostic.text, .label = kSeverities[static_cast<size_t>(diagnostic.severity)]});
    if (!diagnostic.remedy.empty()) sentence.details.emplace_back("mend it: ", diagnostic.remedy);
  }
  for (std::string& text : GraphBreakTexts(report)) {
    sentences.push_back({.text = std::move(text), .label = "graph break: "});
  }
  for (const trace::Drop& drop : report.kept.drop) {
    sentences.push_back({.text = Grouped(drop.count) + " lost: " + drop.what, .label = "warning: "});
  }
  return sentences;
}

std::vector<Sentence> ProblemsOf(const Report& report) {
  std::vector<Sentence> sentences = AlarmsOf(report);
  for (Sentence& note : NotesOf(report)) sentences.push_back(std::move(note));
  return sentences;
}

std::vector<Sentence> FactsOf(const Report& report) {
  std::vector<Sentence> sentences;
  for (const std::string& line : FactsText(report)) sentences.push_back({.text = line});
  if (std::string run = ProgramLine(report); !run.empty()) sentences.push_back({.text = std::move(run)});
  if (std::string known = IntervalText(report); !known.empty()) sentences.push_back({.text = std::move(known)});
  // Of a program that another tool watched nothing was looked for.
  constexpr int kKernelsOnly = 6;
  const bool of_file = report.run.source == SourceKind::kImported && report.process.tier == kKernelsOnly;
  sentences.push_back({.text = of_file ? "Attribution tier F: the file names kernels, and no operators"
                                       : "Attribution tier " + TierText(report.process.tier)});
  return sentences;
}

namespace {

// "What to change in 3.81 ms of GPU time a step   (~ estimated)"
std::string AdviceHeading(const Report& report) {
  const double step_ns = report.steps.count > 0 ? PerStep(report, report.total.sums.time_ns()) : 0;
  std::string heading = "What to change";
  if (step_ns > 0) heading += " in " + Duration(step_ns) + " of GPU time a step";
  return heading + (report.run.source == SourceKind::kEstimated ? "   (~ estimated)" : "");
}

// Whether `report` is of a validation of what `training` trains.
bool Validates(const Report& report, const Report& training) {
  return report.steps.validation && !training.steps.validation && training.run.training &&
         report.run.models == training.run.models && report.run.estimated_gpu == training.run.estimated_gpu &&
         report.run.gpu == training.run.gpu && report.run.source == training.run.source;
}

// "Validation: 6 batches of 64, 6.67 ms of GPU time each (rfinject report --validation)".
std::string ValidationText(const std::vector<const Report*>& validations) {
  constexpr size_t kMost = 2;
  std::string text;
  for (size_t i = 0; i < std::min(validations.size(), kMost); ++i) {
    const Report& report = *validations[i];
    text += (i == 0 ? "Validation: " : "; ") + Counted(report.steps.count, "batch", "batches");
    if (report.run.batch_size > 0) text += " of " + Grouped(report.run.batch_size);
    text += ", " + Duration(report.clock.gpu_ns) + " of GPU time" + (report.steps.count == 1 ? "" : " each");
    for (const Alarm& alarm : report.alarms) text += ", " + std::string(alarm.id);
  }
  if (validations.size() > kMost) text += "; " + Grouped(validations.size() - kMost) + " more kinds";
  return text + " (rfinject report --validation)";
}

// `validations` are said in a line.
void AddSections(const Report& report, const std::vector<const Report*>& validations, const ReportLook& look,
                 Document* document) {
  if (std::string nothing = NothingText(report); !nothing.empty()) {
    nothing.front() = 'N';  // a heading; a table of ours is known by how it begins
    document->sections.push_back({.id = "run", .heading = std::move(nothing), .first = true});
    return;
  }
  std::vector<std::string> opening = OpeningText(report);
  document->sections.push_back({.id = "run",
                                .heading = opening.empty() ? ReportTitle(report) : CostText(report, EndText(report)),
                                .first = true});
  if (!validations.empty()) document->sections.back().lead.push_back({.text = ValidationText(validations)});
  document->sections.push_back(RowSection(report, report.by, report.rows, look));
  if (report.by != By::kPhase) {
    document->sections.push_back(RowSection(report, By::kPhase, report.phases, {.columns = look.columns}));
  }
  Section advice{.id = "advice", .heading = AdviceHeading(report), .answer = true};
  for (size_t i = 1; i < opening.size(); ++i) advice.lead.push_back({.text = std::move(opening[i])});
  if (!advice.lead.empty()) document->sections.push_back(std::move(advice));
  document->sections.push_back({.id = "facts", .heading = "What these numbers rest on", .lead = FactsOf(report)});
  // What another tool's file lacks stands in a block of its own, as `rfinject doctor FILE` prints it.
  const bool imported = report.run.source == SourceKind::kImported;
  if (std::vector<Sentence> problems = imported ? AlarmsOf(report) : ProblemsOf(report); !problems.empty()) {
    document->sections.push_back({.id = "problems", .lead = std::move(problems)});
  }
  if (!imported) return;
  if (std::vector<Sentence> notes = NotesOf(report); !notes.empty()) {
    document->sections.push_back({.id = "about", .heading = "About this recording", .lead = std::move(notes)});
  }
}

// The lines of CSV: "row" (one of the chosen --by), "layer_phase" (the rows again, split by phase, with --by layer),
// "group_phase" or "roof". Sum over one kind of line only.
RowSet LinesOf(std::string_view record, size_t index, const Report& report, RowSet rows) {
  return WithConstants({{"record", std::string(record)},
                        {"source", std::string(SourceName(report.run.source))},
                        {"run", uint64_t{index}},
                        {"device", report.device.name},
                        {"roofs_of", report.machine.name},
                        {"batch_size", KnownCount(report.run.batch_size)},
                        {"steps", report.steps.count},
                        {"samples", report.steps.samples}},
                       std::move(rows));
}

RowSet DataColumns(RowSet rows) {
  std::erase_if(rows.columns, [](const Column& column) { return !column.info.data; });
  return rows;
}

RowSet RoofLines(const Report& report) {
  const RowSet roofs = RoofsOf(report);
  RowSet set;
  set.size = roofs.size;
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

void AddLines(size_t index, const Report& report, Document* document) {
  const auto add = [&](std::string_view record, RowSet rows) {
    document->lines.push_back(LinesOf(record, index, report, std::move(rows)));
  };
  add("row", DataColumns(RowsOf(report, report.rows)));
  add("layer_phase", DataColumns(RowsOf(report, report.layer_phases)));
  if (report.by == By::kClass) add("group_phase", DataColumns(RowsOf(report, report.group_phases)));
  add("roof", RoofLines(report));
}

}  // namespace

std::vector<Check> ChecksOf(const Report& report) {
  std::vector<Check> checks;
  for (const AlarmKind& kind : AlarmKinds()) {
    Check& check = checks.emplace_back(Check{.name = std::string(kind.id)});
    for (const Alarm& alarm : report.alarms) {
      if (alarm.id != kind.id) continue;
      check.outcome = Check::Outcome::kFails;
      check.text += (check.text.empty() ? "" : "; ") + alarm.text;
    }
  }
  return checks;
}

namespace {

// Sections for people: training first, and each validation in the part of what it validates.
void AddSections(const std::vector<Report>& reports, const ReportLook& look, Document* document) {
  const auto trains = [&](const Report& report) {
    return std::find_if(reports.begin(), reports.end(),
                        [&](const Report& other) { return Validates(report, other); });
  };
  std::vector<const Report*> order;
  for (const Report& report : reports) {
    if (trains(report) == reports.end()) order.push_back(&report);
  }
  std::stable_partition(order.begin(), order.end(), [](const Report* report) { return !report->steps.validation; });
  for (const Report* const report : order) {
    std::vector<const Report*> validations;
    for (const Report& other : reports) {
      if (const auto of = trains(other); of != reports.end() && &*of == report) validations.push_back(&other);
    }
    AddSections(*report, validations, look, document);
  }
}

}  // namespace

Document ReportDocument(std::vector<Report> given, const ReportLook& look) {
  const bool none = given.empty();
  if (look.validation) std::erase_if(given, [](const Report& report) { return !report.steps.validation; });
  const auto owner = std::make_shared<std::vector<Report>>(std::move(given));
  std::vector<Report>& reports = *owner;
  Document document;
  document.owner = owner;
  document.title = DocumentTitle("rfinject report", reports);
  document.nothing =
      reports.empty() && !none ? "there is no validation in it (rfinject report)" : NothingText(reports);
  for (size_t i = 0; i < reports.size(); ++i) {
    if (look.sort != nullptr) SortRows(*look.sort, &reports[i]);
    AddLines(i + 1, reports[i], &document);
    for (Check& check : ChecksOf(reports[i])) document.checks.push_back(std::move(check));
  }
  AddSections(reports, look, &document);
  document.sections.push_back({.id = "pictures", .figures = ReportFigures(reports)});
  if (reports.size() == 1) {
    document.data = ReportData(reports.front());
    return document;
  }
  document.data.Add("schema", "rfinject.reports/1").Add("reports", Data::ListOf(reports, ReportData));
  return document;
}

}  // namespace rfinject::cli
