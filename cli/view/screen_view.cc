#include "cli/view/screen_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/picture/names.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/picture_data.h"
#include "cli/report/rows/repeated_blocks.h"
#include "cli/text/code_points.h"
#include "cli/text/grid.h"
#include "cli/text/units.h"
#include "cli/view/report_view.h"
#include "cli/words/opening.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

constexpr int kScreenWidth = 80;
constexpr size_t kScreenRows = 8;

constexpr auto kScreenLooks = std::to_array<TableLook>({
    {.column = "name", .title = "most to win", .left = true, .least_width = 20, .keep_end = true, .most_width = 40},
    {.column = "time_per_step_ns", .title = "time", .width = 8},
    {.column = "time_share", .title = "share", .width = 6},
    {.column = "attained_share", .title = "of roof", .width = 7},
    {.column = "bound", .title = "bound", .width = 7},
    {.column = "to_win_per_step_ns", .title = "to win", .width = 8},
});

// A text in so many lines of a screen at most, as they are wrapped; words that do not fit are left out at its end. A
// name that would fill a line is shortened, and its end says most.
std::string InLines(std::string_view text, size_t lines) {
  const auto fits = [lines](const std::string& shown) {
    std::ostringstream wrapped;
    WriteWrapped(wrapped, shown, kScreenWidth, "", "  ");
    return std::ranges::count(wrapped.view(), '\n') <= static_cast<ptrdiff_t>(lines);
  };
  std::vector<std::string> words = absl::StrSplit(PrintableText(text), ' ');
  for (std::string& word : words) {
    if (word.size() > kScreenWidth - 2) word = Shortened(word, kScreenWidth / 2, true);
  }
  std::string clean = absl::StrJoin(words, " "), shown = clean;
  while (!fits(shown)) {
    const size_t word = clean.rfind(' ');
    if (word == std::string::npos) return Shortened(clean, kScreenWidth, false);
    clean.resize(word);
    shown = clean + " ..";
  }
  return shown;
}

struct Screen {
  std::vector<Report> reports;
  std::vector<Row> rows;  // of the first report, with most to win
  std::vector<std::string> names;
  bool by_roof = false;  // by what is to win; else by time
};

double ToWin(const Row& row) { return row.derived.bound != Bound::kUnknown ? row.derived.slack_ns : 0; }

// The rows of a report, equal layers of repeated blocks as one, with a name each. By what is to win, or by time where
// no roof says it of most of the time.
void FindRows(const Report& report, Screen* screen) {
  RepeatedBlocks repeated;
  if (report.by == By::kLayer) repeated = FindRepeatedBlocks(report.rows);
  std::vector<Row> all = std::move(repeated.groups);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    if (repeated.group_of.empty() || repeated.group_of[i] < 0) all.push_back(report.rows[i]);
  }
  double known_ns = 0, all_ns = 0;
  for (const Row& row : all) {
    known_ns += ToWin(row) > 0 ? row.sums.time_ns() : 0;
    all_ns += row.sums.time_ns();
  }
  screen->by_roof = known_ns > 0 && 2 * known_ns >= all_ns;
  std::stable_sort(all.begin(), all.end(), [by_roof = screen->by_roof](const Row& a, const Row& b) {
    return by_roof ? ToWin(a) > ToWin(b) : a.sums.time_ns() > b.sums.time_ns();
  });
  all.resize(std::min(all.size(), kScreenRows));
  for (Row& row : all) {
    const bool repeats = report.by == By::kLayer && row.layers > 1;
    screen->names.push_back(RowLabel(report, row) + (repeats ? " x" + Grouped(row.layers) : ""));
    screen->rows.push_back(std::move(row));
  }
}

Section WorstRows(const Screen& screen) {
  const Report& report = screen.reports.front();
  Section section{.id = "rows"};
  Table table;
  table.rows = RowsOf(report, screen.rows);
  table.rows.AddText("name", [&screen](size_t row) { return screen.names[row]; });
  table.looks = {kScreenLooks.begin(), kScreenLooks.end()};
  if (std::ranges::none_of(screen.rows, [](const Row& row) { return ToWin(row) > 0; }))
    std::erase_if(table.looks, [](const TableLook& look) {
      return look.column != "name" && look.column != "time_per_step_ns" && look.column != "time_share";
    });
  table.looks.front().title = screen.by_roof ? "most to win" : "most time";
  table.estimated = report.run.source == SourceKind::kEstimated;
  section.table = std::move(table);
  return section;
}

// The first alarm, else the first thing that went wrong in the program; empty where nothing did.
std::string ProblemText(const Report& report) {
  if (!report.alarms.empty()) return std::string(report.alarms.front().id) + " " + report.alarms.front().text;
  for (const DiagnosticInfo& diagnostic : DiagnosticsText(report)) {
    if (diagnostic.severity != Severity::kInfo) return diagnostic.text;
  }
  return {};
}

std::string MoreText(const Screen& screen) {
  const Report& report = screen.reports.front();
  std::string text = "More: rfinject report --full";
  if (report.rows.size() > screen.rows.size()) text += " (" + Grouped(report.rows.size()) + " rows)";
  text += ", --by op, --format html -o report.html";
  return text;
}

}  // namespace

std::string BarText(const std::vector<std::pair<std::string, double>>& parts, size_t width) {
  constexpr size_t kLeast = 3;  // a letter between two bars
  std::vector<std::pair<std::string, double>> shown;
  double sum = 0;
  for (const auto& [name, share] : parts) {
    if (share * static_cast<double>(width) < kLeast) continue;
    shown.emplace_back(name + " " + Percent(share), share);
    sum += share;
  }
  if (shown.empty()) return {};
  std::string text = "|";
  double done = 0;
  for (const auto& [label, share] : shown) {
    done += share / sum;
    const auto end = static_cast<size_t>(std::llround(done * static_cast<double>(width - 1)));
    const size_t room = end - std::min(end, text.size());
    std::string part = label.substr(0, room);
    part.resize(room, '-');
    text += part + "|";
  }
  return text;
}

Document ScreenDocument(std::vector<Report> reports) {
  const auto owner = std::make_shared<Screen>();
  std::stable_partition(reports.begin(), reports.end(),
                        [](const Report& report) { return !report.steps.validation; });
  owner->reports = std::move(reports);
  Document document{.title = DocumentTitle("rfinject report", owner->reports), .owner = owner};
  document.nothing = NothingText(owner->reports);
  if (owner->reports.empty()) return document;
  const Report& report = owner->reports.front();
  for (const Report& one : owner->reports) {
    for (Check& check : ChecksOf(one)) document.checks.push_back(std::move(check));
  }
  FindRows(report, owner.get());
  Section top{.id = "run", .heading = InLines(CostText(report, EndText(report), false), 2)};
  std::vector<std::pair<std::string, double>> phases;
  for (const Row& row : PhaseTotals(report)) phases.emplace_back(PhaseName(row.phase), row.time_share);
  if (std::string bar = BarText(phases, kScreenWidth - 2); !bar.empty()) top.lead.push_back({.text = std::move(bar)});
  if (std::string limit = LimitText(report); !limit.empty()) top.lead.push_back({.text = InLines(limit, 2)});
  const std::string problem = ProblemText(report);
  if (!problem.empty()) top.lead.push_back({.text = InLines(problem, 1), .tone = Tone::kAlarm});
  document.sections.push_back(std::move(top));
  document.sections.push_back(WorstRows(*owner));
  const size_t more = owner->reports.size() - 1;
  const size_t lines_of_gain = more > 0 || !problem.empty() ? 1 : 2;
  Section advice{.id = "advice"};
  for (const std::string& gain : GainTexts(report, /*titles_only=*/true))
    advice.lead.push_back({.text = InLines(gain, lines_of_gain)});
  if (advice.lead.empty())
    advice.lead.push_back({.text = "No rule of advice holds here: rfinject advise --all says why."});
  if (more > 0) {
    advice.lead.push_back({.text = Counted(more, "more report", "more reports") + ": rfinject report --full"});
  }
  advice.lead.push_back({.text = InLines(MoreText(*owner), 1)});
  document.sections.push_back(std::move(advice));
  return document;
}

}  // namespace rfinject::cli
