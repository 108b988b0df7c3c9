// File: axes.h
//
// Ticks, grid lines and frames of the axes, and how the decades are written.
#ifndef RFINJECT_CLI_PICTURE_AXES_H_
#define RFINJECT_CLI_PICTURE_AXES_H_

#include <string>

#include "cli/picture/geometry.h"
#include "cli/picture/picture.h"

namespace rfinject::cli {

// 10^exponent FLOP/s without the unit: "10 G".
std::string RateTick(int exponent);
// 10^exponent as a plain number: "0.01", "10,000".
std::string PlainTick(int exponent);
// 10^exponent ns: "100 us".
std::string TimeTick(int exponent);

// Adds the text below a decade of the horizontal axis, inside the picture's edge; none where it would cover the one
// of a decade before it.
void AddTickText(const std::string& text, Point at, Picture* out);

// A line across the plot a decade, and a tick for each multiple of it.
void AddDecadeGrid(const LogLog& axes, Picture* out);

void AddFrame(const Box& box, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_AXES_H_
