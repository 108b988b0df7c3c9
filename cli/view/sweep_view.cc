// Runs side by side.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/picture/names.h"
#include "cli/report/facts/run.h"
#include "cli/report/facts/schemas.h"
#include "cli/report/sweep.h"
#include "cli/text/units.h"
#include "cli/view/compare_views.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

constexpr auto kWhole = std::to_array<TableLook>({
    {.column = "name", .title = "model", .left = true, .least_width = 10},
    {.column = "batch_size", .title = "batch", .priority = 3},
    {.column = "short_mode", .title = "mode", .priority = 8, .left = true},
    {.column = "parameters", .title = "params", .priority = 4},
    {.column = "flop_per_step", .title = "FLOP", .priority = 2},
    {.column = "dram_bytes_per_step", .title = "bytes", .priority = 5, .unit = "B"},
    {.column = "oi_flop_per_byte", .title = "FLOP/B", .priority = 2},
    {.column = "gpu_time_per_step_ns", .title = "time"},
    {.column = "host_time_per_step_ns", .title = "host"},
    {.column = "step_time_ns", .title = "step"},
    {.column = "step_bound", .title = "step's bound", .priority = 2},
    {.column = "samples_per_s", .title = "img/s", .priority = 3},
    {.column = "memory_peak_bytes", .title = "memory", .priority = 7, .unit = "B"},
    {.column = "attainable_share", .title = "of roof", .priority = 1},
    {.column = "bound", .title = "bound", .priority = 1},
    {.column = "alarm_ids", .title = "alarms", .priority = 1, .left = true, .row_only = true},
});
constexpr auto kForward = std::to_array<TableLook>({
    {.column = "name", .title = "forward alone", .left = true, .least_width = 13},
    {.column = "forward_flop_per_step", .title = "FLOP", .priority = 3},
    {.column = "forward_oi_flop_per_byte", .title = "FLOP/B", .priority = 1},
    {.column = "oi_flop_per_byte", .title = "step's", .priority = 1},
    {.column = "forward_time_per_step_ns", .title = "time"},
    {.column = "forward_time_share", .title = "of step", .priority = 2},
    {.column = "forward_attainable_share", .title = "of roof", .priority = 1},
    {.column = "attainable_share", .title = "step's", .priority = 1},
    {.column = "backward_flop_per_forward_flop", .title = "bwd/fwd FLOP", .priority = 2},
    {.column = "backward_time_per_forward_time", .title = "time", .priority = 2},
});

// The head of a column in tables, by which correlations name it.
std::string_view TitleOf(std::string_view name) {
  const auto look = std::ranges::find(kWhole, name, &TableLook::column);
  return look != kWhole.end() ? look->title : name;
}

// The columns of CSV and JSON.
RowSet DataOf(const Sweep& sweep) {
  std::vector<size_t> all(sweep.runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  RowSet set = RunsOf(sweep, all);
  std::erase_if(set.columns, [](const Column& column) { return !column.info.data; });
  return set;
}

// As CSV calls the columns of correlations, which stand beside those of runs there.
constexpr std::pair<std::string_view, std::string_view> kCsvNames[] = {
    {"a", "column_a"}, {"b", "column_b"}, {"spearman_rho", "spearman_rho"}, {"runs", "correlated_runs"}};

// Those that are known.
RowSet CorrelationsOf(const Sweep& sweep) {
  struct One {
    const SweepGroup* group;
    const SweepCorrelation* correlation;
  };
  const auto list = std::make_shared<std::vector<One>>();
  for (const SweepGroup& group : sweep.groups) {
    for (const SweepCorrelation& one : group.correlations) {
      if (one.rho) list->push_back({&group, &one});
    }
  }
  static constexpr auto kColumns = std::to_array<ColumnOf<One>>({
      {{.name = "gpu"}, [](const One& one) { return Cell{one.group->gpu}; }},
      {{.name = "source"}, [](const One& one) { return Cell{std::string(SourceName(one.group->source))}; }},
      {{.name = "a"}, [](const One& one) { return Cell{std::string(one.correlation->a)}; }},
      {{.name = "b"}, [](const One& one) { return Cell{std::string(one.correlation->b)}; }},
      {{.name = "spearman_rho"}, [](const One& one) { return Cell{*one.correlation->rho}; }},
      {{.name = "runs"}, [](const One& one) { return Cell{uint64_t{one.correlation->runs}}; }},
  });
  RowSet set;
  set.size = list->size();
  Append(
      std::span<const ColumnOf<One>>(kColumns), [list](size_t i) -> const One& { return (*list)[i]; }, &set);
  return set;
}

// A line for each of `which` runs: what `name` calls it, and the columns of `looks` that `shown` accepts.
Table RunTable(const Sweep& sweep, const SweepGroup& group, const std::vector<size_t>& which,
               std::span<const TableLook> looks, std::function<std::string(const SweepRun&)> name,
               const std::function<bool(std::string_view column)>& shown) {
  Table table{.rows = RunsOf(sweep, which)};
  table.estimated = group.source == SourceKind::kEstimated;
  table.rows.AddText("name",
                     [&sweep, which, name = std::move(name)](size_t row) { return name(sweep.runs[which[row]]); });
  for (const TableLook& look : looks) {
    if (shown(look.column)) table.looks.push_back(look);
  }
  return table;
}

Section WholeSection(const Sweep& sweep, const SweepGroup& group) {
  const auto any_run = [&](auto has) {
    return std::ranges::any_of(group.runs, [&](size_t i) { return has(*sweep.runs[i].report); });
  };
  const bool alarms = any_run([](const Report& run) { return !run.alarms.empty(); });
  const bool host = any_run([](const Report& run) { return run.queue.host_of == HostTime::kGiven; });
  const bool memory = any_run([](const Report& run) { return run.memory.peak_bytes > 0; });
  Section section{.id = "runs"};
  section.heading = "On " + group.gpu + ", " + std::string(SourceName(group.source)) + ": " +
                    Counted(group.runs.size(), "run", "runs") + ", numbers are a step's";
  section.table = RunTable(
      sweep, group, group.runs, kWhole,
      [](const SweepRun& run) {
        return run.model + (run.policy.empty() ? "" : " " + run.policy) +
               (run.has_twin && !run.started.empty() ? " of " + run.started : "");
      },
      [&](std::string_view column) {
        const bool of_host = column == "host_time_per_step_ns" || column == "step_time_ns" || column == "step_bound";
        return (host || !of_host) && (alarms || column != "alarm_ids") && (memory || column != "memory_peak_bytes") &&
               (sweep.several_modes || column != "short_mode");
      });
  if (any_run([](const Report& run) { return NumberOf(run, "samples_per_s") > 0; })) {
    const bool wall = any_run([](const Report& run) { return run.clock.measured_wall_ns() > 0; });
    section.notes.push_back(
        {.text = wall   ? "img/s: samples over wall time; FLOP executed"
                 : host ? "img/s: samples over the longer of GPU and host time; FLOP executed"
                        : "img/s: samples over GPU time, an upper bound of what wall time gives; FLOP executed"});
  }
  return section;
}

// Nothing where no run trains.
Section ForwardSection(const Sweep& sweep, const SweepGroup& group) {
  std::vector<size_t> trained;
  for (const size_t i : group.runs) {
    const Report& report = *sweep.runs[i].report;
    const bool both = NumberOf(report, "backward_time_per_forward_time") > 0;
    if (report.run.training && both) trained.push_back(i);
  }
  Section section;
  if (trained.empty()) return section;
  section.table = RunTable(
      sweep, group, trained, kForward, [&sweep](const SweepRun& run) { return SweepRunTitle(sweep, run); },
      [](std::string_view) { return true; });
  return section;
}

// Spearman's rho of each pair of columns that is known, a row and a column each.
Section CorrelationSection(const SweepGroup& group) {
  const auto rho = [&](std::string_view a, std::string_view b) -> std::optional<double> {
    for (const SweepCorrelation& one : group.correlations) {
      if ((one.a == a && one.b == b) || (one.a == b && one.b == a)) return one.rho;
    }
    return std::nullopt;
  };
  std::vector<std::string_view> used;
  for (const ListedFact& fact : FactsIn(Schema::kSideBySide)) {
    const bool any = std::ranges::any_of(group.correlations, [&](const auto& one) {
      return (one.a == fact.name || one.b == fact.name) && one.rho.has_value();
    });
    if (any) used.push_back(fact.name);
  }
  Section section;
  if (used.empty()) return section;
  Table table;
  table.rows.size = used.size();
  table.rows.AddText("name", [used](size_t row) { return std::string(TitleOf(used[row])); });
  table.looks.push_back({.column = "name", .title = "Spearman's rho", .left = true});
  for (size_t c = 0; c < used.size(); ++c) {
    std::vector<std::string> cells;
    for (size_t row = 0; row < used.size(); ++row) {
      const std::optional<double> value = c < row ? rho(used[row], used[c]) : std::nullopt;
      cells.push_back(value ? absl::StrFormat("%+.2f", *value) : c == row ? "1" : "");
    }
    const std::string_view name = used[c];
    table.rows.AddText(name, [cells = std::move(cells)](size_t row) { return cells[row]; });
    table.looks.push_back({.column = name, .title = TitleOf(used[c]), .priority = 1});
  }
  section.table = std::move(table);
  return section;
}

std::vector<Sentence> AlarmSentences(const Sweep& sweep, const SweepGroup& group) {
  std::vector<Sentence> sentences;
  for (const size_t i : group.runs) {
    const SweepRun& run = sweep.runs[i];
    const size_t alarms = run.report->alarms.size();
    if (alarms == 0) continue;
    sentences.push_back({.text = SweepRunTitle(sweep, run) + ": " + TextOf(*run.report, "alarm_ids") +
                                 "; report its trace alone to read " + (alarms == 1 ? "it" : "them"),
                         .label = "alarm: ",
                         .tone = Tone::kAlarm});
  }
  return sentences;
}

void AddData(const Sweep& sweep, Document* document) {
  RowSet rows = DataOf(sweep);
  std::erase_if(rows.columns, [](const Column& column) { return column.info.name == "alarm_ids"; });
  Data runs = Data::List();
  for (size_t i = 0; i < rows.size; ++i) {
    runs.Append(std::move(Data::RowOf(rows, i).Add("alarm_ids", Data::ListOf(AlarmIds(*sweep.runs[i].report)))));
  }
  document->data.Add("schema", "rfinject.sweep/1")
      .Add("runs", std::move(runs))
      .Add("correlations", CorrelationsOf(sweep));
}

void AddLines(const Sweep& sweep, Document* document) {
  RowSet correlations = CorrelationsOf(sweep);
  for (Column& column : correlations.columns) {
    for (const auto& [name, csv_name] : kCsvNames) {
      if (column.info.name == name) column.info.name = csv_name;
    }
  }
  AppendConstant("record", "correlation", &correlations);
  RowSet runs;
  runs.size = sweep.runs.size();
  AppendConstant("record", "run", &runs);
  for (Column& column : DataOf(sweep).columns) {
    // The alarms' ids came last, behind the correlations.
    if (column.info.name == "alarm_ids") {
      for (const auto& [name, csv_name] : kCsvNames) AppendConstant(csv_name, {}, &runs);
    }
    runs.columns.push_back(std::move(column));
  }
  document->lines = {std::move(runs), std::move(correlations)};
}

struct OwnedSweep {
  std::vector<Report> reports;
  Sweep sweep;
  std::vector<Report> drawn;  // a report a group, its rows the runs
};

}  // namespace

Document SweepDocument(std::vector<Report> reports) {
  const auto owner = std::make_shared<OwnedSweep>();
  owner->reports = std::move(reports);
  owner->sweep = MakeSweep(owner->reports);
  owner->drawn = SweepPictures(owner->sweep);
  const Sweep& sweep = owner->sweep;
  Document document{.title = DocumentTitle("rfinject report", owner->drawn), .owner = owner};
  for (const SweepGroup& group : sweep.groups) {
    document.sections.push_back(WholeSection(sweep, group));
    document.sections.push_back(ForwardSection(sweep, group));
    document.sections.push_back(CorrelationSection(group));
    document.sections.push_back({.lead = AlarmSentences(sweep, group)});
  }
  document.sections.push_back(
      {.id = "pictures", .figures = ReportFigures(owner->drawn), .linked = LinkedRows(owner->drawn)});
  AddData(sweep, &document);
  AddLines(sweep, &document);
  for (const Report& report : owner->reports) {
    for (Check& check : ChecksOf(report)) document.checks.push_back(std::move(check));
  }
  return document;
}

}  // namespace rfinject::cli
