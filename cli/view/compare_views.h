// File: compare_views.h
//
// The views of several runs: side by side, as a list, and what changed from one to the other.
#ifndef RFINJECT_CLI_VIEW_COMPARE_VIEWS_H_
#define RFINJECT_CLI_VIEW_COMPARE_VIEWS_H_

#include <vector>

#include "cli/report/compare/diff.h"
#include "cli/report/run_list.h"
#include "cli/view/document.h"

namespace rfinject::cli {

// A row a run, by model and GPU, with correlations between the columns. Schema rfinject.sweep/1: numbers are a step's
// unless their name says otherwise; what is unknown is null. In CSV `record` is "run", or "correlation" with the two
// columns' names and Spearman's rho. The reports must be of By::kModel.
Document SweepDocument(std::vector<Report> reports);

// The list of runs. Schema rfinject.runs/1.
Document RunListDocument(std::vector<RunLine> lines);

// What changed. Schema rfinject.diff/1. Each condition of Diff::gates is a check.
Document DiffDocument(Diff diff);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_COMPARE_VIEWS_H_
