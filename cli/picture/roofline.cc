#include "cli/picture/roofline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/picture/axes.h"
#include "cli/picture/gutter.h"
#include "cli/picture/labels.h"
#include "cli/picture/legend.h"
#include "cli/picture/marks.h"
#include "cli/picture/roof_labels.h"
#include "cli/picture/roof_lines.h"
#include "cli/picture/title.h"
#include "cli/report/rows/picture_data.h"
#include "cli/report/rows/roofs.h"

namespace rfinject::cli {
namespace {

constexpr double kAxisRoom = 66;  // at the left: ticks and title of the performance axis
// The strip at the left for rows without FLOP, and the room of the performance axis behind it.
struct Strip {
  double x, width, axis_room;
};
constexpr Strip kWideStrip = {48, 112, 58}, kNarrowStrip = {40, 80, 46};
constexpr size_t kMarksWithLevels = 8;
constexpr double kSparedThickness = 5;  // of lines that others draw, with the heads of arrows
constexpr double kLeastRate = 1e-3;     // FLOP/s; stands for 0, which has no logarithm

std::vector<LegendItem> Legend(const Frames& frames, Size size) {
  const bool narrow = IsNarrow(size);
  std::vector<LegendItem> legend = MarkLegend(frames, size);
  for (const RoofKind kind : frames.roof_kinds) {
    legend.push_back({"", "ro lg" + LineKindCss(kind), -1, 0, "roof: " + std::string(RoofKindName(kind))});
  }
  if (frames.unused_roofs && !narrow) legend.push_back({"", "ro lg faint", -1, 0, "not used by the run"});
  if (frames.levels) legend.push_back({"", "le", -1, 0, "to a mark's OI in L2 (short tick) and L1 bytes"});
  legend.push_back({"", "dr", -1, 0, "to the effective roof, % of attainable; (+n): n more marks there"});
  return legend;
}

void AddAxes(const LogLog& axes, Picture* out) {
  const Box& plot = axes.box;
  AddDecadeGrid(axes, out);
  for (int e = axes.horizontal.low; e <= axes.horizontal.high; ++e) {
    AddTickText(PlainTick(e), {axes.X(std::pow(10.0, e)), plot.bottom() + 17}, out);
  }
  for (int e = axes.vertical.low; e <= axes.vertical.high; ++e) {
    out->texts.push_back(
        MakeText("ax", RateTick(e), {plot.x - 6, axes.Y(std::pow(10.0, e)) + 4}, Anchor::kEnd, kText));
  }
  out->texts.push_back(
      MakeText("ah", IsNarrow(out->size) ? "FLOP per DRAM byte" : "Operational intensity, FLOP per DRAM byte",
               {plot.x + plot.width / 2, plot.bottom() + 33}, Anchor::kMiddle, kAxisTitleText));
  if (IsNarrow(out->size)) {
    out->texts.push_back(MakeText("ah", "FLOP/s", {plot.x + 6, plot.y + 15}, Anchor::kStart, kAxisTitleText));
    return;
  }
  Text y_title =
      MakeText("ah", "Performance, FLOP/s", {plot.x - 44, plot.y + plot.height / 2}, Anchor::kMiddle, kAxisTitleText);
  y_title.rotate = -90;
  out->texts.push_back(y_title);
}

// Places the mark of a row without FLOP.
void PlaceInGutter(const Report& report, const Row& row, const std::vector<int>& lanes, const Box& gutter,
                   Mark* mark) {
  const BandwidthScale scale(gutter);
  mark->in_gutter = true;
  mark->at = {LaneX(gutter, lanes, mark->phase), scale.Unknown()};
  KeepInGutter(gutter, mark);
  const double share = ShareOfBandwidth(report, row);
  if (!(share > 0)) return;
  const double exact = scale.Y(share);
  mark->at.y = std::clamp(exact, scale.Highest(), scale.Lowest());
  mark->clipped = std::fabs(exact - mark->at.y) > 0.5;
}

void PlaceInPlot(const Row& row, const LogLog& axes, Mark* mark) {
  const Derived& d = row.derived;
  const Box& plot = axes.box;
  const bool has_oi = d.oi_flop_per_byte > 0 && std::isfinite(d.oi_flop_per_byte);
  // FLOP without bytes lie beyond the right edge.
  const double oi = has_oi ? d.oi_flop_per_byte : std::pow(10.0, axes.horizontal.high + 1);
  PlaceMark(plot, {axes.X(oi), axes.Y(std::max(d.performance_flop_per_s, kLeastRate))}, mark);
  mark->has_target = d.attainable_flop_per_s > 0 && std::isfinite(d.attainable_flop_per_s);
  if (mark->has_target) {
    mark->target = {mark->at.x, axes.Y(d.attainable_flop_per_s)};
    ClampTo(plot, &mark->target);
  }
  mark->ci_left = mark->ci_right = mark->at.x;
  mark->ci_top = mark->ci_bottom = mark->at.y;
  if (mark->clipped) return;
  if (const Interval interval = IntensityInterval(row); interval.low < interval.high) {
    mark->ci_left = std::max(plot.x, axes.X(interval.low));
    mark->ci_right = std::min(plot.right(), axes.X(interval.high));
  }
  if (const Interval interval = PerformanceInterval(row); interval.low < interval.high) {
    mark->ci_bottom = std::min(plot.bottom(), axes.Y(interval.low));
    mark->ci_top = std::max(plot.y, axes.Y(interval.high));
  }
}

// The same FLOP over the bytes of L2 and of L1, of the longest rows: a tick each, at the end of a line from the mark.
void AddLevels(const Report& report, const LogLog& axes, Picture* out) {
  constexpr double kL2Tick = 4, kL1Tick = 7;  // half their heights
  const std::span<const Row> rows = PictureRows(report);
  for (size_t i = 0; i < std::min(out->marks.size(), kMarksWithLevels); ++i) {
    const Mark& mark = out->marks[i];
    if (mark.in_gutter || mark.clipped || mark.member) continue;
    const Sums& sums = rows[mark.row].sums;
    const auto add = [&](double bytes, double tick) {
      if (!(bytes > 0)) return;
      const double x = axes.X(IntensityOver(sums, bytes));
      if (x < axes.box.x || x > axes.box.right()) return;
      out->lines.push_back({"le", {mark.at, {x, mark.at.y}}});
      out->lines.push_back({"le", {{x, mark.at.y - tick}, {x, mark.at.y + tick}}});
    };
    add(sums.l2_bytes(), kL2Tick);
    add(sums.l1_bytes(), kL1Tick);
  }
}

}  // namespace

Picture LayOutRoofline(const Report& report, const Frames& frames, Size size,
                       std::span<const std::pair<Point, Point>> spared) {
  const std::span<const Row> rows = PictureRows(report);
  const bool narrow = IsNarrow(size);
  const std::vector<LegendItem> legend = Legend(frames, size);
  const Strip& strip = narrow ? kNarrowStrip : kWideStrip;
  const double left = frames.gutter ? strip.x + strip.width + strip.axis_room : kAxisRoom;
  Picture out = BeginPicture(report, "roofline", "Roofline", size, left, LegendLines(legend, size.width));
  const Box plot = out.plot;
  if (frames.gutter) out.gutter = {strip.x, plot.y, strip.width, plot.height};
  const LogLog axes{frames.oi, frames.performance, plot};
  AddAxes(axes, &out);

  Labels labels({plot.x + 2, plot.y + 2, plot.width - 4, plot.height - 4});
  AddTitle(report, "roofline", &out);
  for (const Text& text : out.texts) {
    if (text.css.starts_with("so") || text.css == "ah") labels.Block(text.box);
  }

  const std::vector<int> lanes = GutterPhases(rows);
  for (const size_t index : RowsByTime(report)) {
    Mark mark = MakeMark(report, index);
    mark.radius *= MarkScale(size);
    if (mark.precision < 0) {
      PlaceInGutter(report, rows[index], lanes, out.gutter, &mark);
    } else {
      PlaceInPlot(rows[index], axes, &mark);
    }
    out.marks.push_back(mark);
  }
  SortAndBlock(&labels, &out);
  // Every roof must be named, a mark need not be.
  BlockDropLines(report, out, Labels::May::kCover, &labels);
  for (const auto& [from, to] : spared) labels.BlockLine(from, to, kSparedThickness);
  AddLevels(report, axes, &out);

  std::vector<const RoofLine*> roofs = DrawnRoofs(report.roofs);
  const bool any_used = std::any_of(roofs.begin(), roofs.end(), [](const RoofLine* roof) { return roof->used; });
  const bool unused = !narrow || !any_used;  // a phone has no room for roofs that nothing is held against
  if (!unused) std::erase_if(roofs, [](const RoofLine* roof) { return !roof->used; });
  AddSlopes(AddRoofs(report, roofs, axes, &labels, &out), axes, &labels, &out);
  LabelPeaks(report, axes, true, &labels, &out);
  if (unused) LabelPeaks(report, axes, false, &labels, &out);
  LabelRidges(roofs, axes, true, &labels, &out);
  BlockDropLines(report, out, Labels::May::kNotCover, &labels);
  for (const auto& [from, to] : spared) labels.BlockLine(from, to, kSparedThickness, Labels::May::kNotCover);
  LabelMarks(report, MarkNote::kShareOfAttainable, &labels, &out);
  LabelRidges(roofs, axes, false, &labels, &out);
  if (frames.gutter) AddBandwidthGutter(report, &out);
  AddFrame(plot, &out);
  if (roofs.empty()) {
    out.texts.push_back(MakeText("mu", "no roofs known for this GPU", {plot.x + 10, plot.y + (narrow ? 34 : 18)},
                                 Anchor::kStart, 12));
  }
  AddLegend(legend, plot.bottom() + kLegendTop, &out);
  return out;
}

}  // namespace rfinject::cli
