// File: roofline.h
//
// The roofline: operational intensity against performance, under the roofs of the GPU. Source: Williams, Waterman,
// Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
#ifndef RFINJECT_CLI_PICTURE_ROOFLINE_H_
#define RFINJECT_CLI_PICTURE_ROOFLINE_H_

#include <span>
#include <utility>

#include "cli/picture/frames.h"
#include "cli/picture/picture.h"

namespace rfinject::cli {

struct Report;

// No mark's label stands on a line of `spared`, which the caller draws over the picture. Marks stand where they do
// whatever is spared.
Picture LayOutRoofline(const Report& report, const Frames& frames, Size size,
                       std::span<const std::pair<Point, Point>> spared = {});

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_ROOFLINE_H_
