#include "cli/emit/sweep.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/emit/cell_text.h"
#include "cli/emit/code_points.h"
#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/text_grid.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

std::string_view TitleOf(size_t column) {
  const TableLook& look = SweepColumns()[column].column.info.table;
  return look.title;
}

// The columns of CSV and JSON.
RowSet DataOf(const Sweep& sweep, std::span<const size_t> which) {
  RowSet set = RunsOf(sweep, which);
  std::erase_if(set.columns, [](const Column& column) { return !column.info.data; });
  return set;
}

std::vector<size_t> AllRuns(const Sweep& sweep) {
  std::vector<size_t> all(sweep.runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

// A line a run: what `name` calls it, and the columns of a view that `shown` accepts.
void WriteRunGrid(const Sweep& sweep, const SweepGroup& group, std::span<const size_t> which, GridColumn first,
                  const std::function<std::string(const SweepRun&)>& name, TableLook ColumnInfo::*view,
                  const std::function<bool(std::string_view column)>& shown, const TableOptions& options,
                  std::ostream& out) {
  const RowSet set = RunsOf(sweep, which);
  std::vector<const Column*> columns = ShownIn(set, view);
  std::erase_if(columns, [&](const Column* column) { return !shown(column->info.name); });
  TextGrid grid;
  grid.mark = group.source == SourceKind::kEstimated ? "~ " : "  ";
  grid.columns = {std::move(first)};
  for (const Column* column : columns) grid.columns.push_back(GridColumnOf(column->info.*view));
  for (size_t i = 0; i < which.size(); ++i) {
    GridLine& line = grid.lines.emplace_back(GridLine{{name(sweep.runs[which[i]])}});
    for (const Column* column : columns) {
      line.cells.push_back(TableText(column->info, column->info.*view, column->value(i)));
    }
  }
  WriteGrid(grid, options.wide ? kAnyWidth : options.width, options.color, out);
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
      {{.name = "a"},
       [](const One& one) { return Cell{std::string(SweepColumns()[one.correlation->a].column.info.name)}; }},
      {{.name = "b"},
       [](const One& one) { return Cell{std::string(SweepColumns()[one.correlation->b].column.info.name)}; }},
      {{.name = "spearman_rho"}, [](const One& one) { return Cell{*one.correlation->rho}; }},
      {{.name = "runs"}, [](const One& one) { return Cell{uint64_t{one.correlation->runs}}; }},
  });
  RowSet set;
  set.size = list->size();
  Append(
      std::span<const ColumnOf<One>>(kColumns), [list](size_t i) -> const One& { return (*list)[i]; }, &set);
  return set;
}

std::string GroupTitle(const SweepGroup& group) {
  return "On " + group.gpu + ", " + std::string(SourceName(group.source));
}

void WriteRuns(const Sweep& sweep, const SweepGroup& group, const TableOptions& options, std::ostream& out) {
  const auto any_run = [&](auto has) {
    return std::any_of(group.runs.begin(), group.runs.end(), [&](size_t i) { return has(sweep.runs[i]); });
  };
  const bool alarms = any_run([](const SweepRun& run) { return !run.alarm_ids.empty(); });
  const bool host = any_run([](const SweepRun& run) { return run.step_ns > 0; });
  const bool memory = any_run([](const SweepRun& run) { return run.memory_peak_bytes > 0; });
  WriteRunGrid(
      sweep, group, group.runs, {.title = "model", .right = false, .least_width = 10},
      [](const SweepRun& run) {
        return run.model + (run.policy.empty() ? "" : " " + run.policy) +
               (run.has_twin && !run.started.empty() ? " of " + run.started : "");
      },
      &ColumnInfo::table,
      [&](std::string_view column) {
        const bool of_host = column == "host_time_per_step_ns" || column == "step_time_ns" || column == "step_bound";
        return (host || !of_host) && (alarms || column != "alarm_ids") && (memory || column != "memory_peak_bytes") &&
               (sweep.several_modes || column != "short_mode");
      },
      options, out);
  const bool wall = any_run([](const SweepRun& run) { return run.samples_over_wall; });
  const bool any = any_run([](const SweepRun& run) { return run.samples_per_s > 0; });
  if (any) {
    WriteWrapped(out,
                 wall   ? "img/s: samples over wall time; FLOP executed"
                 : host ? "img/s: samples over the longer of GPU and host time; FLOP executed"
                        : "img/s: samples over GPU time, an upper bound of what wall time gives; FLOP "
                          "executed",
                 options.width, "  ", "  ");
  }
}

void WriteForward(const Sweep& sweep, const SweepGroup& group, const TableOptions& options, std::ostream& out) {
  std::vector<size_t> trained;
  for (const size_t i : group.runs) {
    const SweepRun& run = sweep.runs[i];
    if (run.training && run.forward.time_ns() > 0 && run.backward.time_ns() > 0) trained.push_back(i);
  }
  if (trained.empty()) return;
  out << '\n';
  WriteRunGrid(
      sweep, group, trained, {.title = "forward alone", .right = false, .least_width = 13},
      [&](const SweepRun& run) { return SweepRunTitle(sweep, run); }, &ColumnInfo::second_table,
      [](std::string_view) { return true; }, options, out);
}

void WriteCorrelations(const SweepGroup& group, const TableOptions& options, std::ostream& out) {
  std::vector<size_t> used;
  const auto rho = [&](size_t a, size_t b) -> std::optional<double> {
    for (const SweepCorrelation& one : group.correlations) {
      if ((one.a == a && one.b == b) || (one.a == b && one.b == a)) return one.rho;
    }
    return std::nullopt;
  };
  for (size_t c = 0; c < SweepColumns().size(); ++c) {
    const bool any = std::any_of(group.correlations.begin(), group.correlations.end(),
                                 [&](const auto& one) { return (one.a == c || one.b == c) && one.rho.has_value(); });
    if (any) used.push_back(c);
  }
  if (used.empty()) return;
  TextGrid grid;
  grid.columns = {{.title = "Spearman's rho", .right = false}};
  for (const size_t c : used) grid.columns.push_back({.title = std::string(TitleOf(c)), .priority = 1});
  for (const size_t row : used) {
    GridLine line = {{std::string(TitleOf(row))}};
    for (const size_t column : used) {
      const std::optional<double> value = column < row ? rho(row, column) : std::nullopt;
      line.cells.push_back(value ? absl::StrFormat("%+.2f", *value) : column == row ? "1" : "");
    }
    grid.lines.push_back(std::move(line));
  }
  out << '\n';
  WriteGrid(grid, options.wide ? kAnyWidth : options.width, options.color, out);
}

}  // namespace

void EmitSweepTable(const Sweep& sweep, const TableOptions& options, std::ostream& out) {
  const Letters letters(options.color);
  bool first = true;
  for (const SweepGroup& group : sweep.groups) {
    if (!first) out << '\n';
    first = false;
    std::string title = GroupTitle(group) + ": " + Grouped(group.runs.size()) +
                        (group.runs.size() == 1 ? " run" : " runs") + ", numbers are a step's";
    out << letters.bold << PrintableText(title) << letters.plain << '\n';
    WriteRuns(sweep, group, options, out);
    WriteForward(sweep, group, options, out);
    WriteCorrelations(group, options, out);
    for (const size_t i : group.runs) {
      const SweepRun& run = sweep.runs[i];
      if (run.alarms == 0) continue;
      WriteWrapped(out,
                   SweepRunTitle(sweep, run) + ": " + absl::StrJoin(run.alarm_ids, " ") +
                       "; report its trace alone to read " + (run.alarms == 1 ? "it" : "them"),
                   options.width, std::string(letters.red) + "alarm:" + letters.plain + " ", "  ");
    }
  }
}

void EmitSweepJson(const Sweep& sweep, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.sweep/1");
  const std::vector<size_t> all = AllRuns(sweep);
  RowSet runs = DataOf(sweep, all);
  std::erase_if(runs.columns, [](const Column& column) { return column.info.name == "alarm_ids"; });
  json.Key("runs");
  json.BeginArray();
  for (size_t i = 0; i < runs.size; ++i) {
    json.BeginObject(/*one_line=*/true);
    json.Members(runs, i);
    json.Key("alarm_ids");
    json.BeginArray();
    for (const std::string& id : sweep.runs[i].alarm_ids) json.String(id);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Rows("correlations", CorrelationsOf(sweep));
  json.EndObject();
}

void EmitSweepCsv(const Sweep& sweep, std::ostream& out, CsvTexts texts) {
  RowSet correlations = CorrelationsOf(sweep);
  for (Column& column : correlations.columns) {
    for (const auto& [name, csv_name] : kCsvNames) {
      if (column.info.name == name) column.info.name = csv_name;
    }
  }
  AppendConstant("record", "correlation", &correlations);

  const std::vector<size_t> all = AllRuns(sweep);
  RowSet runs;
  runs.size = sweep.runs.size();
  AppendConstant("record", "run", &runs);
  for (Column& column : DataOf(sweep, all).columns) {
    // The alarms' ids came last, behind the correlations.
    if (column.info.name == "alarm_ids") {
      for (const auto& [name, csv_name] : kCsvNames) AppendConstant(csv_name, {}, &runs);
    }
    runs.columns.push_back(std::move(column));
  }
  WriteCsv(std::vector<RowSet>{std::move(runs), std::move(correlations)}, texts, out);
}

}  // namespace rfinject::cli
