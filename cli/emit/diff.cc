#include "cli/emit/diff.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/text_grid.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

struct ComparedName {
  std::string_view name, unit;
};
// With the unit that the values have, as the names of columns: "time_before_ns".
constexpr ComparedName kCompared[kComparedCount] = {
    {"time", "ns"}, {"flop", ""}, {"dram_bytes", ""}, {"oi", "flop_per_byte"}, {"attainable_share", ""}};

std::string ColumnName(size_t quantity, std::string_view what) {
  const ComparedName& compared = kCompared[quantity];
  std::string name = std::string(compared.name) + "_" + std::string(what);
  if (!compared.unit.empty() && what != "change") name += "_" + std::string(compared.unit);
  return name;
}

std::string Margin(const Change& change) {
  if (change.verdict == Verdict::kOneSide) return "";
  if (std::isinf(change.half_width)) return "?";
  return change.half_width > 0 ? Duration(change.half_width) : "exact";
}

std::string Side(bool there, double ns) { return there ? Duration(ns) : "none"; }
std::string Share(bool there, const Change& change, bool before) {
  const double share = before ? change.before : change.after;
  return there && share > 0 ? Percent(share) : "-";
}

void WritePair(const Diff& diff, const RunDiff& pair, const TableOptions& options, std::ostream& out) {
  const char* bold = options.color ? "\033[1m" : "";
  const char* plain = options.color ? "\033[0m" : "";
  WriteWrapped(out, pair.before_title, options.width, std::string(bold) + "A" + plain + "  ", "   ");
  WriteWrapped(out, pair.after_title, options.width, std::string(bold) + "B" + plain + "  ", "   ");
  for (const std::string& caveat : pair.caveats) WriteWrapped(out, caveat, options.width, "   note: ", "   ");

  std::vector<const DiffRow*> changed;
  for (const DiffRow& row : pair.rows) {
    if (row.Changed()) changed.push_back(&row);
  }
  const size_t same = pair.rows.size() - changed.size();
  if (changed.empty()) {
    out << "   No difference: all " << Grouped(same) << " rows are equal.\n";
    return;
  }
  const Change& time = pair.total[Compared::kTime];
  WriteWrapped(out,
               "GPU time" + std::string(pair.per_step ? " a step: " : ": ") + Duration(time.before) + " to " +
                   Duration(time.after) + ", " + SignedDuration(time.difference()) +
                   (time.before > 0 ? " (" + Times(time.before, time.after) + ")" : "") +
                   (time.half_width > 0 && std::isfinite(time.half_width) ? " +- " + Duration(time.half_width) : "") +
                   (time.verdict == Verdict::kNoise     ? ", within the noise"
                    : time.verdict == Verdict::kUnknown ? ", of unknown certainty: sampled once"
                                                        : ""),
               options.width, "  ", "   ");
  out << '\n';

  TextGrid grid;
  grid.mark = pair.exact ? "~ " : "  ";
  grid.columns = {{diff.by == By::kOp      ? "op"
                   : diff.by == By::kModel ? "model"
                                           : "layer",
                   false, 0, 16, true},
                  {"phase", false, 1},
                  {"time A", true, 2},
                  {"time B", true, 2},
                  {"change", true, 0},
                  {"+-95 %", true, 3},
                  {"real", false, 3},
                  {"FLOP", true, 5},
                  {"bytes", true, 5},
                  {"OI", true, 4},
                  {"roof A", true, 3},
                  {"roof B", true, 3}};
  Sums rest_before, rest_after;
  size_t left_out = 0;
  const auto line = [&](const DiffRow& row, const std::string& name) {
    const Change& change = row[Compared::kTime];
    const Change &flop = row[Compared::kFlop], &bytes = row[Compared::kBytes], &oi = row[Compared::kOi];
    const bool both = row.in_before && row.in_after;
    grid.lines.push_back({name, ShortPhase(row.phase), Side(row.in_before, change.before),
                          Side(row.in_after, change.after), SignedDuration(change.difference()), Margin(change),
                          !both                               ? (row.in_before ? "only A" : "only B")
                          : change.verdict == Verdict::kReal  ? "yes"
                          : change.verdict == Verdict::kNoise ? "no"
                          : change.verdict == Verdict::kSame  ? "same"
                                                              : "?",
                          both ? Times(flop.before, flop.after) : "-", both ? Times(bytes.before, bytes.after) : "-",
                          both ? Times(oi.before, oi.after) : "-", Share(row.in_before, row[Compared::kShare], true),
                          Share(row.in_after, row[Compared::kShare], false)});
  };
  for (size_t i = 0; i < changed.size(); ++i) {
    if (options.max_rows > 0 && i >= options.max_rows) {
      rest_before.Add(changed[i]->before);
      rest_after.Add(changed[i]->after);
      ++left_out;
    } else {
      line(*changed[i], DiffRowName(*changed[i], diff.by));
    }
  }
  if (left_out > 0) {
    grid.lines.push_back({"(" + Grouped(left_out) + " more)", "", Duration(rest_before.time_ns),
                          Duration(rest_after.time_ns), SignedDuration(rest_after.time_ns - rest_before.time_ns)});
  }
  line(pair.total, "total");
  // Of exact numbers there is no margin to show.
  const auto hide = [&](std::string_view title) {
    for (size_t c = 0; c < grid.columns.size(); ++c) {
      if (grid.columns[c].title != title) continue;
      grid.columns.erase(grid.columns.begin() + static_cast<std::ptrdiff_t>(c));
      for (auto& cells : grid.lines) {
        if (c < cells.size()) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(c));
      }
      return;
    }
  };
  if (pair.exact) hide("+-95 %"), hide("real");
  if (diff.by == By::kModel) hide("phase");
  WriteGrid(grid, options.width, options.color, out);
  WriteWrapped(
      out,
      std::string("FLOP, bytes, OI: B over A; roof: % of attainable.") +
          (same > 0 ? " " + Grouped(same) + (same == 1 ? " row is" : " rows are") + " equal and not listed." : ""),
      options.width, "  ", "  ");
}

void WriteChanges(JsonWriter& json, const DiffRow& row) {
  for (size_t q = 0; q < kComparedCount; ++q) {
    const Change& change = row.changes[q];
    json.Key(ColumnName(q, "before"));
    row.in_before ? json.Number(change.before) : json.Null();
    json.Key(ColumnName(q, "after"));
    row.in_after ? json.Number(change.after) : json.Null();
    json.Member(ColumnName(q, "ci95"), change.half_width);  // infinite becomes null
    json.Member(ColumnName(q, "change"), VerdictName(change.verdict));
  }
}

}  // namespace

std::string DiffRowName(const DiffRow& row, By by) {
  if (by == By::kModel || by == By::kPhase) return row.model.empty() ? "(no layer)" : row.model;
  if (by == By::kOp) return row.op;
  std::string name = row.model.empty() ? "(no layer)" : row.layer.empty() ? row.model : row.layer;
  if (by == By::kKernel) name += " " + row.op;
  return name;
}

std::string ShortPhase(std::string_view phase) {
  if (phase == "forward") return "fwd";
  if (phase == "backward") return "bwd";
  if (phase == "optimizer") return "opt";
  if (phase == "recompute") return "again";
  if (phase == "communication") return "comm";
  return std::string(phase);
}

std::string SignedDuration(double ns) {
  if (ns == 0) return "0";
  return (ns > 0 ? "+" : "-") + Duration(std::fabs(ns));
}

std::string Times(double before, double after) { return before > 0 && after > 0 ? "x" + Plain(after / before) : "-"; }

void EmitDiffTable(const Diff& diff, const TableOptions& options, std::ostream& out) {
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
    json.Key("notes");
    json.BeginArray();
    for (const std::string& caveat : pair.caveats) json.String(caveat);
    json.EndArray();
    json.Key("total");
    json.BeginObject(/*one_line=*/true);
    WriteChanges(json, pair.total);
    json.EndObject();
    json.Key("rows");
    json.BeginArray();
    for (const DiffRow& row : pair.rows) {
      json.BeginObject(/*one_line=*/true);
      json.Optional("model", row.model);
      json.Key("layer");
      row.model.empty() ? json.Null() : json.String(row.layer);
      json.Optional("phase", row.phase);
      json.Optional("op", row.op);
      WriteChanges(json, row);
      json.EndObject();
    }
    json.EndArray();
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

void EmitDiffCsv(const Diff& diff, std::ostream& out) {
  CsvWriter csv(out);
  for (const char* name : {"record", "pair", "before", "after", "per_step", "model", "layer", "phase", "op"}) {
    csv.Text(name);
  }
  for (size_t q = 0; q < kComparedCount; ++q) {
    for (const char* what : {"before", "after", "ci95", "change"}) csv.Text(ColumnName(q, what));
  }
  csv.EndLine();
  for (size_t i = 0; i < diff.pairs.size(); ++i) {
    const RunDiff& pair = diff.pairs[i];
    const auto write = [&](const char* record, const DiffRow& row) {
      csv.Text(record);
      csv.Value(uint64_t{i + 1});
      csv.Text(pair.before_title);
      csv.Text(pair.after_title);
      csv.Text(pair.per_step ? "yes" : "no");
      csv.Text(row.model);
      csv.Text(row.layer);
      csv.Text(row.phase);
      csv.Text(row.op);
      for (const Change& change : row.changes) {
        csv.Value(row.in_before ? Cell{change.before} : Cell{});
        csv.Value(row.in_after ? Cell{change.after} : Cell{});
        csv.Value(change.half_width);
        csv.Text(VerdictName(change.verdict));
      }
      csv.EndLine();
    };
    for (const DiffRow& row : pair.rows) write("row", row);
    write("total", pair.total);
  }
}

}  // namespace rfinject::cli
