#include "cli/emit/diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/emit/cell_text.h"
#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/text_grid.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

std::string Margin(const Change& change) {
  if (change.verdict == Verdict::kOneSide) return "";
  if (std::isinf(change.half_width)) return "?";
  return change.half_width > 0 ? Duration(change.half_width) : "exact";
}

// Whether the column is one of those that say which row it is.
bool IsKey(std::string_view column) {
  return column == "model" || column == "layer" || column == "phase" || column == "op";
}

std::string Side(bool there, double ns) { return there ? Duration(ns) : "none"; }
std::string Share(bool there, double share) { return there && share > 0 ? Percent(share) : "-"; }

std::string Real(const DiffRow& row) {
  const Change& change = row[Compared::kTime];
  if (!row.in_before || !row.in_after) return row.in_before ? "only A" : "only B";
  switch (change.verdict) {
    case Verdict::kReal:
      return "yes";
    case Verdict::kNoise:
      return "no";
    case Verdict::kSame:
      return "same";
    case Verdict::kUnknown:
    case Verdict::kOneSide:
      break;
  }
  return change.trust > Trust::kByLaunch ? std::string(TrustName(change.trust)) : "?";
}

template <Compared kQuantity>
Cell RatioCell(const DiffRow& row) {
  return Cell{row.in_before && row.in_after ? Times(row[kQuantity]) : std::string("-")};
}

// The columns of the table behind the rows' names. `row_only`: not in the line that stands for rows that are left
// out.
constexpr auto kTableColumns = std::to_array<ColumnOf<DiffRow>>({
    {{.name = "phase", .table = {.place = 10, .title = "phase", .priority = 1, .left = true, .row_only = true}},
     [](const DiffRow& row) { return Cell{ShortPhase(row.phase)}; }},
    {{.name = "time_before", .table = {.place = 20, .title = "time A", .priority = 2}},
     [](const DiffRow& row) { return Cell{Side(row.in_before, row[Compared::kTime].before)}; }},
    {{.name = "time_after", .table = {.place = 30, .title = "time B", .priority = 2}},
     [](const DiffRow& row) { return Cell{Side(row.in_after, row[Compared::kTime].after)}; }},
    {{.name = "time_difference", .table = {.place = 40, .title = "change"}},
     [](const DiffRow& row) { return Cell{SignedDuration(row[Compared::kTime].difference())}; }},
    {{.name = "time_margin", .table = {.place = 50, .title = "+-95 %", .priority = 3, .row_only = true}},
     [](const DiffRow& row) { return Cell{Margin(row[Compared::kTime])}; }},
    {{.name = "time_real", .table = {.place = 60, .title = "real", .priority = 3, .left = true, .row_only = true}},
     [](const DiffRow& row) { return Cell{Real(row)}; }},
    {{.name = "time_visible", .table = {.place = 70, .title = "seen from", .priority = 4, .row_only = true}},
     [](const DiffRow& row) {
       const double visible = row[Compared::kTime].visible;
       return Cell{visible > 0 ? Duration(visible) : std::string()};
     }},
    {{.name = "flop_ratio", .table = {.place = 80, .title = "FLOP", .priority = 5, .row_only = true}},
     RatioCell<Compared::kFlop>},
    {{.name = "bytes_ratio", .table = {.place = 90, .title = "bytes", .priority = 5, .row_only = true}},
     RatioCell<Compared::kBytes>},
    {{.name = "oi_ratio", .table = {.place = 100, .title = "OI", .priority = 4, .row_only = true}},
     RatioCell<Compared::kOi>},
    {{.name = "share_before", .table = {.place = 110, .title = "roof A", .priority = 3, .row_only = true}},
     [](const DiffRow& row) { return Cell{Share(row.in_before, row[Compared::kShare].before)}; }},
    {{.name = "share_after", .table = {.place = 120, .title = "roof B", .priority = 3, .row_only = true}},
     [](const DiffRow& row) { return Cell{Share(row.in_after, row[Compared::kShare].after)}; }},
});

// Whether the table of this pair has the column: of exact numbers there is no margin to show.
bool Shown(std::string_view column, const Diff& diff, const RunDiff& pair, std::span<const DiffRow* const> rows) {
  if (column == "phase") return diff.by != By::kModel;
  if (column == "time_margin" || column == "time_real") return !pair.exact;
  if (column == "time_visible") {
    return std::any_of(rows.begin(), rows.end(),
                       [](const DiffRow* row) { return (*row)[Compared::kTime].visible > 0; });
  }
  return true;
}

void WriteRows(const Diff& diff, const RunDiff& pair, const DiffExcerpt& excerpt, const TableOptions& options,
               std::ostream& out) {
  std::vector<const DiffRow*> rows = excerpt.rows;
  DiffRow rest{.in_before = true, .in_after = true};
  rest.changes[static_cast<size_t>(Compared::kTime)] = excerpt.rest_time;
  if (excerpt.left_out > 0) rows.push_back(&rest);
  rows.push_back(&pair.total);

  RowSet set;
  set.size = rows.size();
  Append(
      std::span<const ColumnOf<DiffRow>>(kTableColumns), [&rows](size_t i) -> const DiffRow& { return *rows[i]; },
      &set);
  std::vector<const Column*> columns = ShownIn(set, &ColumnInfo::table);
  std::erase_if(columns, [&](const Column* column) { return !Shown(column->info.name, diff, pair, rows); });

  TextGrid grid;
  grid.mark = pair.exact ? "~ " : "  ";
  grid.columns.push_back({.title = diff.by == By::kOp      ? "op"
                                   : diff.by == By::kModel ? "model"
                                                           : "layer",
                          .right = false,
                          .least_width = 16,
                          .keep_end = true});
  for (const Column* column : columns) grid.columns.push_back(GridColumnOf(column->info.table));
  for (size_t i = 0; i < rows.size(); ++i) {
    GridLine& line = grid.lines.emplace_back();
    line.cells.push_back(rows[i] == &rest         ? "(" + Grouped(excerpt.left_out) + " more)"
                         : rows[i] == &pair.total ? "total"
                                                  : DiffRowName(*rows[i], diff.by));
    for (const Column* column : columns) {
      const TableLook& look = column->info.table;
      const bool blank = look.row_only && rows[i] == &rest;
      line.cells.push_back(blank ? std::string() : TableText(column->info, look, column->value(i)));
    }
  }
  WriteGrid(grid, options.wide ? kAnyWidth : options.width, options.color, out);
}

// What the datasheet allows, beside the expected times that are compared.
std::string IdealText(const RunDiff& pair) {
  const double before = pair.total.before.ideal_ns(), after = pair.total.after.ideal_ns();
  if (!pair.exact || before <= 0 || after <= 0) return {};
  return "; ideal, by the datasheet: " + Duration(before) + " to " + Duration(after);
}

void WritePair(const Diff& diff, const RunDiff& pair, const TableOptions& options, std::ostream& out) {
  const Letters letters(options.color);
  WriteWrapped(out, pair.before_title, options.width, std::string(letters.bold) + "A" + letters.plain + "  ", "   ");
  WriteWrapped(out, pair.after_title, options.width, std::string(letters.bold) + "B" + letters.plain + "  ", "   ");
  for (const Caveat& caveat : pair.caveats) WriteWrapped(out, CaveatText(caveat), options.width, "   note: ", "   ");

  const DiffExcerpt excerpt = ExcerptOf(pair, options.max_rows);
  if (excerpt.rows.empty()) {
    out << "   No difference: all " << Grouped(excerpt.same) << " rows are equal.\n";
    return;
  }
  const Change& time = pair.total[Compared::kTime];
  WriteWrapped(out,
               "GPU time" + std::string(pair.per_step ? " a step" : "") + DiffTimesText(pair) + ": " +
                   Duration(time.before) + " to " + Duration(time.after) + ", " + SignedDuration(time.difference()) +
                   (time.before > 0 ? " (" + Times(time) + ")" : "") +
                   (time.half_width > 0 && std::isfinite(time.half_width) ? " +- " + Duration(time.half_width) : "") +
                   (time.verdict == Verdict::kNoise
                        ? ", within the noise; from " + Duration(time.visible) + " on it would have been seen"
                    : time.verdict == Verdict::kUnknown ? ", " + VerdictText(time)
                                                        : "") +
                   IdealText(pair),
               options.width, "  ", "   ");
  out << '\n';

  WriteRows(diff, pair, excerpt, options, out);
  WriteWrapped(out,
               std::string("FLOP, bytes, OI: B over A; roof: % of attainable.") +
                   (excerpt.same > 0 ? " " + Grouped(excerpt.same) + (excerpt.same == 1 ? " row is" : " rows are") +
                                           " equal and not listed."
                                     : ""),
               options.width, "  ", "  ");
  const std::string correction = CorrectionText(pair);
  if (!correction.empty()) WriteWrapped(out, correction, options.width, "  ", "  ");
}

}  // namespace

std::string DiffTimesText(const RunDiff& pair) {
  if (pair.expected) return pair.exact ? ", expected" : ", expected where estimated";
  return pair.exact ? ", ideal" : "";
}

std::string CaveatText(const Caveat& caveat) {
  const auto against = [](std::string_view what, std::string_view was, std::string_view is) {
    return absl::StrFormat("%s%s%s against %s", what, what.empty() ? "" : " ", was, is);
  };
  const auto switched = [&](std::string_view what) {
    const auto word = [](uint64_t state) { return state == 1 ? "off" : "on"; };
    return against(what, word(caveat.before), word(caveat.after));
  };
  switch (caveat.of) {
    case Caveat::Of::kNetwork:
      return "these are different networks";
    case Caveat::Of::kSource: {
      const auto was = static_cast<SourceKind>(caveat.before), is = static_cast<SourceKind>(caveat.after);
      const bool estimated = was == SourceKind::kEstimated || is == SourceKind::kEstimated;
      return absl::StrFormat("one side is %s, the other %s: part of every change is %s", SourceName(was),
                             SourceName(is), estimated ? "the cost model's error" : "how the tools count");
    }
    case Caveat::Of::kBatch:
      return against("batch", Grouped(caveat.before), Grouped(caveat.after));
    case Caveat::Of::kMode: {
      const auto word = [](uint64_t training) { return training != 0 ? "training" : "inference"; };
      return against("", word(caveat.before), word(caveat.after));
    }
    case Caveat::Of::kTf32InConvolutions:
      return switched("TF32 in convolutions");
    case Caveat::Of::kTf32InProducts:
      return switched("TF32 in matrix products");
    case Caveat::Of::kCudnnBenchmark:
      return switched("cudnn.benchmark");
    case Caveat::Of::kCudnnDeterministic:
      return switched("cudnn.deterministic");
    case Caveat::Of::kAutocast: {
      const auto word = [](const std::string& dtype) { return dtype.empty() ? std::string("none") : dtype; };
      return against("autocast", word(caveat.before_text), word(caveat.after_text));
    }
    case Caveat::Of::kTorchVersion:
      break;
  }
  return against("torch", caveat.before_text, caveat.after_text);
}

std::string DiffRowName(const DiffRow& row, By by) {
  if (by == By::kModel || by == By::kPhase) return row.model.empty() ? "(no layer)" : row.model;
  if (by == By::kOp) return row.op;
  std::string name = row.model.empty() ? "(no layer)" : row.layer.empty() ? row.model : row.layer;
  if (by == By::kKernel) name += " " + row.op;
  return name;
}

std::string ShortPhase(std::optional<Phase> phase) {
  if (phase == Phase::kForward) return "fwd";
  if (phase == Phase::kBackward) return "bwd";
  if (phase == Phase::kOptimizer) return "opt";
  if (phase == Phase::kRecompute) return "again";
  if (phase == Phase::kCommunication) return "comm";
  return std::string(PhaseName(phase));
}

std::string SignedDuration(double ns) {
  if (ns == 0) return "0";
  return (ns > 0 ? "+" : "-") + Duration(std::fabs(ns));
}

std::string Times(const Change& change) { return change.ratio > 0 ? "x" + Plain(change.ratio) : "-"; }

void EmitDiffTable(const Diff& diff, const TableOptions& options, std::ostream& out) {
  for (const Gate& gate : diff.gates) {
    WriteWrapped(out, GateText(gate), options.width, gate.outcome == Gate::Outcome::kFails ? "FAILS  " : "",
                 "       ");
  }
  bool first = true;
  for (const RunDiff& pair : diff.pairs) {
    if (!first) out << '\n';
    first = false;
    WritePair(diff, pair, options, out);
  }
  for (const auto& [list, text] :
       {std::pair(&diff.only_before, "only in A: "), std::pair(&diff.only_after, "only in B: ")}) {
    for (const std::string& title : *list) WriteWrapped(out, title, options.width, text, "   ");
  }
}

void EmitDiffJson(const Diff& diff, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.diff/1");
  json.Key("pairs");
  json.BeginArray();
  for (const RunDiff& pair : diff.pairs) {
    json.BeginObject();
    json.Member("before", pair.before_title);
    json.Member("after", pair.after_title);
    json.Key("per_step");
    json.Bool(pair.per_step);
    json.Member("correction", CorrectionName(pair.correction));
    json.Key("comparisons");
    json.Number(static_cast<double>(pair.comparisons));
    json.Member("estimated_times", pair.expected ? "expected" : pair.exact ? "ideal" : "");
    json.Key("paired_steps");
    json.Bool(pair.paired);
    json.Key("notes");
    json.BeginArray();
    for (const Caveat& caveat : pair.caveats) json.String(CaveatText(caveat));
    json.EndArray();
    json.Key("total");
    json.BeginObject(/*one_line=*/true);
    RowSet total = RowsOf(std::span(&pair.total, 1));
    std::erase_if(total.columns, [](const Column& column) { return IsKey(column.info.name); });
    json.Members(total, 0);
    json.EndObject();
    json.Rows("rows", RowsOf(pair.rows));
    json.EndObject();
  }
  json.EndArray();
  for (const auto& [name, list] :
       {std::pair("only_before", &diff.only_before), std::pair("only_after", &diff.only_after)}) {
    json.Key(name);
    json.BeginArray();
    for (const std::string& title : *list) json.String(title);
    json.EndArray();
  }
  json.EndObject();
}

void EmitDiffCsv(const Diff& diff, std::ostream& out, CsvTexts texts) {
  std::vector<RowSet> sets;
  const auto add = [&](std::string record, size_t index, const RunDiff& pair, std::span<const DiffRow> rows) {
    RowSet& set = sets.emplace_back();
    set.size = rows.size();
    AppendConstant("record", std::move(record), &set);
    AppendConstant("pair", uint64_t{index}, &set);
    AppendConstant("before", pair.before_title, &set);
    AppendConstant("after", pair.after_title, &set);
    AppendConstant("per_step", pair.per_step ? "yes" : "no", &set);
    for (Column& column : RowsOf(rows).columns) set.columns.push_back(std::move(column));
  };
  for (size_t i = 0; i < diff.pairs.size(); ++i) {
    const RunDiff& pair = diff.pairs[i];
    add("row", i + 1, pair, pair.rows);
    add("total", i + 1, pair, std::span(&pair.total, 1));
  }
  if (diff.pairs.empty()) add("row", 0, {}, {});  // the head
  WriteCsv(sets, texts, out);
}

}  // namespace rfinject::cli
