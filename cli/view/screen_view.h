// File: screen_view.h
//
// What a person sees who types `rfinject report`: one screen of at most 23 lines of 80 columns, so that a prompt fits
// below. What a step costs, where it goes, the rows with most to win, what to change, and where more is.
#ifndef RFINJECT_CLI_VIEW_SCREEN_VIEW_H_
#define RFINJECT_CLI_VIEW_SCREEN_VIEW_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/view/document.h"

namespace rfinject::cli {

struct Report;

// Of several reports the first that trains has the screen, and a line says how many more there are.
Document ScreenDocument(std::vector<Report> reports);

// Parts of a whole in a line of `width` columns, each as wide as it is large: "|backward 52 %----|forward 33
// %--|...|". Parts without room for a letter are left out. Empty where there are none.
std::string BarText(const std::vector<std::pair<std::string, double>>& parts, size_t width);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_SCREEN_VIEW_H_
