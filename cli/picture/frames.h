// File: frames.h
//
// What all pictures of one document share: the axes, and what the legends explain.
#ifndef RFINJECT_CLI_PICTURE_FRAMES_H_
#define RFINJECT_CLI_PICTURE_FRAMES_H_

#include <set>
#include <span>
#include <vector>

#include "cli/picture/geometry.h"
#include "cli/report/rows/roofs.h"

namespace rfinject::cli {

struct Report;

struct Frames {
  Decades oi;           // FLOP per byte
  Decades performance;  // FLOP/s
  Decades time;         // ns a step, both axes of the time view
  bool gutter = false;  // some report has rows without FLOP
  // The values that the legends explain. They are the same in every picture, because a legend of another height would
  // shift the axes.
  std::set<int> phases, precisions;  // -1: none
  std::vector<RoofKind> roof_kinds;
  bool unused_roofs = false;
  bool levels = false;  // bytes of L2 or L1 are known
  bool shortest_launch = false;
  bool time_shares = false;  // a mark's area is its share of GPU time
};

// Makes the frames from the ceilings alone, in whole decades, so that two runs on one GPU have the same axes and a
// gain is seen as a move: OI from 10^-2 (an element-wise kernel is near 10^-1) to ten times the highest ridge,
// performance from a tenth of the lowest roof at the left edge to above the highest peak. Reports without roofs fall
// back on their points. The time axes span five decades below the longest row or least time of all reports.
Frames FramesFor(std::span<const Report> reports);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_FRAMES_H_
