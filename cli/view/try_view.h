// File: try_view.h
//
// The view of `rfinject try`: a row a change.
#ifndef RFINJECT_CLI_VIEW_TRY_VIEW_H_
#define RFINJECT_CLI_VIEW_TRY_VIEW_H_

#include <string>
#include <vector>

#include "cli/report/compare/trial.h"
#include "cli/view/document.h"

namespace rfinject::cli {

struct TryFacts {
  std::string opening;            // on what, and what the program is
  bool nothing_computed = false;  // a virtual GPU, whose losses mean nothing
  bool with_diffs = false;        // the patches are shown
  // Of --require won>=10%; negative: not asked for. It holds where a change that is recommended wins as much.
  double required_share = -1;
};

// The first trial is the baseline. Schema rfinject.try/1. --require is a check.
Document TryDocument(std::vector<Trial> trials, const TryFacts& facts);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_TRY_VIEW_H_
