#include "cli/view/screen_view.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/picture/names.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/code_points.h"
#include "cli/text/units.h"
#include "cli/view/report_view.h"
#include "cli/words/opening.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

constexpr size_t kScreenWidth = 80, kScreenRows = 8;

constexpr auto kScreenLooks = std::to_array<TableLook>({
    {.column = "name", .title = "most to win", .left = true, .least_width = 20, .keep_end = true, .most_width = 40},
    {.column = "time_per_step_ns", .title = "time", .width = 8},
    {.column = "time_share", .title = "share", .width = 6},
    {.column = "attained_share", .title = "of roof", .width = 7},
    {.column = "bound", .title = "bound", .width = 7},
    {.column = "to_win_per_step_ns", .title = "to win", .width = 8},
});

// A text in so many lines of a screen at most, as they are wrapped.
std::string InLines(const std::string& text, size_t lines) {
  constexpr size_t kIndent = 2, kLongName = kScreenWidth / 2;
  const std::string more = " ..";
  const std::vector<std::string> words = absl::StrSplit(PrintableText(text), ' ');
  std::string kept;
  size_t line = 1, width = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    // A name that fills a line is not wrapped; its end says most.
    const std::string word =
        words[i].size() > kScreenWidth - kIndent ? Shortened(words[i], kLongName, true) : words[i];
    const bool ends = line == lines && i + 1 < words.size();
    if (width + 1 + word.size() > kScreenWidth - (ends ? more.size() : 0)) {
      if (line++ == lines) return kept + more;
      width = kIndent;
    }
    absl::StrAppend(&kept, kept.empty() ? "" : " ", word);
    width += 1 + word.size();
  }
  return kept;
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
  using Key = std::tuple<std::string, std::string, std::string, uint64_t, std::optional<Phase>>;
  std::map<Key, size_t> places;
  std::vector<std::pair<Row, uint64_t>> all;  // and how many layers they are
  for (const Row& row : report.rows) {
    const bool repeats = report.by == By::kLayer && !row.layer.empty();
    if (!repeats) {
      all.emplace_back(row, 1);
      continue;
    }
    Row named = row;
    named.layer = WithoutNumbers(row.layer);
    const auto [place, is_new] =
        places.try_emplace({row.model, named.layer, row.class_name, row.parameters, row.phase}, all.size());
    if (is_new) {
      all.emplace_back(std::move(named), 1);
      // A layer that stays alone has its own name.
      all.back().first.group = row.layer;
      continue;
    }
    auto& [sum, layers] = all[place->second];
    sum.sums.Add(row.sums);
    sum.time_share += row.time_share;
    sum.derived = Derive(sum.sums);
    ++layers;
  }
  double known_ns = 0, all_ns = 0;
  for (const auto& [row, layers] : all) {
    known_ns += ToWin(row) > 0 ? row.sums.time_ns() : 0;
    all_ns += row.sums.time_ns();
  }
  screen->by_roof = known_ns > 0 && 2 * known_ns >= all_ns;
  std::stable_sort(all.begin(), all.end(), [by_roof = screen->by_roof](const auto& a, const auto& b) {
    return by_roof ? ToWin(a.first) > ToWin(b.first) : a.first.sums.time_ns() > b.first.sums.time_ns();
  });
  all.resize(std::min(all.size(), kScreenRows));
  for (auto& [row, layers] : all) {
    if (layers == 1 && report.by == By::kLayer && !row.group.empty()) row.layer = std::exchange(row.group, {});
    screen->names.push_back(RowLabel(report, row) + (layers > 1 ? " x" + Grouped(layers) : ""));
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

std::string MoreText(const Screen& screen) {
  const Report& report = screen.reports.front();
  std::string text = "More: rfinject report --full";
  if (report.rows.size() > screen.rows.size()) text += " (" + Grouped(report.rows.size()) + " rows)";
  text += ", --by op, --format html -o report.html";
  return text;
}

}  // namespace

std::string WithoutNumbers(std::string_view path) {
  std::vector<std::string> parts = absl::StrSplit(std::string(path), '.');
  for (std::string& part : parts) {
    const size_t digits = part.find_last_not_of("0123456789") + 1;
    const bool is_number = digits == 0, of_recording = digits > 1 && part[digits - 1] == '_';
    if (digits < part.size() && (is_number || of_recording)) part = part.substr(0, digits) + "*";
  }
  return absl::StrJoin(parts, ".");
}

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
  if (const size_t alarms = report.alarms.size(); alarms > 0) {
    top.lead.push_back({.text = InLines(std::string(report.alarms.front().id) + " " + report.alarms.front().text, 1),
                        .tone = Tone::kAlarm});
  }
  document.sections.push_back(std::move(top));
  document.sections.push_back(WorstRows(*owner));
  const size_t more = owner->reports.size() - 1;
  const size_t lines_of_gain = more > 0 || !report.alarms.empty() ? 1 : 2;
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
