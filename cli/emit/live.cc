#include "cli/emit/live.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/emit/code_points.h"
#include "cli/emit/opening.h"
#include "cli/emit/table.h"
#include "cli/emit/text_grid.h"
#include "cli/emit/waits.h"
#include "cli/emit/words.h"
#include "cli/report/run_list.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

// A table of fewer rows says nothing: then it is cut off at the end of the screen.
constexpr size_t kLeastRows = 3;
// How many lines a table has around its rows: its heads, what was left out, the total.
constexpr size_t kAroundRows = 3;

// Whole seconds: "42 s", "3 min 5 s", "2 h 7 min".
std::string Elapsed(int64_t ns) {
  const auto seconds = static_cast<uint64_t>(std::max<int64_t>(0, ns)) / 1'000'000'000;
  if (seconds < 60) return absl::StrFormat("%d s", seconds);
  if (seconds < 3600) return absl::StrFormat("%d min %d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%s h %d min", Grouped(seconds / 3600), seconds / 60 % 60);
}

std::string_view StateName(WriterState state) {
  switch (state) {
    case WriterState::kQuiet:
      return "quiet";
    case WriterState::kDamaged:
      return "damaged";
    case WriterState::kWrites:
      return "writes";
    case WriterState::kEnded:
      return "ended";
  }
  return "";
}

size_t Count(const LiveRun& live, WriterState state) { return live.ranks_in[static_cast<size_t>(state)]; }

// "python train.py: running for 3 min 5 s"
std::string Title(const LiveRun& live, const LiveLook& look) {
  std::string title = look.command.empty() ? "A program" : PrintableText(look.command);
  const bool begun = live.start_unix_ns != 0;
  if (live.ended()) {
    // For how long it ran, a file's time does not say: it may be a copy.
    title += ": ended" + (begun ? "; it began at " + StartText(live.start_unix_ns) : std::string());
  } else if (!live.ranks.empty() && Count(live, WriterState::kWrites) == 0) {
    title += ": nothing is written any more";
  } else {
    title += ": running" + (begun ? " for " + Elapsed(live.now_unix_ns - live.start_unix_ns) : std::string());
  }
  if (live.stopped) title += ", measuring is stopped";
  if (look.paused) title += " (paused)";
  return title;
}

// What counters have seen by now, of a measured run.
std::string CountersText(const LiveRun& live) {
  if (live.report.run.source != SourceKind::kMeasured || live.measured_steps == 0) return {};
  const std::string of = Grouped(live.armed_steps) + " of " + Grouped(live.measured_steps) + " steps";
  if (live.armed_steps == 0) return "No counters were armed yet in " + Grouped(live.measured_steps) + " steps.";
  return "Counters were armed in " + of + " and cover " + Percent(live.report.counters_share) + " of GPU time.";
}

// Says which ranks have written nothing for long; by number where there are several.
std::string QuietText(const LiveRun& live) {
  const size_t quiet = Count(live, WriterState::kQuiet);
  if (quiet == 0) return {};
  const LiveRank& first = live.ranks.front();
  const std::string since = " has written nothing for " + Elapsed(first.silent_ns);
  const std::string why = " and has not said that it ended: it was killed, or it is in one long step, or held up";
  if (live.ranks.size() == 1) return "The program" + since + why + ".";
  std::string text = "Rank " + first.rank + since + why;
  if (quiet > 1) text += "; so have " + Grouped(quiet - 1) + " other ranks for a shorter time";
  return text + ".";
}

std::string RanksTitle(const LiveRun& live) {
  std::string title = "Ranks: " + Grouped(live.ranks.size());
  const char* separator = ", ";
  for (const WriterState state :
       {WriterState::kWrites, WriterState::kEnded, WriterState::kQuiet, WriterState::kDamaged}) {
    if (Count(live, state) == 0) continue;
    title += separator + Grouped(Count(live, state)) + " " + std::string(StateName(state));
  }
  return title;
}

void WriteRanks(const LiveRun& live, const LiveLook& look, std::ostream& out) {
  const auto duration = [](const std::optional<double>& ns) { return ns ? Duration(*ns) : std::string("-"); };
  TextGrid grid;
  grid.columns = {{.title = "rank", .right = false},    {.title = "state", .right = false, .width = 7},
                  {.title = "silent for", .width = 12}, {.title = "steps", .priority = 2, .width = 7},
                  {.title = "p50", .width = 8},         {.title = "p95", .priority = 1, .width = 8},
                  {.title = "GPU busy", .width = 8},    {.title = "restarts", .priority = 3}};
  const size_t count = look.most_ranks == 0 ? live.ranks.size() : std::min(live.ranks.size(), look.most_ranks);
  for (size_t i = 0; i < count; ++i) {
    const LiveRank& rank = live.ranks[i];
    const std::optional<double> busy = rank.waits.Share(rank.waits.gpu_busy);
    grid.lines.push_back(
        {.cells = {rank.rank, std::string(StateName(rank.state)),
                   rank.state == WriterState::kEnded ? "-" : Elapsed(rank.silent_ns), Grouped(rank.waits.steps),
                   duration(rank.waits.wall.p50_ns), duration(rank.waits.wall.p95_ns), busy ? Percent(*busy) : "-",
                   Grouped(rank.processes - 1)}});
  }
  if (count < live.ranks.size()) {
    GridLine more{.cells = std::vector<std::string>(grid.columns.size()), .span = grid.columns.size()};
    more.cells[0] = "(" + Grouped(live.ranks.size() - count) + " more)";
    grid.lines.push_back(std::move(more));
  }
  WriteGrid(grid, look.table.width, look.table.color, out);
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

// What stands above the rows.
std::string Above(const LiveRun& live, const LiveLook& look) {
  const int width = look.table.width;
  const Letters letters(look.table.color);
  std::ostringstream out;
  const auto say = [&out, width](const std::string& text, const char* before = "", const char* after = "") {
    if (text.empty()) return;
    out << before;
    WriteWrapped(out, text, width, "", "  ");
    out << after;
  };
  say(Title(live, look), letters.bold, letters.plain);
  say(QuietText(live), letters.red, letters.plain);
  for (const std::string& damage : live.damages) say("Damaged: " + PrintableText(damage), letters.red, letters.plain);
  if (!live.anything) {
    say("No trace says anything yet: nothing has been trained so far.");
    return std::move(out).str();
  }
  const Report& report = live.report;
  if (live.waits.all.steps > 0) {
    say(StepText(live.waits) + (live.waits.on_cpu ? " That is the clock of the CPU that it runs on." : ""));
  }
  if (live.new_steps > 0) {
    say("The last " + Grouped(live.new_steps) + (live.new_steps == 1 ? " step" : " steps") + " took " +
        Duration(live.new_step_ns) + (live.new_steps == 1 ? "." : " each."));
  }
  say(CostText(report));
  say(LimitText(report));
  say(LargestGainText(report));
  say(CountersText(live));
  say(IntervalText(report));
  std::string alarms;
  for (const Alarm& alarm : report.alarms) {
    if (alarms.find(alarm.id) == alarms.npos) alarms += (alarms.empty() ? "" : ", ") + alarm.id;
  }
  if (!alarms.empty()) say("Alarms: " + alarms + " (rfinject report says what they are)", letters.red, letters.plain);
  if (live.other_kinds > 0) {
    say("Besides, " + Grouped(live.other_kinds) +
        (live.other_kinds == 1 ? " other kind of run: " : " other kinds of runs: ") +
        "validation, or another batch or precision (rfinject report)");
  }
  return std::move(out).str();
}

}  // namespace

std::vector<std::string> LiveLines(const LiveRun& live, const LiveLook& look) {
  const Letters letters(look.table.color);
  std::vector<std::string> lines = LinesOf(Above(live, look));
  const auto add = [&lines](std::ostringstream& out) {
    for (std::string& line : LinesOf(std::move(out).str())) lines.push_back(std::move(line));
  };
  if (live.ranks.size() > 1) {
    std::ostringstream out;
    out << '\n' << letters.bold << RanksTitle(live) << letters.plain << '\n';
    if (live.waits.all.steps > 0) {
      for (const std::string& text : RankTexts(live.waits)) WriteWrapped(out, text, look.table.width, "", "  ");
    }
    WriteRanks(live, look, out);
    add(out);
  }
  if (live.anything && !live.report.rows.empty()) {
    std::ostringstream out;
    out << '\n' << letters.bold << "By " << ByName(live.report.by);
    if (!look.sorted_by.empty()) out << ", by " << look.sorted_by;
    out << (live.report.steps > 0 ? ", a step" : ", over all") << letters.plain
        << (live.report.run.source == SourceKind::kEstimated ? "   (~ estimated)" : "") << '\n';
    TableOptions table = look.table;
    table.sorted = !look.sorted_by.empty();
    if (look.lines > 0) {
      const size_t taken = lines.size() + 2 + kAroundRows;
      table.max_rows = taken + kLeastRows < look.lines ? look.lines - taken : kLeastRows;
    }
    EmitRows(live.report, table, {.always = look.sort_column, .how_to_see_more = look.lines > 0 ? "" : ": --rows 0"},
             out);
    add(out);
  }
  if (look.lines > 0 && lines.size() > look.lines) lines.resize(look.lines);
  return lines;
}

}  // namespace rfinject::cli
