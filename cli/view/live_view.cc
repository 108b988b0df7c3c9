// A job as it runs, for `rfinject top`.
#include "cli/view/live_view.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/report/run_list.h"
#include "cli/text/units.h"
#include "cli/view/report_view.h"
#include "cli/view/run_views.h"
#include "cli/words/opening.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

constexpr auto kLiveRanks = std::to_array<TableLook>({
    {.column = "rank", .title = "rank", .left = true},
    {.column = "state", .title = "state", .width = 7, .left = true},
    {.column = "silent", .title = "silent for", .width = 12},
    {.column = "steps", .title = "steps", .width = 7, .priority = 2},
    {.column = "p50", .title = "p50", .width = 8},
    {.column = "p95", .title = "p95", .width = 8, .priority = 1},
    {.column = "busy", .title = "GPU busy", .width = 8},
    {.column = "restarts", .title = "restarts", .priority = 3},
});

// Whole seconds: "42 s", "3 min 5 s", "2 h 7 min".
std::string Elapsed(int64_t ns) {
  const auto seconds = static_cast<uint64_t>(std::max<int64_t>(0, ns)) / 1'000'000'000;
  if (seconds < 60) return absl::StrFormat("%d s", seconds);
  if (seconds < 3600) return absl::StrFormat("%d min %d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%s h %d min", Grouped(seconds / 3600), seconds / 60 % 60);
}

std::string_view StateName(WriterState state) {
  static constexpr std::array<std::string_view, kWriterStates> kNames = {"quiet", "damaged", "writes", "ended"};
  return kNames[static_cast<size_t>(state)];
}

size_t Count(const LiveRun& live, WriterState state) { return live.ranks_in[static_cast<size_t>(state)]; }

// "python train.py: running for 3 min 5 s"
std::string Title(const LiveRun& live, const LiveLook& look) {
  std::string title = look.command.empty() ? "A program" : look.command;
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
  return "Counters were armed in " + of + " and cover " + Percent(live.report.attribution.counters_share) +
         " of GPU time.";
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
  for (const WriterState state :
       {WriterState::kWrites, WriterState::kEnded, WriterState::kQuiet, WriterState::kDamaged}) {
    if (Count(live, state) == 0) continue;
    title += ", " + Grouped(Count(live, state)) + " " + std::string(StateName(state));
  }
  return title;
}

RowSet RowsOf(const std::vector<LiveRank>& ranks) {
  RowSet rows;
  rows.size = ranks.size();
  const auto add = [&](std::string_view name, Kind kind, Cell (*value)(const LiveRank& rank)) {
    rows.columns.push_back(
        {{.name = name, .kind = kind, .unit = "ns"}, [&ranks, value](size_t row) { return value(ranks[row]); }});
  };
  add("rank", Kind::kText, [](const LiveRank& rank) { return Cell{rank.rank}; });
  add("state", Kind::kText, [](const LiveRank& rank) { return Cell{std::string(StateName(rank.state))}; });
  add("silent", Kind::kText, [](const LiveRank& rank) {
    return Cell{rank.state == WriterState::kEnded ? std::string("-") : Elapsed(rank.silent_ns)};
  });
  add("steps", Kind::kCount, [](const LiveRank& rank) { return Cell{rank.waits.steps}; });
  add("p50", Kind::kUnit, [](const LiveRank& rank) { return KnownCell(rank.waits.wall.p50_ns); });
  add("p95", Kind::kUnit, [](const LiveRank& rank) { return KnownCell(rank.waits.wall.p95_ns); });
  add("busy", Kind::kShare, [](const LiveRank& rank) { return KnownCell(rank.waits.Share(rank.waits.gpu_busy)); });
  add("restarts", Kind::kCount, [](const LiveRank& rank) { return Cell{uint64_t{rank.processes - 1}}; });
  return rows;
}

Section RanksSection(const LiveRun& live, size_t most) {
  Section section{.id = "ranks", .heading = RanksTitle(live)};
  if (live.waits.all.steps > 0) {
    for (const std::string& text : RankTexts(live.waits)) section.lead.push_back({.text = text});
  }
  section.table = Table{.rows = RowsOf(live.ranks), .looks = {kLiveRanks.begin(), kLiveRanks.end()}};
  section.table->names = kLiveRanks.size();
  section.table->most_rows = most == 0 ? live.ranks.size() : most;
  return section;
}

// What stands above the rows.
std::vector<Sentence> Above(const LiveRun& live, const LiveLook& look) {
  std::vector<Sentence> sentences;
  const auto say = [&sentences](std::string text, Tone tone = Tone::kPlain) {
    if (!text.empty()) sentences.push_back({.text = std::move(text), .tone = tone});
  };
  say(Title(live, look), Tone::kStrong);
  say(QuietText(live), Tone::kAlarm);
  for (const std::string& damage : live.damages) say("Damaged: " + damage, Tone::kAlarm);
  if (!live.anything) {
    say("No trace says anything yet: nothing has been trained so far.");
    return sentences;
  }
  const Report& report = live.report;
  if (live.waits.all.steps > 0) {
    say(StepText(live.waits) + (live.waits.on_cpu ? " That is the clock of the CPU that it runs on." : ""));
  }
  if (live.new_steps > 0) {
    say("The last " + Counted(live.new_steps, "step", "steps") + " took " + Duration(live.new_step_ns) +
        (live.new_steps == 1 ? "." : " each."));
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
  if (!alarms.empty()) say("Alarms: " + alarms + " (rfinject report says what they are)", Tone::kAlarm);
  if (live.other_kinds > 0) {
    say("Besides, " + Counted(live.other_kinds, "other kind of run", "other kinds of runs") +
        ": validation, or another batch or precision (rfinject report)");
  }
  return sentences;
}

}  // namespace

Document LiveDocument(const LiveRun& live, const LiveLook& look) {
  Document document{.title = "rfinject top"};
  document.headline = Above(live, look);
  if (live.ranks.size() > 1) document.sections.push_back(RanksSection(live, look.most_ranks));
  if (!live.anything || live.report.rows.empty()) return document;
  ReportLook rows;
  rows.sort = FindColumn(look.sort_column);
  Section section = RowSection(live.report, live.report.by, live.report.rows, rows);
  section.heading = "By " + std::string(ByName(live.report.by)) +
                    (look.sorted_by.empty() ? "" : ", by " + std::string(look.sorted_by)) +
                    (live.report.steps.count > 0 ? ", a step" : ", over all") +
                    (section.table->estimated ? "   (~ estimated)" : "");
  document.sections.push_back(std::move(section));
  return document;
}

}  // namespace rfinject::cli
