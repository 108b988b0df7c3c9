// A comparison as a page without a script: what changed, the pictures, and the rows that changed.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

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

constexpr Literal kTableHead =
    "<thead><tr><th>Model</th><th>Layer</th><th>Phase</th><th>Operator</th>"
    "<th class=num>Time A</th><th class=num>Time B</th><th class=num>Change</th><th class=num>± 95 %</th>"
    "<th class=num>Real</th><th class=num>FLOP A</th><th class=num>FLOP B</th><th class=num>Bytes A</th>"
    "<th class=num>Bytes B</th><th class=num>OI A</th><th class=num>OI B</th><th class=num>Of attainable A</th>"
    "<th class=num>Of attainable B</th></tr></thead>";

Markup Number(std::string_view text) { return TableCell(text, CellKind::kNumber); }

// The two cells of a quantity; a side that lacks the row has an empty one.
template <typename Format>
Markup Sides(const DiffRow& row, Compared quantity, const Format& format) {
  const Change& change = row[quantity];
  return {Number(row.in_before ? format(change.before) : ""), Number(row.in_after ? format(change.after) : "")};
}

std::string HalfWidth(const Change& change) {
  if (std::isinf(change.half_width)) return "unknown";
  return change.half_width > 0 ? Duration(change.half_width) : "exact";
}

Markup TableRow(const DiffRow& row) {
  constexpr Literal kNoise = "<tr class=noise>", kReal = "<tr>";
  const Change& time = row[Compared::kTime];
  return {time.verdict == Verdict::kNoise ? kNoise : kReal,
          TableCell(row.model),
          TableCell(row.layer),
          TableCell(PhaseName(row.phase)),
          TableCell(row.op),
          Sides(row, Compared::kTime, [](double v) { return Duration(v); }),
          Number(SignedDuration(time.difference())),
          Number(HalfWidth(time)),
          Number(VerdictName(time.verdict)),
          Sides(row, Compared::kFlop, [](double v) { return WithPrefix(v, "FLOP"); }),
          Sides(row, Compared::kBytes, [](double v) { return WithPrefix(v, "B"); }),
          Sides(row, Compared::kOi, [](double v) { return Plain(v); }),
          Sides(row, Compared::kShare, [](double v) { return Percent(v); }),
          "</tr>\n"};
}

Markup Table(const RunDiff& pair) {
  Markup out = {"<div class=scroll><table>", kTableHead, "<tbody>\n"};
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
