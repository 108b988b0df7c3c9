// File: live_view.h
//
// A running job, for `rfinject top`.
#ifndef RFINJECT_CLI_VIEW_LIVE_VIEW_H_
#define RFINJECT_CLI_VIEW_LIVE_VIEW_H_

#include <cstddef>
#include <string>

#include "cli/report/live.h"
#include "cli/view/document.h"

namespace rfinject::cli {

struct LiveLook {
  std::string command;      // the program's, as one could type it
  std::string sort_column;  // what the rows are in order of; empty: as reports have them
  std::string sorted_by;    // the same in words
  size_t most_ranks = 8;    // 0: all
  bool paused = false;
};

// The document refers to `live`, which must outlive it. Its last table is that of the rows.
Document LiveDocument(const LiveRun& live, const LiveLook& look);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_LIVE_VIEW_H_
