// File: run_list.h
//
// The list of runs: what was run when, on what, and how long a step took; a line for each kind of run.
#ifndef RFINJECT_CLI_REPORT_RUN_LIST_H_
#define RFINJECT_CLI_REPORT_RUN_LIST_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/report/report.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

struct RunLine {
  std::string path;           // the folder that holds nothing but the run, or its first trace
  int64_t start_unix_ns = 0;  // of its first process
  std::vector<std::string> argv;
  uint64_t ranks = 0;  // different ones; 1 where no process is one of several
  Report report;
};

// A view of `lines`. Steps are those of one rank, whose restarts are added up.
RowSet RunRows(std::span<const RunLine> lines);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_RUN_LIST_H_
