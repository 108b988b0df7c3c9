// File: timeline.h
//
// A step as the GPU saw it, as a picture: from the top the bandwidth of DRAM, the work of tensor pipes, the kernels
// of each stream, and the layers that they are of, over one axis of time.
#ifndef RFINJECT_CLI_PICTURE_TIMELINE_H_
#define RFINJECT_CLI_PICTURE_TIMELINE_H_

#include "cli/picture/picture.h"
#include "cli/report/timeline.h"

namespace rfinject::cli {

// How high the picture of that width is.
Size TimelineSize(const Timeline& timeline, double width);

// `timeline` must be known.
Picture LayOutTimeline(const Timeline& timeline, Size size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_TIMELINE_H_
