// File: advice_view.h
//
// What to change in a program, and what each change would win: `rfinject advise`.
#ifndef RFINJECT_CLI_VIEW_ADVICE_VIEW_H_
#define RFINJECT_CLI_VIEW_ADVICE_VIEW_H_

#include <vector>

#include "cli/view/document.h"

namespace rfinject::cli {

// Schema rfinject.advice/1, which always has all rules. `all` shows people also the rules that no pair of programs
// has shown to be right, those that lack a fact and those that do not hold.
Document AdviceDocument(std::vector<Report> reports, bool all);

// The advice of one run, with reasons, for a page that holds more than advice. `report` must outlive it.
Section AdviceSection(const Report& report, bool all);

// The rules that hold, as the JSON of a report has them.
Data ShownAdviceData(const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_ADVICE_VIEW_H_
