// File: gutter.h
//
// The strip at the left of a picture, for rows without FLOP: they have no place on an axis of FLOP. Within the strip
// each phase has a lane of its own.
#ifndef RFINJECT_CLI_PICTURE_GUTTER_H_
#define RFINJECT_CLI_PICTURE_GUTTER_H_

#include <span>
#include <vector>

#include "cli/picture/picture.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct Report;

// The phases (Phase, or -1) of the rows without FLOP, in the order of their lanes from the left.
std::vector<int> GutterPhases(std::span<const Row> rows);

// The middle of the lane of `phase`.
double LaneX(const Box& gutter, const std::vector<int>& lanes, int phase);

// Moves a mark of a lane sideways until it is whole inside the gutter: its height says something, its lane only the
// phase.
void KeepInGutter(const Box& gutter, Mark* mark);

// Where a roofline's gutter shows a share of the bandwidth roof: 0.1 % to 100 %, and below them a place for rows
// whose bytes are unknown.
struct BandwidthScale {
  explicit BandwidthScale(const Box& gutter) : gutter(gutter) {}
  double Y(double share) const;  // not clamped
  double Unknown() const { return gutter.bottom() - 9; }
  double Lowest() const { return gutter.bottom() - 24; }
  double Highest() const { return gutter.y + 8; }  // for what is above the roof
  Box gutter;
};

// Frame, scale and titles of a roofline's gutter.
void AddBandwidthGutter(const Report& report, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_GUTTER_H_
