#include "cli/emit/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/text_grid.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

std::string Count(double value, const char* unit = "") {
  return std::isfinite(value) && value > 0 ? WithPrefix(value, unit) : "-";
}
std::string Ratio(double value) { return std::isfinite(value) && value > 0 ? Plain(value) : "-"; }

double ValueOf(std::string_view column, const SweepRun& run) {
  for (const SweepColumn& one : SweepColumns()) {
    if (one.name == column) return one.value(run);
  }
  return NAN;
}

std::string AlarmIds(const SweepRun& run) {
  std::string text;
  for (const std::string& id : run.alarm_ids) text += (text.empty() ? "" : " ") + id;
  return text;
}

std::string Bound(const Sums& sums, const Derived& derived) {
  return sums.least_ns <= 0 ? "-" : derived.memory_bound ? "memory" : "compute";
}

std::string GroupTitle(const SweepGroup& group) {
  return "On " + group.gpu + ", " + std::string(SourceName(group.source));
}

void WriteRuns(const Sweep& sweep, const SweepGroup& group, const TableOptions& options, std::ostream& out) {
  TextGrid grid;
  grid.mark = group.source == SourceKind::kEstimated ? "~ " : "  ";
  grid.columns = {{"model", false, 0, 10, false},
                  {"batch", true, 3},
                  {"mode", false, 8},
                  {"params", true, 4},
                  {"FLOP", true, 2},
                  {"bytes", true, 5},
                  {"FLOP/B", true, 2},
                  {"time", true, 0},
                  {"img/s", true, 3},
                  {"memory", true, 7},
                  {"of roof", true, 1},
                  {"bound", true, 1},
                  {"alarms", false, 1}};
  const bool alarms =
      std::any_of(group.runs.begin(), group.runs.end(), [&](size_t i) { return !sweep.runs[i].alarm_ids.empty(); });
  const bool memory = std::any_of(group.runs.begin(), group.runs.end(),
                                  [&](size_t i) { return sweep.runs[i].memory_peak_bytes > 0; });
  for (const size_t i : group.runs) {
    const SweepRun& run = sweep.runs[i];
    const auto value = [&](std::string_view column) { return ValueOf(column, run); };
    std::vector<std::string> line = {run.policy.empty() ? run.model : run.model + " " + run.policy,
                                     run.batch_size > 0 ? Grouped(run.batch_size) : "-",
                                     run.training ? "train" : "infer",
                                     Count(value("parameters")),
                                     Count(value("flop_per_step")),
                                     Count(value("dram_bytes_per_step"), "B"),
                                     Ratio(value("oi_flop_per_byte")),
                                     run.whole.time_ns > 0 ? Duration(value("gpu_time_per_step_ns")) : "-",
                                     Ratio(value("samples_per_s")),
                                     Count(value("memory_peak_bytes"), "B"),
                                     run.whole.least_ns > 0 ? Percent(run.whole_derived.attainable_share) : "-",
                                     Bound(run.whole, run.whole_derived),
                                     AlarmIds(run)};
    grid.lines.push_back(std::move(line));
  }
  const auto drop = [&](size_t column) {
    grid.columns.erase(grid.columns.begin() + static_cast<std::ptrdiff_t>(column));
    for (auto& line : grid.lines) line.erase(line.begin() + static_cast<std::ptrdiff_t>(column));
  };
  if (!alarms) drop(12);
  if (!memory) drop(9);
  if (!sweep.several_modes) drop(2);
  WriteGrid(grid, options.width, options.color, out);
  const bool wall =
      std::any_of(group.runs.begin(), group.runs.end(), [&](size_t i) { return sweep.runs[i].samples_over_wall; });
  const bool any =
      std::any_of(group.runs.begin(), group.runs.end(), [&](size_t i) { return sweep.runs[i].samples_per_s > 0; });
  if (any) {
    WriteWrapped(out,
                 wall ? "img/s: samples over wall time; FLOP executed"
                      : "img/s: samples over GPU time, an upper bound of what wall time gives; FLOP "
                        "executed",
                 options.width, "  ", "  ");
  }
}

void WriteForward(const Sweep& sweep, const SweepGroup& group, const TableOptions& options, std::ostream& out) {
  TextGrid grid;
  grid.mark = group.source == SourceKind::kEstimated ? "~ " : "  ";
  grid.columns = {{"forward alone", false, 0, 13, false},
                  {"FLOP", true, 3},
                  {"FLOP/B", true, 1},
                  {"step's", true, 1},
                  {"time", true, 0},
                  {"of step", true, 2},
                  {"of roof", true, 1},
                  {"step's", true, 1},
                  {"bwd/fwd FLOP", true, 2},
                  {"time", true, 2}};
  bool any = false;
  for (const size_t i : group.runs) {
    const SweepRun& run = sweep.runs[i];
    if (!run.training || run.forward.time_ns <= 0 || run.backward.time_ns <= 0) continue;
    any = true;
    const auto value = [&](std::string_view column) { return ValueOf(column, run); };
    grid.lines.push_back(
        {SweepRunTitle(sweep, run), Count(value("forward_flop_per_step")), Ratio(value("forward_oi_flop_per_byte")),
         Ratio(value("oi_flop_per_byte")), Duration(value("forward_time_per_step_ns")),
         Percent(run.whole.time_ns > 0 ? run.forward.time_ns / run.whole.time_ns : 0),
         run.forward.least_ns > 0 ? Percent(run.forward_derived.attainable_share) : "-",
         run.whole.least_ns > 0 ? Percent(run.whole_derived.attainable_share) : "-",
         Ratio(value("backward_flop_per_forward_flop")), Ratio(value("backward_time_per_forward_time"))});
  }
  if (!any) return;
  out << '\n';
  WriteGrid(grid, options.width, options.color, out);
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
  grid.columns = {{"Spearman's rho", false, 0}};
  for (const size_t c : used) grid.columns.push_back({std::string(SweepColumns()[c].title), true, 1});
  for (const size_t row : used) {
    std::vector<std::string> line = {std::string(SweepColumns()[row].title)};
    for (const size_t column : used) {
      const std::optional<double> value = column < row ? rho(row, column) : std::nullopt;
      char text[16];
      std::snprintf(text, sizeof text, "%+.2f", value.value_or(0));
      line.push_back(value ? text : column == row ? "1" : "");
    }
    grid.lines.push_back(std::move(line));
  }
  out << '\n';
  WriteGrid(grid, options.width, options.color, out);
}

}  // namespace

void EmitSweepTable(const Sweep& sweep, const TableOptions& options, std::ostream& out) {
  bool first = true;
  for (const SweepGroup& group : sweep.groups) {
    if (!first) out << '\n';
    first = false;
    std::string title = GroupTitle(group) + ": " + Grouped(group.runs.size()) +
                        (group.runs.size() == 1 ? " run" : " runs") + ", numbers are a step's";
    out << (options.color ? "\033[1m" : "") << PrintableText(title) << (options.color ? "\033[0m" : "") << '\n';
    WriteRuns(sweep, group, options, out);
    WriteForward(sweep, group, options, out);
    WriteCorrelations(group, options, out);
    for (const size_t i : group.runs) {
      const SweepRun& run = sweep.runs[i];
      if (run.alarms == 0) continue;
      WriteWrapped(out,
                   SweepRunTitle(sweep, run) + ": " + AlarmIds(run) + "; report its trace alone to read " +
                       (run.alarms == 1 ? "it" : "them"),
                   options.width, options.color ? "\033[31malarm:\033[0m " : "alarm: ", "  ");
    }
  }
}

void EmitSweepJson(const Sweep& sweep, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.sweep/1");
  json.Key("runs");
  json.BeginArray();
  for (const SweepRun& run : sweep.runs) {
    json.BeginObject(/*one_line=*/true);
    json.Member("source", SourceName(run.source));
    json.Member("model", run.model);
    json.Member("gpu", run.gpu);
    json.Optional("policy", run.policy);
    json.Member("mode", run.training ? "training" : "inference");
    json.Member("steps", run.steps);
    json.Member("samples", run.samples);
    for (const SweepColumn& column : SweepColumns()) json.Member(column.name, column.value(run));
    json.Optional("samples_per_s_over",
                  run.samples_per_s > 0 ? run.samples_over_wall ? "wall_time" : "gpu_time" : "");
    json.Optional("bound", run.whole.least_ns <= 0 ? "" : run.whole_derived.memory_bound ? "memory" : "compute");
    json.Member("alarms", uint64_t{run.alarms});
    json.Key("alarm_ids");
    json.BeginArray();
    for (const std::string& id : run.alarm_ids) json.String(id);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("correlations");
  json.BeginArray();
  for (const SweepGroup& group : sweep.groups) {
    for (const SweepCorrelation& one : group.correlations) {
      if (!one.rho) continue;
      json.BeginObject(/*one_line=*/true);
      json.Member("gpu", group.gpu);
      json.Member("source", SourceName(group.source));
      json.Member("a", SweepColumns()[one.a].name);
      json.Member("b", SweepColumns()[one.b].name);
      json.Member("spearman_rho", *one.rho);
      json.Member("runs", uint64_t{one.runs});
      json.EndObject();
    }
  }
  json.EndArray();
  json.EndObject();
}

void EmitSweepCsv(const Sweep& sweep, std::ostream& out) {
  CsvWriter csv(out);
  for (const char* name : {"record", "source", "model", "gpu", "policy", "mode", "steps", "samples"}) csv.Text(name);
  for (const SweepColumn& column : SweepColumns()) csv.Text(column.name);
  for (const char* name : {"samples_per_s_over", "bound", "alarms", "column_a", "column_b", "spearman_rho",
                           "correlated_runs", "alarm_ids"}) {
    csv.Text(name);
  }
  csv.EndLine();
  for (const SweepRun& run : sweep.runs) {
    csv.Text("run");
    csv.Text(SourceName(run.source));
    csv.Text(run.model);
    csv.Text(run.gpu);
    csv.Text(run.policy);
    csv.Text(run.training ? "training" : "inference");
    csv.Value(run.steps);
    csv.Value(run.samples);
    for (const SweepColumn& column : SweepColumns()) csv.Value(column.value(run));
    csv.Text(run.samples_per_s > 0 ? run.samples_over_wall ? "wall_time" : "gpu_time" : "");
    csv.Text(run.whole.least_ns <= 0 ? "" : run.whole_derived.memory_bound ? "memory" : "compute");
    csv.Value(uint64_t{run.alarms});
    for (int i = 0; i < 4; ++i) csv.Value({});
    csv.Text(AlarmIds(run));
    csv.EndLine();
  }
  for (const SweepGroup& group : sweep.groups) {
    for (const SweepCorrelation& one : group.correlations) {
      if (!one.rho) continue;
      csv.Text("correlation");
      csv.Text(SourceName(group.source));
      csv.Value({});
      csv.Text(group.gpu);
      for (size_t i = 0; i < 4 + SweepColumns().size() + 3; ++i) csv.Value({});
      csv.Text(SweepColumns()[one.a].name);
      csv.Text(SweepColumns()[one.b].name);
      csv.Value(*one.rho);
      csv.Value(uint64_t{one.runs});
      csv.Value({});
      csv.EndLine();
    }
  }
}

}  // namespace rfinject::cli
