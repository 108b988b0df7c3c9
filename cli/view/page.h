// File: page.h
//
// All that is known of runs in one document, for a format that has room for it: the pictures, the rows, where a step
// goes, what it waits for, memory, what is in no layer, ranks and advice.
#ifndef RFINJECT_CLI_VIEW_PAGE_H_
#define RFINJECT_CLI_VIEW_PAGE_H_

#include <vector>

#include "cli/view/document.h"
#include "cli/view/report_view.h"
#include "cli/view/run_views.h"

namespace rfinject::cli {

// `runs` are those that `reports` were made of, in the same order; where there are none, the page has no more than
// the reports. Training comes before validation; `look.validation` leaves the training out.
Document PageDocument(std::vector<Report> reports, const ReportLook& look, const std::vector<const Run*>& runs);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_PAGE_H_
