// File: time_view.h
//
// The time view: the least time that a row's FLOP need against the least time that its bytes need, both a step.
// Source: Wang et al., "Time-based roofline for deep learning performance analysis", 2020, arXiv 2009.04598.
#ifndef RFINJECT_CLI_PICTURE_TIME_VIEW_H_
#define RFINJECT_CLI_PICTURE_TIME_VIEW_H_

#include "cli/picture/frames.h"
#include "cli/picture/picture.h"

namespace rfinject::cli {

struct Report;

Picture LayOutTimeView(const Report& report, const Frames& frames, Size size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_TIME_VIEW_H_
