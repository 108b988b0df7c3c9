#include "cli/picture/time_view.h"

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
#include "cli/picture/title.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr double kTimeViewAxisRoom = 66;  // at the left: ticks and title of the axis of memory time
constexpr double kGutterWidth = 54, kBesideGutter = 8;
constexpr double kTick = 3, kRegionText = 15;

std::vector<LegendItem> TimeViewLegend(const Frames& frames, Size size) {
  std::vector<LegendItem> legend = MarkLegend(frames, size);
  legend.push_back({"", "iso", -1, 0, "same least time"});
  legend.push_back({"", "dr", -1, 0, "from the least time to the time taken"});
  if (frames.shortest_launch) legend.push_back({"", "fl", -1, 0, "the shortest launch seen"});
  return legend;
}

// A kernel takes at least the longer of its compute and its memory time, so a line of equal least time is a corner
// on the diagonal.
Line Corner(const char* css, const LogLog& axes, double ns) {
  const Point corner{axes.X(ns), axes.Y(ns)};
  return {css, {{axes.box.x, corner.y}, corner, {corner.x, axes.box.bottom()}}};
}

void AddAxes(const Report& report, const LogLog& axes, Picture* out) {
  const Box& plot = axes.box;
  const Decades& time = axes.horizontal;  // both axes are the same
  const double ticks_right = (out->gutter.width > 0 ? out->gutter.x : plot.x) - 6;
  for (int e = time.low; e <= time.high; ++e) {
    const double ns = std::pow(10.0, e);
    if (e > time.low && e < time.high) out->lines.push_back(Corner("iso", axes, ns));
    for (int m = 2; m < 10 && e < time.high; ++m) {
      const double x = axes.X(m * ns), y = axes.Y(m * ns);
      out->lines.push_back({"tk", {{x, plot.bottom() - kTick}, {x, plot.bottom()}}});
      out->lines.push_back({"tk", {{plot.x, y}, {plot.x + kTick, y}}});
    }
    const std::string text = TimeTick(e);
    AddTickText(text, {axes.X(ns), plot.bottom() + 17}, out);
    out->texts.push_back(MakeText("ax", text, {ticks_right, axes.Y(ns) + 4}, Anchor::kEnd, kText));
  }
  out->lines.push_back({"di", {{plot.x, plot.bottom()}, {plot.right(), plot.y}}});
  const std::string step = report.steps.count > 0 ? " a step" : "";
  const bool narrow = IsNarrow(out->size);
  out->texts.push_back(MakeText("ah", "Compute time" + step + (narrow ? "" : ": FLOP / peak of the slowest pipe"),
                                {plot.x + plot.width / 2, plot.bottom() + 33}, Anchor::kMiddle, kAxisTitleText));
  Text y_title = MakeText("ah", "Memory time" + step + ": DRAM bytes / bandwidth", {16, plot.y + plot.height / 2},
                          Anchor::kMiddle, kAxisTitleText);
  y_title.rotate = -90;
  out->texts.push_back(y_title);
}

void AddRegions(Labels* labels, Picture* out) {
  const Box& plot = out->plot;
  for (Text text :
       {MakeText("re", "memory-bound", {plot.x + 14, plot.y + 24}, Anchor::kStart, kRegionText),
        MakeText("re", "compute-bound", {plot.right() - 14, plot.bottom() - 56}, Anchor::kEnd, kRegionText)}) {
    labels->Block(text.box);
    out->texts.push_back(std::move(text));
  }
}

void AddShortestLaunch(const Report& report, const LogLog& axes, Labels* labels, Picture* out) {
  if (!(report.queue.shortest_ns > 0)) return;
  const double x = axes.X(report.queue.shortest_ns), y = axes.Y(report.queue.shortest_ns);
  if (x <= axes.box.x || x >= axes.box.right()) return;
  out->lines.push_back(Corner("fl", axes, report.queue.shortest_ns));
  const Text text = MakeText("la", "shortest launch " + Duration(report.queue.shortest_ns), {axes.box.x + 6, y - 4},
                             Anchor::kStart, kSmallText);
  labels->Block(text.box);
  out->texts.push_back(text);
}

// Places the mark at the row's least times. The mark's target is the time that the row took, on the ray through both.
void PlaceByTimes(const Report& report, const Row& row, const std::vector<int>& lanes, const LogLog& axes,
                  const Box& gutter, Mark* mark) {
  const Box& plot = axes.box;
  const double compute_ns = PerStep(report, row.sums.least_compute_ns());
  const double memory_ns = PerStep(report, row.sums.least_memory_ns());
  const double taken_ns = PerStep(report, row.sums.time_ns());
  const double least_ns = std::max(compute_ns, memory_ns);
  mark->in_gutter = !(compute_ns > 0) && gutter.width > 0;
  const Point at{mark->in_gutter  ? LaneX(gutter, lanes, mark->phase)
                 : compute_ns > 0 ? axes.X(compute_ns)
                                  : plot.x - 1,
                 memory_ns > 0 ? axes.Y(memory_ns) : plot.bottom() + 1};
  PlaceMark(mark->in_gutter ? gutter : plot, at, mark);
  if (mark->in_gutter) {
    KeepInGutter(gutter, mark);
    mark->has_target = taken_ns > least_ns;
    mark->target = {mark->at.x, axes.Y(taken_ns)};
    ClampTo(gutter, &mark->target);
  } else {
    mark->has_target = !mark->clipped && taken_ns > least_ns;
    mark->target = {axes.X(compute_ns * taken_ns / least_ns), axes.Y(memory_ns * taken_ns / least_ns)};
    if (mark->has_target) ClampTo(plot, &mark->target);
  }
  mark->ci_left = mark->ci_right = mark->at.x;
  mark->ci_top = mark->ci_bottom = mark->at.y;
}

}  // namespace

Picture LayOutTimeView(const Report& report, const Frames& frames, Size size) {
  const std::span<const Row> rows = PictureRows(report);
  const std::vector<LegendItem> legend = TimeViewLegend(frames, size);
  const double left = kTimeViewAxisRoom + (frames.gutter ? kGutterWidth + kBesideGutter : 0);
  Picture out = BeginPicture(report, "time", "Time view", size, left, LegendLines(legend, size.width));
  const Box plot = out.plot;
  if (frames.gutter) out.gutter = {kTimeViewAxisRoom, plot.y, kGutterWidth, plot.height};
  const LogLog axes{frames.time, frames.time, plot};

  Labels labels({plot.x + 2, plot.y + 2, plot.width - 4, plot.height - 4});
  AddTitle(report, "time view", &out);
  for (const Text& text : out.texts) {
    if (text.css.starts_with("so")) labels.Block(text.box);
  }
  AddAxes(report, axes, &out);
  AddRegions(&labels, &out);
  AddShortestLaunch(report, axes, &labels, &out);

  const std::vector<int> lanes = GutterPhases(rows);
  for (const size_t index : RowsByTime(report)) {
    if (!HasLeastTimes(rows[index])) continue;
    Mark mark = MakeMark(report, index);
    mark.radius *= MarkScale(size);
    PlaceByTimes(report, rows[index], lanes, axes, out.gutter, &mark);
    out.marks.push_back(mark);
  }
  if (frames.gutter) {
    AddFrame(out.gutter, &out);
    out.texts.push_back(
        MakeText("ax", "no FLOP", {out.gutter.x + out.gutter.width / 2, plot.y + 13}, Anchor::kMiddle, kSmallText));
  }
  AddFrame(plot, &out);
  if (const RowShare rest = WithoutLeastTimes(report); rest.rows > 0) {
    const Text note = MakeText("mu",
                               (IsNarrow(size) ? "not drawn: " : "not drawn, neither FLOP nor bytes: ") +
                                   Counted(rest.rows, "row, ", "rows, ") + Percent(rest.time_share) +
                                   (IsNarrow(size) ? "" : " of GPU time"),
                               {plot.x + 14, plot.y + 42}, Anchor::kStart, kSmallText);
    labels.Block(note.box);
    out.texts.push_back(note);
  }
  SortAndBlock(&labels, &out);
  BlockDropLines(report, out, Labels::May::kNotCover, &labels);
  LabelMarks(report, MarkNote::kTime, &labels, &out);
  AddLegend(legend, plot.bottom() + kLegendTop, &out);
  return out;
}

}  // namespace rfinject::cli
