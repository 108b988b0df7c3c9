// File: live.h
//
// Writes the state of a running job as lines for a terminal (`rfinject top`).
#ifndef RFINJECT_CLI_EMIT_LIVE_H_
#define RFINJECT_CLI_EMIT_LIVE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/emit/emit.h"
#include "cli/report/live.h"

namespace rfinject::cli {

struct LiveLook {
  std::string command;      // the program's, as one could type it
  std::string sort_column;  // what the rows are in order of; empty: as reports have them
  std::string sorted_by;    // the same in words
  TableOptions table;       // max_rows is not looked at where `lines` bounds
  size_t most_ranks = 8;    // 0: all
  size_t lines = 0;         // of the screen; 0: as many as there are
  bool paused = false;
};

// Colours are those of `look.table`; everything else in the lines is printable. With `look.lines` there are no more
// lines than that: the table gets those that are left, and what is below the last line is left out.
std::vector<std::string> LiveLines(const LiveRun& live, const LiveLook& look);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_LIVE_H_
