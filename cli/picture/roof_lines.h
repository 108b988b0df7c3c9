// File: roof_lines.h
//
// The roofs of a roofline: which of them are drawn, how, and where.
#ifndef RFINJECT_CLI_PICTURE_ROOF_LINES_H_
#define RFINJECT_CLI_PICTURE_ROOF_LINES_H_

#include <span>
#include <string>
#include <vector>

#include "cli/picture/labels.h"
#include "cli/picture/picture.h"
#include "cli/report/rows/roofs.h"

namespace rfinject::cli {

struct Report;

// Whether the run uses the precision of this roof, over whichever path.
bool PrecisionUsed(std::span<const RoofLine> roofs, const RoofLine& of);

// Whether a roof with a peak is drawn. The lower path of a precision that the run does not use is not drawn, because
// there is little room.
bool Drawn(std::span<const RoofLine> roofs, const RoofLine& of);

// The roofs with a peak that are drawn; unused ones come first, so that the others lie on top.
std::vector<const RoofLine*> DrawnRoofs(std::span<const RoofLine> roofs);

// The class of a line of RoofLine::kind, with a blank before it: solid, dashed or dotted.
std::string LineKindCss(RoofKind kind);

// The class of the roof's colour: its precision's, or grey where the run does not use it.
std::string RoofTone(const RoofLine& roof, bool used);

// A memory roof. It belongs to no precision, so it is drawn once a level and bandwidth.
struct Slope {
  double bytes_per_s = 0;
  double end_oi = 0;  // where the line ends: at the highest ridge among the roofs that the run uses
  MemoryLevel level{};
  RoofKind kind{};
};

// Adds the lines of `roofs` and keeps labels off them. Returns the memory roofs, which are drawn over them.
std::vector<Slope> AddRoofs(const Report& report, const std::vector<const RoofLine*>& roofs, const LogLog& axes,
                            Labels* labels, Picture* out);

// Adds the memory roofs, in the text's colour, with their labels along them.
void AddSlopes(const std::vector<Slope>& slopes, const LogLog& axes, Labels* labels, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_ROOF_LINES_H_
