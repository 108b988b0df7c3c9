// Arrows from where each layer was to where it is, on axes that both sides share.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/emit/diff.h"
#include "cli/emit/markup.h"
#include "cli/emit/plot.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr Size kAlone = {900, 660};
constexpr Size kBeside = {700, 580};
constexpr double kGap = 16;
constexpr size_t kMostArrows = 20;    // of the largest changes of time; the rest would be a thicket
constexpr double kShortestArrow = 6;  // pixels; what moved less stays a point
constexpr double kHollowRadius = 3.5;
constexpr size_t kRowsOfPage = 2000;

const Mark* MarkOf(const Picture& picture, size_t row) {
  for (const Mark& mark : picture.marks) {
    if (mark.row == row && !mark.in_gutter) return &mark;
  }
  return nullptr;
}

// The row of `report`'s pictures that `wanted` is; its size where there is none.
size_t Find(std::span<const Row> rows, const DiffRow& wanted, bool one_model) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool model =
        rows[i].model == wanted.model || (one_model && !rows[i].model.empty() && !wanted.model.empty());
    if (model && rows[i].layer == wanted.layer && rows[i].phase == wanted.phase) return i;
  }
  return rows.size();
}

void AddArrow(Point from, Point to, Picture* picture) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length < kShortestArrow) return;
  const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
  constexpr double kHead = 7, kHalf = 3.2;
  const Point base{to.x - along.x * kHead, to.y - along.y * kHead};
  picture->lines.push_back({"dc", {from, to}});
  picture->lines.push_back({"dc",
                            {{base.x - along.y * kHalf, base.y + along.x * kHalf},
                             to,
                             {base.x + along.y * kHalf, base.y - along.x * kHalf}}});
}

// `after`'s roofline with hollow marks where the rows were before, and arrows. Both pictures have the same frames and
// size, so a position means the same in both.
Picture WithArrows(const RunDiff& pair, const Frames& frames, Size size) {
  const Picture before = LayOutRoofline(pair.before, frames, size);
  Picture after = LayOutRoofline(pair.after, frames, size);
  const std::span<const Row> before_rows = PictureRows(pair.before), after_rows = PictureRows(pair.after);
  const bool one_model = pair.before.run.models.size() == 1 && pair.after.run.models.size() == 1;
  size_t arrows = 0;
  for (const DiffRow& row : pair.rows) {
    if (arrows >= kMostArrows) break;
    if (!row.in_before || !row.in_after || !row.Changed()) continue;
    const Mark* from = MarkOf(before, Find(before_rows, row, one_model));
    const Mark* to = MarkOf(after, Find(after_rows, row, one_model));
    if (from == nullptr || to == nullptr) continue;
    if (std::hypot(from->at.x - to->at.x, from->at.y - to->at.y) < kShortestArrow) continue;
    after.symbols.push_back({"sy sy0", from->phase, from->at, kHollowRadius});
    AddArrow(from->at, to->at, &after);
    ++arrows;
  }
  for (Text& text : after.texts) {
    if (text.css != "mu") continue;  // the first is the subtitle
    const std::string origin =
        "arrows from " + pair.before_title + " (hollow): the " + std::to_string(arrows) + " largest changes of time";
    text.text = ElideMiddle(origin, static_cast<size_t>((size.width - 24) / (0.55 * text.size)));
    break;
  }
  after.title = "Change: " + pair.before_title + " to " + pair.after_title;
  return after;
}

bool SameGpu(const RunDiff& pair) { return pair.before.machine.name == pair.after.machine.name; }

struct Laid {
  Picture picture;
  const Report* report;
};
// The pictures of a pair, left to right.
std::vector<Laid> LayOut(const RunDiff& pair, const Frames& frames) {
  std::vector<Laid> laid;
  // Without a row that can be compared (By other than layers folds the same), the pictures still show both sides.
  if (!SameGpu(pair)) laid.push_back({LayOutRoofline(pair.before, frames, kBeside), &pair.before});
  laid.push_back({WithArrows(pair, frames, SameGpu(pair) ? kAlone : kBeside), &pair.after});
  return laid;
}

// One frame for everything that is compared.
Frames FramesOf(const Diff& diff) {
  std::vector<Report> all;
  for (const RunDiff& pair : diff.pairs) {
    all.push_back(pair.before);
    all.push_back(pair.after);
  }
  return FramesFor(all);
}

std::string TableCell(std::string_view text, bool number) {
  return std::string(number ? "<td class=num>" : "<td>") + MarkupText(text) + "</td>";
}

}  // namespace

void EmitDiffSvg(const Diff& diff, std::ostream& out) {
  const Frames frames = FramesOf(diff);
  std::string svg;
  double width = 0, y = 0;
  size_t id = 0;
  for (const RunDiff& pair : diff.pairs) {
    double x = 0, height = 0;
    for (const Laid& laid : LayOut(pair, frames)) {
      WriteOptions options;
      options.id = "diff" + std::to_string(id++);
      options.offset_x = x;
      options.offset_y = y;
      WritePicture(laid.picture, *laid.report, options, &svg);
      x += laid.picture.size.width + kGap;
      height = std::max(height, laid.picture.size.height);
    }
    width = std::max(width, x - kGap);
    y += height + kGap;
  }
  const std::string box = Coordinate(std::max(width, 1.0)) + "\" height=\"" + Coordinate(std::max(y - kGap, 1.0));
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << box
      << "\" viewBox=\"0 0 " << Coordinate(std::max(width, 1.0)) << " " << Coordinate(std::max(y - kGap, 1.0))
      << "\" class=\"pic\">\n<title>rfinject diff</title>\n<style>\n"
      << PictureStyle(false) << "</style>\n<rect class=\"bg\" width=\"" << box << "\"/>\n"
      << svg << "</svg>\n";
}

void EmitDiffHtml(const Diff& diff, std::ostream& out) {
  const Frames frames = FramesOf(diff);
  out << "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
         "<meta name=viewport content=\"width=device-width\">\n<meta http-equiv=Content-Security-Policy "
         "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>rfinject diff</title>\n<style>\n"
      << PictureStyle(false)
      << "body{font:14px sans-serif;margin:16px;background:#fff;color:#1b2128}\n"
         "table{border-collapse:collapse}td,th{padding:2px 10px;text-align:left;white-space:nowrap}\n"
         "td.num,th.num{text-align:right;font-variant-numeric:tabular-nums}tr:nth-child(even){background:#f3f5f7}\n"
         "tr.noise{opacity:.55}.scroll{overflow-x:auto}svg{max-width:100%;height:auto}\n"
         "@media (prefers-color-scheme:dark){body{background:#14181d;color:#e8ecf0}tr:nth-child(even){background:"
         "#1d232a}}\n</style>\n</head>\n<body>\n";
  size_t id = 0;
  for (const RunDiff& pair : diff.pairs) {
    out << "<h1>A: " << MarkupText(pair.before_title) << "<br>B: " << MarkupText(pair.after_title) << "</h1>\n<ul>";
    for (const std::string& caveat : pair.caveats) out << "<li>" << MarkupText(caveat) << "</li>";
    const Change& total = pair.total[Compared::kTime];
    out << "</ul>\n<p>GPU time" << (pair.per_step ? " a step" : "") << ": " << MarkupText(Duration(total.before))
        << " to " << MarkupText(Duration(total.after)) << ", " << MarkupText(SignedDuration(total.difference()))
        << " (" << VerdictName(total.verdict)
        << "). Hollow marks: where a row was in A; arrows: to where it is in B.</p>\n<div>";
    for (const Laid& laid : LayOut(pair, frames)) {
      WriteOptions options;
      options.id = "diff" + std::to_string(id++);
      std::string svg;
      WritePicture(laid.picture, *laid.report, options, &svg);
      out << svg;
    }
    out << "</div>\n<div class=scroll><table><thead><tr>";
    for (const char* title : {"Model", "Layer", "Phase", "Operator"}) out << "<th>" << title << "</th>";
    for (const char* title : {"Time A", "Time B", "Change", "± 95 %", "Real", "FLOP A", "FLOP B", "Bytes A",
                              "Bytes B", "OI A", "OI B", "Of attainable A", "Of attainable B"}) {
      out << "<th class=num>" << title << "</th>";
    }
    out << "</tr></thead><tbody>\n";
    size_t written = 0;
    for (const DiffRow& row : pair.rows) {
      if (!row.Changed()) continue;
      if (++written > kRowsOfPage) break;
      const Change& time = row[Compared::kTime];
      out << (time.verdict == Verdict::kNoise ? "<tr class=noise>" : "<tr>") << TableCell(row.model, false)
          << TableCell(row.layer, false) << TableCell(row.phase, false) << TableCell(row.op, false)
          << TableCell(row.in_before ? Duration(time.before) : "", true)
          << TableCell(row.in_after ? Duration(time.after) : "", true) << TableCell(SignedDuration(time.difference()), true)
          << TableCell(std::isinf(time.half_width) ? "unknown"
                  : time.half_width > 0       ? Duration(time.half_width)
                                              : "exact",
                  true)
          << TableCell(VerdictName(time.verdict), true);
      const auto sides = [&](Compared quantity, auto text) {
        const Change& change = row[quantity];
        out << TableCell(row.in_before ? text(change.before) : "", true)
            << TableCell(row.in_after ? text(change.after) : "", true);
      };
      sides(Compared::kFlop, [](double v) { return WithPrefix(v, "FLOP"); });
      sides(Compared::kBytes, [](double v) { return WithPrefix(v, "B"); });
      sides(Compared::kOi, [](double v) { return Plain(v); });
      sides(Compared::kShare, [](double v) { return Percent(v); });
      out << "</tr>\n";
    }
    out << "</tbody></table></div>\n<p>" << Grouped(pair.rows.size() - std::min(pair.rows.size(), written))
        << " rows are equal or not listed; the CSV has all.</p>\n";
  }
  for (const std::string& title : diff.only_before) out << "<p>Only in A: " << MarkupText(title) << "</p>\n";
  for (const std::string& title : diff.only_after) out << "<p>Only in B: " << MarkupText(title) << "</p>\n";
  out << "</body>\n</html>\n";
}

}  // namespace rfinject::cli
