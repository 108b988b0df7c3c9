// File: picture.h
//
// A picture of a report as geometry: lines, marks, symbols and texts, in pixels. Laying out makes a Picture of a
// Report and is pure (roofline.h, time_view.h, diff_picture.h); writing walks over the Picture (svg.h). The
// stand-alone SVG and the HTML page use the same pictures.
//
//   const Frames frames = FramesFor(reports);            // one for all reports: small multiples on identical axes
//   Picture picture = LayOutRoofline(reports[0], frames, {820, 620});
//   Markup svg = PictureSvg(picture, &reports[0], {});
//
// A picture computes places, and nothing else: each number that it shows is a field of the Report or a function of
// cli/report.
#ifndef RFINJECT_CLI_PICTURE_PICTURE_H_
#define RFINJECT_CLI_PICTURE_PICTURE_H_

#include <string>
#include <vector>

#include "cli/picture/geometry.h"
#include "cli/picture/text.h"

namespace rfinject::cli {

// The names in `css` are class names; palette.cc says what they look like.
struct Line {
  std::string css;
  std::vector<Point> points;
};

// One row.
struct Mark {
  size_t row = 0;  // in PictureRows(report)
  Point at;
  Point pin;           // where the row is, or the nearest point of the frame
  double radius = 0;   // of the circle of the same area
  int phase = -1;      // Phase, or -1: the row is of no single phase
  int precision = -1;  // the Precision that most FLOP ran in, or -1
  bool in_gutter = false;
  bool clipped = false;     // outside the frame, drawn whole inside it, at its edge
  bool above_roof = false;  // more than 3 % above its effective roof: R001
  bool member = false;      // of a group that has a mark as well: not shown until the group is opened
  bool has_target = false;
  Point target;  // roofline: the effective roof above it; time view: its measured time on its ray
  double ci_left = 0, ci_right = 0, ci_top = 0, ci_bottom = 0;  // pixels; equal: no error bar
};

// A shape that stands for no row.
struct Symbol {
  std::string css;
  int phase = -1;
  Point at;
  double radius = 0;
};

// A box that stands for no row, with what a pointer over it is told, in lines; empty: nothing.
struct Block {
  std::string css;
  Box box;
  std::string title;
};

struct Picture {
  std::string kind;  // "roofline", "time", "timeline" or "memory"
  std::string title, description;
  Size size;
  Box plot, gutter;
  std::vector<Block> blocks;    // under the lines
  std::vector<Line> lines;      // under the marks
  std::vector<Mark> marks;      // largest first, members of groups behind all others
  std::vector<Symbol> symbols;  // of the legend
  std::vector<Text> texts;      // over the marks
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_PICTURE_H_
