// File: mark_shape.h
//
// The outline of a mark: each phase has a shape of its own, all of the same area.
#ifndef RFINJECT_CLI_PICTURE_MARK_SHAPE_H_
#define RFINJECT_CLI_PICTURE_MARK_SHAPE_H_

#include <string>

#include "cli/picture/geometry.h"

namespace rfinject::cli {

// The shape of `phase` (Phase, or -1 for a row of no single phase) around `at`, as SVG path data: the polygon of the
// area of a circle with `radius`, or that circle.
std::string MarkPath(int phase, Point at, double radius);

// The box around that shape when it stands at the origin.
Box MarkExtent(int phase, double radius);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_MARK_SHAPE_H_
