// File: roofline.h
//
// The roofline: operational intensity against performance, under the roofs of the GPU. Source: Williams, Waterman,
// Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
#ifndef RFINJECT_CLI_EMIT_PICTURE_ROOFLINE_H_
#define RFINJECT_CLI_EMIT_PICTURE_ROOFLINE_H_

#include "cli/emit/picture/frames.h"
#include "cli/emit/picture/picture.h"
#include "cli/report/report.h"

namespace rfinject::cli {

Picture LayOutRoofline(const Report& report, const Frames& frames, Size size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_PICTURE_ROOFLINE_H_
