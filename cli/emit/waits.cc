#include "cli/emit/waits.h"

#include <algorithm>
#include <utility>

#include "cli/emit/code_points.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/text_grid.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

std::string DurationOrUnknown(const std::optional<double>& ns) { return ns ? Duration(*ns) : "-"; }
std::string ShareOrUnknown(const std::optional<double>& share) { return share ? Percent(*share) : "-"; }

}  // namespace

std::string StepText(const WaitTable& table) {
  const StepWaits& all = table.all;
  const double wall = all.wall.mean_ns.value_or(0);
  const std::string clock = Duration(wall) + " by the clock (p50 " + DurationOrUnknown(all.wall.p50_ns) + ", p95 " +
                            DurationOrUnknown(all.wall.p95_ns) + ")";
  if (all.step_ns() > wall) {
    return "A step takes the " + Duration(all.step_ns()) +
           " that the GPU is busy: the program does not wait for it, and runs "
           "ahead, with " +
           clock + ".";
  }
  const std::optional<double> busy = all.Share(all.gpu_busy);
  return "A step takes " + clock + (busy ? "; the GPU is busy for " + Percent(*busy) + " of it." : ".");
}

namespace {

std::string ClockText(const WaitTable& table) {
  if (table.on_cpu) {
    return "The program ran on the CPU, so the clock is that of the CPU's arithmetic: how long a GPU would be busy, "
           "or "
           "waited for, is not known. Beside a GPU a step leaves less time in which to load the next batch.";
  }
  if (table.virtual_gpu) {
    return "The clock is the virtual GPU's: this host's, with its data and its launching, and where the host waits "
           "for the "
           "GPU as long as the ideal times of the kernels. Nothing waits in earnest, so workers of a data loader "
           "have "
           "less time than beside a GPU.";
  }
  if (!table.all.data_wait.mean_ns) {
    return "What the host waits for is not known: an older rfinject wrote the trace, or no loop in Python was seen.";
  }
  return {};
}

void WriteParts(const WaitTable& table, const TableOptions& options, std::ostream& out) {
  TextGrid grid;
  grid.columns = {{.title = "of a step", .right = false},
                  {.title = "mean", .width = 8},
                  {.title = "share", .width = 6},
                  {.title = "p50", .priority = 1, .width = 8},
                  {.title = "p95", .priority = 1, .width = 8}};
  const StepWaits& all = table.all;
  const auto add = [&](std::string_view name, const StepPart& part) {
    if (!part.mean_ns) return;  // the text above says why
    grid.lines.push_back(
        {.cells = {std::string(name), DurationOrUnknown(part.mean_ns), ShareOrUnknown(all.Share(part)),
                   DurationOrUnknown(part.p50_ns), DurationOrUnknown(part.p95_ns)}});
  };
  add("by the clock", all.wall);
  add("GPU busy", all.gpu_busy);
  add("GPU idle in launch gaps, at least", all.launch_gaps);
  add("host waits for data", all.data_wait);
  add("host waits for the GPU", all.gpu_wait);
  add("host does its own: Python, launching", all.own);
  WriteGrid(grid, options.width, options.color, out);
}

void WriteRanks(const WaitTable& table, const TableOptions& options, std::ostream& out) {
  TextGrid grid;
  grid.columns = {{.title = "rank", .right = false}, {.title = "steps", .priority = 2, .width = 6},
                  {.title = "p50", .width = 8},      {.title = "p95", .width = 8},
                  {.title = "GPU busy", .width = 8}, {.title = "for data", .width = 8},
                  {.title = "for GPU", .width = 8},  {.title = "gaps", .priority = 1, .width = 8}};
  const auto add = [&](const std::string& rank, const StepWaits& waits) {
    grid.lines.push_back(
        {.cells = {rank, Grouped(waits.steps), DurationOrUnknown(waits.wall.p50_ns),
                   DurationOrUnknown(waits.wall.p95_ns), ShareOrUnknown(waits.Share(waits.gpu_busy)),
                   DurationOrUnknown(waits.data_wait.mean_ns), DurationOrUnknown(waits.gpu_wait.mean_ns),
                   DurationOrUnknown(waits.launch_gaps.mean_ns)}});
  };
  const size_t count = options.max_rows == 0 ? table.ranks.size() : std::min(table.ranks.size(), options.max_rows);
  for (size_t i = 0; i < count; ++i) add(table.ranks[i].rank, table.ranks[i].waits);
  if (count < table.ranks.size()) {
    grid.lines.push_back(
        {.cells = {"(" + Grouped(table.ranks.size() - count) + " more: --rows 0)", "", "", "", "", "", "", ""},
         .span = grid.columns.size()});
  }
  if (table.ranks.size() > 1) add("all", table.all);
  WriteGrid(grid, options.width, options.color, out);
}

}  // namespace

std::vector<std::string> WaitTexts(const WaitTable& table) {
  if (table.all.steps == 0) return {"No step has a time by the clock."};
  std::vector<std::string> texts = {StepText(table)};
  if (std::string clock = ClockText(table); !clock.empty()) texts.push_back(std::move(clock));
  for (std::string& text : RankTexts(table)) texts.push_back(std::move(text));
  return texts;
}

std::vector<std::string> RankTexts(const WaitTable& table) {
  if (table.ranks.size() < 2) return {};
  std::vector<std::string> texts;
  const auto& ranks = table.ranks;
  if (table.slowest) {
    const RankWaits& slow = ranks[*table.slowest];
    texts.push_back("Rank " + slow.rank + " is the slowest, with " + DurationOrUnknown(slow.waits.wall.p50_ns) +
                    " for its median step; the medians of the " + Grouped(ranks.size()) + " ranks are " +
                    Percent(table.spread) + " apart.");
  } else {
    texts.push_back("The median steps of the " + Grouped(ranks.size()) + " ranks are within " +
                    Percent(table.spread) + " of one another, as ranks are that wait for each other.");
  }
  if (table.waits_most) {
    const RankWaits& most = ranks[*table.waits_most];
    texts.push_back("Rank " + most.rank +
                    " waits longest for data: " + DurationOrUnknown(most.waits.data_wait.mean_ns) +
                    " a step, where others wait " + Duration(table.middle_data_wait_ns) + ".");
  }
  return texts;
}

void EmitWaitTable(std::span<const WaitTable> tables, WaitRows rows, const TableOptions& options, std::ostream& out) {
  const char* separator = "";
  for (const WaitTable& table : tables) {
    out << separator << PrintableText(table.title)
        << (rows == WaitRows::kRanks ? ": steps by rank, by the clock\n" : ": what a step waits for, by the clock\n");
    separator = "\n";
    for (const std::string& text : WaitTexts(table)) WriteWrapped(out, text, options.width, "", "  ");
    if (table.all.steps == 0) continue;
    out << '\n';
    rows == WaitRows::kRanks ? WriteRanks(table, options, out) : WriteParts(table, options, out);
  }
}

void EmitWaitJson(std::span<const WaitTable> tables, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.waits/1");
  json.Key("runs");
  json.BeginArray();
  for (const WaitTable& table : tables) {
    json.BeginObject();
    json.Member("device", table.title);
    json.Member("source", SourceName(table.source));
    const auto rank = [&](std::string_view name, const std::optional<size_t>& which) {
      json.Key(name);
      which ? json.String(table.ranks[*which].rank) : json.Null();
    };
    rank("slowest_rank", table.slowest);
    json.Member("spread_of_medians", table.spread);
    rank("longest_data_wait_rank", table.waits_most);
    json.Rows("rows", RowsOf(table));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void EmitWaitCsv(std::span<const WaitTable> tables, std::ostream& out, CsvTexts texts) {
  std::vector<RowSet> sets;
  for (size_t i = 0; i < tables.size(); ++i) {
    RowSet set;
    AppendConstant("run", uint64_t{i + 1}, &set);
    AppendConstant("device", tables[i].title, &set);
    AppendConstant("source", std::string(SourceName(tables[i].source)), &set);
    RowSet rows = RowsOf(tables[i]);
    set.size = rows.size;
    for (Column& column : rows.columns) set.columns.push_back(std::move(column));
    sets.push_back(std::move(set));
  }
  WriteCsv(sets, texts, out);
}

}  // namespace rfinject::cli
