// File: plot.h
//
// The two pictures of a report, as geometry and as SVG: the roofline (operational intensity against performance) and
// the time view (compute time against memory time). Laying out is pure: Report in, marks, lines and texts out;
// writing is a plain walk over them. The stand-alone SVG and the HTML page use the same pictures.
//
//   const Frames frames = FramesFor(reports);            // one for all reports: small multiples on identical axes
//   Picture picture = LayOutRoofline(reports[0], frames, {820, 620});
//   std::string svg; WritePicture(picture, reports[0], {}, &svg);
//
// Sources: Williams, Waterman, Patterson, CACM 52(4), 2009 (roofline); Wang et al., 2020, arXiv 2009.04598 (time
// view); Okabe and Ito, 2008, "Color Universal Design" (the palette, darkened for white and lightened for dark
// grounds).
#ifndef RFINJECT_CLI_EMIT_PLOT_H_
#define RFINJECT_CLI_EMIT_PLOT_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/report.h"

namespace rfinject::cli {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};
bool Overlap(const Box& a, const Box& b);

// A logarithmic axis from 10^low to 10^high.
struct Decades {
  int low = 0, high = 1;
};

// Where `value` (> 0) lies between two pixel positions, one for each end of the axis. Not clamped.
double LogPosition(const Decades& axis, double value, double at_low, double at_high);

// What all pictures of one document share.
struct Frames {
  Decades oi;           // FLOP per byte
  Decades performance;  // FLOP/s
  Decades time;         // ns a step, both axes of the time view
  bool gutter = false;  // some report has rows without FLOP
  // What the legends explain. The same in every picture, because a legend of other height would shift the axes.
  std::set<int> phases, precisions;     // -1: none
  std::vector<std::string> roof_kinds;  // of RoofLine::kind
  bool unused_roofs = false;
  bool levels = false;  // bytes of L2 or L1 are known
  bool shortest_launch = false;
  bool time_shares = false;  // a mark's area is its share of GPU time
};

// From the ceilings alone, whole decades, so that two runs on one GPU have the same axes and a gain is seen as a
// move: OI from 10^-2 (an element-wise kernel is near 10^-1) to ten times the highest ridge, performance from a tenth
// of the lowest roof at the left edge to above the highest peak. Reports without roofs fall back on their points. The
// time axes span five decades below the longest row or least time of all reports.
Frames FramesFor(std::span<const Report> reports);

struct Point {
  double x = 0, y = 0;
};

struct Line {
  std::string css;  // class names
  std::vector<Point> points;
};

enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

struct Text {
  std::string css;
  std::string text;  // not escaped
  Point at;          // baseline
  Anchor anchor = Anchor::kStart;
  double size = 11;
  double rotate = 0;  // degrees, clockwise, around `at`
  Box box;            // its estimated extent when not rotated
};

// One row.
struct Mark {
  size_t row = 0;  // in PictureRows(report)
  Point at;
  double radius = 0;   // of the circle of the same area
  int phase = -1;      // Phase, or -1: the row is of no single phase
  int precision = -1;  // the Precision that most FLOP ran in, or -1
  bool in_gutter = false;
  bool clipped = false;     // outside the frame, drawn at its edge
  bool above_roof = false;  // more than 3 % above its effective roof: R001
  bool has_target = false;
  Point target;  // roofline: the effective roof above it; time view: its measured time on its ray
  double ci_left = 0, ci_right = 0, ci_top = 0, ci_bottom = 0;  // pixels; equal: no error bar
};

struct Symbol {
  std::string css;
  int phase = -1;
  Point at;
  double radius = 0;
};

struct Size {
  double width = 820, height = 640;
};

struct Picture {
  std::string kind;  // "roofline" or "time"
  std::string title, description;
  Size size;
  Box plot, gutter;
  std::vector<Line> lines;      // under the marks
  std::vector<Mark> marks;      // largest first
  std::vector<Symbol> symbols;  // of the legend
  std::vector<Text> texts;      // over the marks
};

// The rows that the pictures show: by layer they are split by phase where the report has that split.
std::span<const Row> PictureRows(const Report& report);

// A kernel's name without what surrounds it in C++: "void at::native::copy_kernel<4, float>(int)" is "copy_kernel".
std::string ShortKernelName(std::string_view kernel);

// What a row is called on a label: its layer, operator, kernel or phase, whichever the report's `by` makes it differ
// in; with its model before it where the run has several. Long paths lose their beginning.
std::string RowName(const Row& row, const Report& report);

// The precision that most of the FLOP ran in; -1 without FLOP.
int DominantPrecision(const FlopByPrecision& flop);

// "ResNet on A100-SXM4-40GB"
std::string ReportTitle(const Report& report);
// "ESTIMATED from tensor shapes", "MEASURED by hardware counters", …
std::string SourceTitle(const Report& report);
// Batch, precision policy, steps, versions: what must be known to compare two pictures.
std::string ReportSubtitle(const Report& report);

Picture LayOutRoofline(const Report& report, const Frames& frames, Size size);
Picture LayOutTimeView(const Report& report, const Frames& frames, Size size);

struct WriteOptions {
  bool titles = true;    // each mark carries its numbers as an SVG <title>
  size_t first_row = 0;  // added to Mark::row in data-i
  double offset_x = 0, offset_y = 0;
  std::string id = "rf";  // prefix of ids, unique in the document
};

// Appends an <svg> element.
void WritePicture(const Picture& picture, const Report& report, const WriteOptions& options, std::string* out);

// The style sheet of the pictures: light, and dark by the viewer's preference. With `themed` the attribute data-theme
// ("light", "dark") of the root element overrules the preference.
std::string PictureStyle(bool themed);

// Marks of the same area: the outline of the phase's shape around `at`, as SVG path data.
std::string MarkPath(int phase, Point at, double radius);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_PLOT_H_
