// File: names.h
//
// What things are called in the pictures and on the page: rows, runs, sources and durations.
#ifndef RFINJECT_CLI_PICTURE_NAMES_H_
#define RFINJECT_CLI_PICTURE_NAMES_H_

#include <span>
#include <string>
#include <string_view>

#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct Report;

// Returns the name of a row on a label: its layer, operator, kernel or phase, depending on the report's `by`; with
// its model before it where the run has several. Long paths lose their beginning.
std::string RowName(const Row& row, const Report& report);

// The same with the phase behind it: "layer1.0.conv1 fwd".
std::string MarkLabel(const Row& row, const Report& report);

// "ResNet on A100-SXM4-40GB"
std::string ReportTitle(const Report& report);
// What a document about `reports` is called: `what`, then the title of each.
std::string DocumentTitle(std::string_view what, std::span<const Report> reports);
// "ESTIMATED from tensor shapes", "MEASURED by hardware counters", …
std::string SourceTitle(const Report& report);
// Batch, precision policy, steps, versions: what must be known to compare two pictures.
std::string ReportSubtitle(const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_NAMES_H_
