// File: legend.h
//
// The legend in the strip below the plot.
#ifndef RFINJECT_CLI_PICTURE_LEGEND_H_
#define RFINJECT_CLI_PICTURE_LEGEND_H_

#include <string>
#include <vector>

#include "cli/picture/frames.h"
#include "cli/picture/picture.h"

namespace rfinject::cli {

struct LegendItem {
  std::string symbol_css;  // of a mark; empty: it explains a line
  std::string line_css;
  int phase = -1;
  double radius = 5;
  std::string text;
};

inline constexpr double kLegendLine = 17;  // pixels from one line to the next

// The items that explain the marks: phases, precisions, areas.
std::vector<LegendItem> MarkLegend(const Frames& frames, Size size);

// Flows the items over lines of the strip that begins at `top`, and returns how many lines that takes.
int AddLegend(const std::vector<LegendItem>& items, double top, Picture* out);

// How many lines the legend takes in a picture of `width`, before the plot's height is known.
int LegendLines(const std::vector<LegendItem>& items, double width);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_LEGEND_H_
