// What changed from one run to another.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/picture/diff_picture.h"
#include "cli/text/units.h"
#include "cli/view/compare_views.h"
#include "cli/view/diff_words.h"

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
std::string Ratio(const DiffRow& row) {
  return row.in_before && row.in_after ? Times(row[kQuantity]) : "-";
}

constexpr auto kDiffLooks = std::to_array<TableLook>({
    {.column = "name", .title = "", .left = true, .least_width = 16, .keep_end = true},
    {.column = "phase", .title = "phase", .priority = 1, .left = true},
    {.column = "time_before", .title = "time A", .priority = 2},
    {.column = "time_after", .title = "time B", .priority = 2},
    {.column = "time_difference", .title = "change"},
    {.column = "time_margin", .title = "+-95 %", .priority = 3},
    {.column = "time_real", .title = "real", .priority = 3, .left = true},
    {.column = "time_visible", .title = "seen from", .priority = 4},
    {.column = "flop_ratio", .title = "FLOP", .priority = 5},
    {.column = "bytes_ratio", .title = "bytes", .priority = 5},
    {.column = "oi_ratio", .title = "OI", .priority = 4},
    {.column = "share_before", .title = "roof A", .priority = 3},
    {.column = "share_after", .title = "roof B", .priority = 3},
});

// Whether the table of this pair has the column: of exact numbers there is no margin to show.
bool Shown(std::string_view column, By by, const RunDiff& pair) {
  if (column == "phase") return by != By::kModel;
  if (column == "time_margin" || column == "time_real") return !pair.exact;
  if (column == "time_visible") {
    return std::any_of(pair.rows.begin(), pair.rows.end(),
                       [](const DiffRow& row) { return row[Compared::kTime].visible > 0; });
  }
  return true;
}

// What the datasheet allows, beside the expected times that are compared.
std::string IdealText(const RunDiff& pair) {
  const double before = pair.total.before.ideal_ns(), after = pair.total.after.ideal_ns();
  if (!pair.exact || before <= 0 || after <= 0) return {};
  return "; ideal, by the datasheet: " + Duration(before) + " to " + Duration(after);
}

// Rows with the texts of tables; `row_at` gives them.
RowSet TextsOf(size_t size, By by, const std::function<const DiffRow&(size_t row)>& row_at) {
  RowSet set{.size = size};
  const auto add = [&](std::string_view name, std::string (*text)(const DiffRow& row)) {
    set.AddText(name, [row_at, text](size_t row) { return text(row_at(row)); });
  };
  add("phase", [](const DiffRow& row) { return ShortPhase(row.phase); });
  add("time_before", [](const DiffRow& row) { return Side(row.in_before, row[Compared::kTime].before); });
  add("time_after", [](const DiffRow& row) { return Side(row.in_after, row[Compared::kTime].after); });
  add("time_difference", [](const DiffRow& row) { return SignedDuration(row[Compared::kTime].difference()); });
  add("time_margin", [](const DiffRow& row) { return Margin(row[Compared::kTime]); });
  add("time_real", Real);
  add("time_visible", [](const DiffRow& row) {
    const double visible = row[Compared::kTime].visible;
    return visible > 0 ? Duration(visible) : "";
  });
  add("flop_ratio", Ratio<Compared::kFlop>);
  add("bytes_ratio", Ratio<Compared::kBytes>);
  add("oi_ratio", Ratio<Compared::kOi>);
  add("share_before", [](const DiffRow& row) { return Share(row.in_before, row[Compared::kShare].before); });
  add("share_after", [](const DiffRow& row) { return Share(row.in_after, row[Compared::kShare].after); });
  set.AddText("name", [by, row_at](size_t row) { return DiffRowName(row_at(row), by); });
  return set;
}

// The rows that changed, largest change first.
Table ChangeTable(const RunDiff& pair, By by) {
  std::vector<const DiffRow*> changed;
  for (const DiffRow& row : pair.rows) {
    if (row.Changed()) changed.push_back(&row);
  }
  const auto row_at = [changed](size_t i) -> const DiffRow& { return *changed[i]; };
  Table table{.rows = TextsOf(changed.size(), by, row_at)};
  table.estimated = pair.exact;
  for (const TableLook& look : kDiffLooks) {
    if (Shown(look.column, by, pair)) table.looks.push_back(look);
  }
  table.looks.front().title = by == By::kOp ? "op" : by == By::kModel ? "model" : "layer";
  table.total = TextsOf(1, by, [&pair](size_t) -> const DiffRow& { return pair.total; });
  table.rest = [row_at, by](std::span<const size_t> which) {
    const auto rest = std::make_shared<DiffRow>();
    rest->in_before = rest->in_after = true;
    Change& time = rest->changes[static_cast<size_t>(Compared::kTime)];
    for (const size_t i : which) {
      time.before += row_at(i).before.time_ns();
      time.after += row_at(i).after.time_ns();
    }
    RowSet set = TextsOf(1, by, [rest](size_t) -> const DiffRow& { return *rest; });
    std::erase_if(set.columns, [](const Column& column) {
      return column.info.name != "time_before" && column.info.name != "time_after" &&
             column.info.name != "time_difference";
    });
    return set;
  };
  return table;
}

// How long a step takes on both sides, and whether that is a change.
std::string TotalText(const RunDiff& pair) {
  const Change& time = pair.total[Compared::kTime];
  std::string text = "GPU time" + std::string(pair.per_step ? " a step" : "") + DiffTimesText(pair) + ": " +
                     Duration(time.before) + " to " + Duration(time.after) + ", " + SignedDuration(time.difference());
  if (time.before > 0) text += " (" + Times(time) + ")";
  if (time.half_width > 0 && std::isfinite(time.half_width)) text += " +- " + Duration(time.half_width);
  if (time.verdict == Verdict::kNoise) {
    text += ", " + NoiseText(time);
  } else if (time.verdict == Verdict::kUnknown) {
    text += ", " + VerdictText(time);
  }
  return text + IdealText(pair);
}

Section PairSection(const RunDiff& pair, By by) {
  Section section{.id = "changes"};
  section.lead = {{.text = pair.before_title, .label = "A  "}, {.text = pair.after_title, .label = "B  "}};
  for (const Caveat& caveat : pair.caveats)
    section.lead.push_back({.text = CaveatText(caveat), .label = "   note: "});
  Table table = ChangeTable(pair, by);
  const size_t same = pair.rows.size() - table.rows.size;
  if (table.rows.size == 0) {
    section.lead.push_back({.text = "No difference: all " + Grouped(same) + " rows are equal.", .label = "   "});
    return section;
  }
  section.lead.push_back({.text = TotalText(pair)});
  section.table = std::move(table);
  std::string legend = "FLOP, bytes, OI: B over A; roof: % of attainable.";
  if (same > 0) legend += " " + Counted(same, "row is", "rows are") + " equal and not listed.";
  section.notes.push_back({.text = std::move(legend)});
  if (std::string text = CorrectionText(pair); !text.empty()) section.notes.push_back({.text = std::move(text)});
  return section;
}

Data PairData(const RunDiff& pair) {
  RowSet total = RowsOf(std::span(&pair.total, 1));
  std::erase_if(total.columns, [](const Column& column) { return IsKey(column.info.name); });
  return Data::Object()
      .Add("before", pair.before_title)
      .Add("after", pair.after_title)
      .Add("per_step", Cell{pair.per_step})
      .Add("correction", CorrectionName(pair.correction))
      .Add("comparisons", Cell{uint64_t{pair.comparisons}})
      .Add("estimated_times", pair.expected ? "expected"
                              : pair.exact  ? "ideal"
                                            : "")
      .Add("paired_steps", Cell{pair.paired})
      .Add("notes", Data::ListOf(pair.caveats, CaveatText))
      .Add("total", Data::RowOf(total, 0))
      .Add("rows", RowsOf(pair.rows));
}

void AddPair(const RunDiff& pair, By by, size_t index, Document* document) {
  const auto add = [&](std::string_view record, std::span<const DiffRow> rows) {
    document->lines.push_back(WithConstants({{"record", std::string(record)},
                                             {"pair", uint64_t{index}},
                                             {"before", pair.before_title},
                                             {"after", pair.after_title},
                                             {"per_step", std::string(pair.per_step ? "yes" : "no")}},
                                            RowsOf(rows)));
  };
  document->sections.push_back(PairSection(pair, by));
  add("row", pair.rows);
  add("total", std::span(&pair.total, 1));
  document->log += pair.before_title + " -> " + pair.after_title + "\n";
  for (const DiffRow& row : pair.rows) {
    const Change& time = row[Compared::kTime];
    if (time.verdict != Verdict::kReal) continue;
    document->log +=
        DiffRowName(row, by) + " " + ShortPhase(row.phase) + " " + SignedDuration(time.difference()) + "\n";
  }
  document->log += CorrectionText(pair) + "\n";
}

// A row of pictures a pair: an arrow from where a layer was to where it is, and before it the first side's own
// picture where the GPUs differ.
Section PictureSection(const Diff& diff) {
  Section section{.id = "pictures"};
  const auto frames = std::make_shared<const Frames>(FramesFor(diff));
  size_t id = 0;
  for (const RunDiff& pair : diff.pairs) {
    std::vector<Figure>& row = section.figures.emplace_back();
    const size_t count = LayOutDiff(pair, *frames).size();
    for (size_t i = 0; i < count; ++i) {
      row.push_back({"diff" + std::to_string(id++), [&pair, frames, i](Medium medium) {
                       std::vector<DiffPicture> laid = medium == Medium::kPhone
                                                           ? LayOutDiff(pair, *frames, kPhoneSize)
                                                           : LayOutDiff(pair, *frames);
                       return Drawn{std::move(laid[i].picture), laid[i].report};
                     }});
    }
  }
  return section;
}

Check CheckOf(const Gate& gate) {
  return {.name = gate.text,
          .outcome = gate.outcome == Gate::Outcome::kFails     ? Check::Outcome::kFails
                     : gate.outcome == Gate::Outcome::kUnknown ? Check::Outcome::kUnknown
                                                               : Check::Outcome::kHolds,
          .text = GateText(gate)};
}

}  // namespace

Document DiffDocument(Diff given) {
  const auto owner = std::make_shared<const Diff>(std::move(given));
  const Diff& diff = *owner;
  Document document{.title = "rfinject diff", .owner = owner};
  for (const Gate& gate : diff.gates) {
    const Check& check = document.checks.emplace_back(CheckOf(gate));
    const bool fails = check.outcome == Check::Outcome::kFails;
    document.headline.push_back(
        {.text = check.text, .label = fails ? "FAILS  " : "", .tone = fails ? Tone::kAlarm : Tone::kPlain});
  }
  for (size_t i = 0; i < diff.pairs.size(); ++i) AddPair(diff.pairs[i], diff.by, i + 1, &document);
  document.data.Add("schema", "rfinject.diff/1").Add("pairs", Data::ListOf(diff.pairs, PairData));
  Section only;
  for (const auto& [name, label, list] : {std::tuple("only_before", "only in A: ", &diff.only_before),
                                          std::tuple("only_after", "only in B: ", &diff.only_after)}) {
    document.data.Add(name, Data::ListOf(*list));
    for (const std::string& title : *list) only.lead.push_back({.text = title, .label = label});
  }
  document.sections.push_back(std::move(only));
  document.sections.push_back(PictureSection(diff));
  if (diff.pairs.empty()) {  // the head
    AddPair({}, diff.by, 0, &document);
    document.sections.pop_back();
    document.lines.pop_back();
    document.log.clear();
  }
  return document;
}

}  // namespace rfinject::cli
