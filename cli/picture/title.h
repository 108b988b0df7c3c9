// File: title.h
//
// What both pictures begin with: the plot's place, the title, and the badge that says where the numbers come from.
#ifndef RFINJECT_CLI_PICTURE_TITLE_H_
#define RFINJECT_CLI_PICTURE_TITLE_H_

#include <string_view>

#include "cli/picture/picture.h"

namespace rfinject::cli {

struct Report;

// Returns a picture of `view` ("Roofline") with its name and description, and with a plot that leaves `left` pixels
// beside it, room for the title above and for the axis and `legend_lines` below.
Picture BeginPicture(const Report& report, std::string_view kind, std::string_view view, Size size, double left,
                     int legend_lines);
// Below the plot, the baseline of the legend's first line.
inline constexpr double kLegendTop = 52;

// Adds title and badge; `view` ("roofline") begins the subtitle. The plot's box must be known.
void AddTitle(const Report& report, std::string_view view, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_TITLE_H_
