// A comparison as a page without a script: what changed, the pictures, and the rows that changed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <variant>

#include "cli/emit/diff.h"
#include "cli/emit/html/sections.h"
#include "cli/emit/markup.h"
#include "cli/emit/picture/diff_picture.h"
#include "cli/emit/picture/palette.h"
#include "cli/emit/picture/svg.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr size_t kRowsOfPage = 2000;

constexpr Literal kStyle =
    "body{font:14px sans-serif;margin:16px;background:#fff;color:#1b2128}\n"
    "table{border-collapse:collapse}td,th{padding:2px 10px;text-align:left;white-space:nowrap}\n"
    "td.num,th.num{text-align:right;font-variant-numeric:tabular-nums}tr:nth-child(even){background:#f3f5f7}\n"
    "tr.noise{opacity:.55}.scroll{overflow-x:auto}svg{max-width:100%;height:auto}\n"
    "@media (prefers-color-scheme:dark){body{background:#14181d;color:#e8ecf0}tr:nth-child(even){background:"
    "#1d232a}}\n";

// A side that lacks the row has an empty cell.
Cell SideCell(const DiffRow& row, bool before, Compared quantity, std::string (*format)(double)) {
  const bool there = before ? row.in_before : row.in_after;
  const double value = before ? row[quantity].before : row[quantity].after;
  return Cell{there ? format(value) : std::string()};
}

std::string FlopText(double flop) { return WithPrefix(flop, "FLOP"); }
std::string BytesText(double bytes) { return WithPrefix(bytes, "B"); }

template <Compared kQuantity, bool kBefore, std::string (*kFormat)(double)>
Cell SideOf(const DiffRow& row) {
  return SideCell(row, kBefore, kQuantity, kFormat);
}

std::string HalfWidth(const Change& change) {
  if (std::isinf(change.half_width)) return "unknown";
  return change.half_width > 0 ? Duration(change.half_width) : "exact";
}

// The columns of the page's table, from left to right; kText is aligned to the left.
constexpr auto kPageColumns = std::to_array<ColumnOf<DiffRow>>({
    {{.name = "model", .title = "Model", .kind = Kind::kText}, [](const DiffRow& row) { return Cell{row.model}; }},
    {{.name = "layer", .title = "Layer", .kind = Kind::kText}, [](const DiffRow& row) { return Cell{row.layer}; }},
    {{.name = "phase", .title = "Phase", .kind = Kind::kText},
     [](const DiffRow& row) { return Cell{std::string(PhaseName(row.phase))}; }},
    {{.name = "op", .title = "Operator", .kind = Kind::kText}, [](const DiffRow& row) { return Cell{row.op}; }},
    {{.name = "time_before", .title = "Time A"}, SideOf<Compared::kTime, true, Duration>},
    {{.name = "time_after", .title = "Time B"}, SideOf<Compared::kTime, false, Duration>},
    {{.name = "time_difference", .title = "Change"},
     [](const DiffRow& row) { return Cell{SignedDuration(row[Compared::kTime].difference())}; }},
    {{.name = "time_margin", .title = "± 95 %"},
     [](const DiffRow& row) { return Cell{HalfWidth(row[Compared::kTime])}; }},
    {{.name = "time_real", .title = "Real"},
     [](const DiffRow& row) { return Cell{std::string(VerdictName(row[Compared::kTime].verdict))}; }},
    {{.name = "flop_before", .title = "FLOP A"}, SideOf<Compared::kFlop, true, FlopText>},
    {{.name = "flop_after", .title = "FLOP B"}, SideOf<Compared::kFlop, false, FlopText>},
    {{.name = "bytes_before", .title = "Bytes A"}, SideOf<Compared::kBytes, true, BytesText>},
    {{.name = "bytes_after", .title = "Bytes B"}, SideOf<Compared::kBytes, false, BytesText>},
    {{.name = "oi_before", .title = "OI A"}, SideOf<Compared::kOi, true, Plain>},
    {{.name = "oi_after", .title = "OI B"}, SideOf<Compared::kOi, false, Plain>},
    {{.name = "share_before", .title = "Of attainable A"}, SideOf<Compared::kShare, true, Percent>},
    {{.name = "share_after", .title = "Of attainable B"}, SideOf<Compared::kShare, false, Percent>},
});

Markup TableHead() {
  constexpr Literal kText = "<th>", kNumber = "<th class=num>";
  Markup head = {"<thead><tr>"};
  for (const ColumnOf<DiffRow>& column : kPageColumns) {
    head.Add({column.info.kind == Kind::kText ? kText : kNumber, Escaped(column.info.title), "</th>"});
  }
  return head.Add({"</tr></thead>"});
}

Markup TableRow(const DiffRow& row) {
  constexpr Literal kNoise = "<tr class=noise>", kReal = "<tr>";
  Markup line = {row[Compared::kTime].verdict == Verdict::kNoise ? kNoise : kReal};
  for (const ColumnOf<DiffRow>& column : kPageColumns) {
    const bool text = column.info.kind == Kind::kText;
    line.Add({TableCell(std::get<std::string>(column.value(row)), text ? CellKind::kText : CellKind::kNumber)});
  }
  return line.Add({"</tr>\n"});
}

Markup Table(const RunDiff& pair) {
  Markup out = {"<div class=scroll><table>", TableHead(), "<tbody>\n"};
  size_t written = 0;
  for (const DiffRow& row : pair.rows) {
    if (!row.Changed()) continue;
    if (++written > kRowsOfPage) break;
    out.Add({TableRow(row)});
  }
  const size_t rest = pair.rows.size() - std::min(pair.rows.size(), written);
  return out.Add({"</tbody></table></div>\n<p>", Escaped(Grouped(rest)),
                  " rows are equal or not listed; the CSV has all.</p>\n"});
}

Markup Heading(const RunDiff& pair) {
  Markup out = {"<h1>A: ", Escaped(pair.before_title), "<br>B: ", Escaped(pair.after_title), "</h1>\n<ul>"};
  for (const Caveat& caveat : pair.caveats) out.Add({"<li>", Escaped(CaveatText(caveat)), "</li>"});
  const Change& total = pair.total[Compared::kTime];
  out.Add({"</ul>\n<p>GPU time"});
  if (pair.per_step) out.Add({" a step"});
  return out.Add({": ", Escaped(Duration(total.before)), " to ", Escaped(Duration(total.after)), ", ",
                  Escaped(SignedDuration(total.difference())), " (", Escaped(VerdictName(total.verdict)),
                  "). Hollow marks: where a row was in A; arrows: to where it is in B.</p>\n"});
}

}  // namespace

void EmitDiffHtml(const Diff& diff, std::ostream& out) {
  const Frames frames = FramesFor(diff);
  Markup page = {
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width\">\n<meta http-equiv=Content-Security-Policy "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>rfinject diff</title>\n<style>\n",
      InStyle(PictureStyle(Theme::kPreferred)), kStyle, "</style>\n</head>\n<body>\n"};
  size_t id = 0;
  for (const RunDiff& pair : diff.pairs) {
    page.Add({Heading(pair), "<div>"});
    for (const DiffPicture& laid : LayOutDiff(pair, frames)) {
      SvgOptions options;
      options.id = "diff" + std::to_string(id++);
      page.Add({PictureSvg(laid.picture, *laid.report, options)});
    }
    page.Add({"</div>\n", Table(pair)});
  }
  for (const std::string& title : diff.only_before) page.Add({"<p>Only in A: ", Escaped(title), "</p>\n"});
  for (const std::string& title : diff.only_after) page.Add({"<p>Only in B: ", Escaped(title), "</p>\n"});
  page.Add({"</body>\n</html>\n"});
  out << page.text();
}

}  // namespace rfinject::cli
