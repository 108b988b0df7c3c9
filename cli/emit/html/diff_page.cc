// A comparison as a page: how much changed and what, the pictures, and the rows that changed. It looks like the page
// of a report; its script turns the theme over and nothing else.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/emit/diff.h"
#include "cli/emit/html/assets/assets.h"
#include "cli/emit/html/sections.h"
#include "cli/emit/markup.h"
#include "cli/emit/picture/diff_picture.h"
#include "cli/emit/picture/palette.h"
#include "cli/emit/picture/svg.h"
#include "cli/emit/words.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr size_t kRowsOfPage = 2000;

std::string TimeOf(const DiffRow& row, bool before) {
  const Change& time = row[Compared::kTime];
  if (!(before ? row.in_before : row.in_after)) return "none";
  return Duration(before ? time.before : time.after);
}

std::string ShareOf(const DiffRow& row, bool before) {
  const Change& share = row[Compared::kShare];
  const double value = before ? share.before : share.after;
  return (before ? row.in_before : row.in_after) && value > 0 ? Percent(value) : std::string();
}

bool OnBothSides(const DiffRow& row) { return row.in_before && row.in_after; }

// What the ratio of a quantity is where it differs; the same amount on both sides is no change and says nothing.
template <Compared kQuantity>
Cell RatioOf(const DiffRow& row) {
  const bool differs = OnBothSides(row) && row[kQuantity].verdict != Verdict::kSame;
  return Cell{differs ? Times(row[kQuantity]) : std::string()};
}

// The columns of the page's table, from left to right; kText is aligned to the left. One in which no row says
// anything is left out.
constexpr auto kPageColumns = std::to_array<ColumnOf<DiffRow>>({
    {{.name = "phase", .title = "Phase", .kind = Kind::kText},
     [](const DiffRow& row) { return Cell{std::string(PhaseName(row.phase))}; }},
    {{.name = "time_difference", .title = "Change"},
     [](const DiffRow& row) { return Cell{SignedDuration(row[Compared::kTime].difference())}; }},
    {{.name = "time_before", .title = "Time in A"}, [](const DiffRow& row) { return Cell{TimeOf(row, true)}; }},
    {{.name = "time_after", .title = "Time in B"}, [](const DiffRow& row) { return Cell{TimeOf(row, false)}; }},
    {{.name = "time_real", .title = "More than chance?", .kind = Kind::kText},
     [](const DiffRow& row) {
       const Change& time = row[Compared::kTime];
       const bool judged = OnBothSides(row) && time.half_width > 0;
       return Cell{judged ? VerdictText(time) : std::string()};
     }},
    {{.name = "flop_ratio", .title = "FLOP"}, RatioOf<Compared::kFlop>},
    {{.name = "bytes_ratio", .title = "Bytes"}, RatioOf<Compared::kBytes>},
    {{.name = "oi_ratio", .title = "FLOP/B"}, RatioOf<Compared::kOi>},
    {{.name = "share_before", .title = "Of roof in A"}, [](const DiffRow& row) { return Cell{ShareOf(row, true)}; }},
    {{.name = "share_after", .title = "Of roof in B"}, [](const DiffRow& row) { return Cell{ShareOf(row, false)}; }},
});
using PageColumn = ColumnOf<DiffRow>;

std::vector<const PageColumn*> ColumnsOf(std::span<const DiffRow* const> rows) {
  std::vector<const PageColumn*> columns;
  for (const PageColumn& column : kPageColumns) {
    const auto says = [&](const DiffRow* row) { return !std::get<std::string>(column.value(*row)).empty(); };
    if (std::any_of(rows.begin(), rows.end(), says)) columns.push_back(&column);
  }
  return columns;
}

Literal NameTitle(By by) {
  if (by == By::kOp) return "Operator";
  return by == By::kModel ? Literal("Model") : Literal("Layer");
}

Markup TableHead(By by, std::span<const PageColumn* const> columns) {
  Markup head = {"<thead><tr><th scope=col>", NameTitle(by), "</th>"};
  for (const PageColumn* column : columns) {
    const bool text = column->info.kind == Kind::kText;
    head.Add({text ? Literal("<th scope=col>") : Literal("<th scope=col class=num>"), Escaped(column->info.title),
              "</th>"});
  }
  return head.Add({"</tr></thead>"});
}

Markup TableRow(const DiffRow& row, const std::string& name, std::span<const PageColumn* const> columns) {
  const bool noise = row[Compared::kTime].verdict == Verdict::kNoise;
  Markup line = {noise ? Literal("<tr class=noise>") : Literal("<tr>"), "<th scope=row>", Escaped(name), "</th>"};
  for (const PageColumn* column : columns) {
    const bool text = column->info.kind == Kind::kText;
    line.Add({TableCell(std::get<std::string>(column->value(row)), text ? CellKind::kText : CellKind::kNumber)});
  }
  return line.Add({"</tr>\n"});
}

Markup Table(const RunDiff& pair, By by) {
  std::vector<const DiffRow*> rows;
  std::set<std::string> models;
  for (const DiffRow& row : pair.rows) {
    if (!row.model.empty()) models.insert(row.model);
    if (row[Compared::kTime].verdict != Verdict::kSame && rows.size() < kRowsOfPage) rows.push_back(&row);
  }
  const size_t rest = pair.rows.size() - rows.size();
  Markup out;
  if (!rows.empty()) {
    const std::vector<const PageColumn*> columns = ColumnsOf(rows);
    out.Add({"<section class=card><h2>Where the time changed</h2><div class=scroll><table class=\"small diff\">",
             TableHead(by, columns), "<tbody>\n"});
    for (const DiffRow* row : rows) {
      const bool with_model = by == By::kLayer && models.size() > 1 && !row->model.empty() && !row->layer.empty();
      out.Add({TableRow(*row, (with_model ? row->model + "/" : "") + DiffRowName(*row, by), columns)});
    }
    out.Add({"</tbody></table></div></section>\n"});
  }
  if (rest == 0) return out;
  return out.Add({"<p class=muted>", Escaped(Grouped(rest)),
                  rows.size() < kRowsOfPage ? Literal(" rows took as long in B as in A.")
                                            : Literal(" more rows are not listed; --format csv has all."),
                  "</p>\n"});
}

// What changed as a whole, in words.
std::string TotalText(const RunDiff& pair) {
  const Change& total = pair.total[Compared::kTime];
  std::string text = "GPU time";
  if (pair.per_step) text += " a step";
  text += DiffTimesText(pair);
  if (total.verdict == Verdict::kSame)
    return text + (DiffTimesText(pair).empty() ? "" : ",") + " is the same in both: " + Duration(total.after) + ".";
  text += ": " + Duration(total.before) + " in A, " + Duration(total.after) + " in B, " +
          SignedDuration(total.difference());
  if (total.before > 0) {
    text +=
        " (" + Percent(std::fabs(total.difference()) / total.before) + (total.difference() < 0 ? " less)" : " more)");
  }
  if (!pair.exact) text += ". Whether that is more than chance: " + VerdictText(total);
  return text + ".";
}

Markup Heading(const RunDiff& pair) {
  Markup out = {"<div class=head><h2>A: ",
                Escaped(pair.before_title),
                "<br>B: ",
                Escaped(pair.after_title),
                "</h2><ul class=\"headline opening\"><li>",
                Escaped(TotalText(pair)),
                "</li>"};
  for (const Caveat& caveat : pair.caveats) out.Add({"<li>Note: ", Escaped(CaveatText(caveat)), "</li>"});
  if (const std::string correction = CorrectionText(pair); !correction.empty()) {
    out.Add({"</ul><ul class=\"headline facts\"><li>", Escaped(correction), "</li>"});
  }
  return out.Add({"</ul></div>\n"});
}

Markup GateSection(const Diff& diff) {
  if (diff.gates.empty()) return {};
  Markup out = {"<section class=card><h2>Conditions</h2><ul>"};
  for (const Gate& gate : diff.gates) out.Add({"<li>", Escaped(GateText(gate)), "</li>"});
  return out.Add({"</ul></section>\n"});
}

Markup PairSvg(const DiffPicture& laid, size_t id) {
  SvgOptions options;
  options.id = "diff" + std::to_string(id);
  return PictureSvg(laid.picture, *laid.report, options);
}

}  // namespace

void EmitDiffHtml(const Diff& diff, std::ostream& out) {
  const Frames frames = FramesFor(diff);
  Markup page = {PageHead("rfinject diff"), "<body>\n<header><h1>What changed</h1>", kThemeButton, "</header>\n",
                 GateSection(diff)};
  size_t id = 0;
  for (const RunDiff& pair : diff.pairs) {
    page.Add({Heading(pair), "<div class=pictures>"});
    const std::vector<DiffPicture> wide = LayOutDiff(pair, frames), narrow = LayOutDiff(pair, frames, kPhone);
    for (size_t i = 0; i < wide.size(); ++i) {
      page.Add({"<figure><div class=wide>", PairSvg(wide[i], id++), "</div><div class=narrow>",
                PairSvg(narrow[i], id++), "</div></figure>"});
    }
    page.Add({"</div>\n", Table(pair, diff.by)});
  }
  for (const std::string& title : diff.only_before) page.Add({"<p>Only in A: ", Escaped(title), "</p>\n"});
  for (const std::string& title : diff.only_after) page.Add({"<p>Only in B: ", Escaped(title), "</p>\n"});
  page.Add({GlossarySection(), "<script>\n", kPageJs, "</script>\n</body>\n</html>\n"});
  out << page.text();
}

}  // namespace rfinject::cli
