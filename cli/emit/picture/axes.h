// File: axes.h
//
// Ticks, grid lines and frames of the axes, and how the decades are written.
#ifndef RFINJECT_CLI_EMIT_PICTURE_AXES_H_
#define RFINJECT_CLI_EMIT_PICTURE_AXES_H_

#include <string>

#include "cli/emit/picture/geometry.h"
#include "cli/emit/picture/picture.h"

namespace rfinject::cli {

// 10^exponent FLOP/s without the unit: "10 G".
std::string RateTick(int exponent);
// 10^exponent as a plain number: "0.01", "10,000".
std::string PlainTick(int exponent);
// 10^exponent ns: "100 µs".
std::string TimeTick(int exponent);

// The text below a decade of the horizontal axis; it does not stand out beyond the picture's edge at `width`.
Text TickText(const std::string& text, Point at, double width);

// A line across the plot a decade, and a tick for each multiple of it.
void AddDecadeGrid(const LogLog& axes, Picture* out);

void AddFrame(const Box& box, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_PICTURE_AXES_H_
