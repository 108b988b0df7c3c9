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
  std::string model, gpu;
  SourceKind source{};
  uint64_t processes = 0;
  uint64_t ranks = 0;  // different ones; 1 where no process is one of several
  // The steps of one rank; its restarts are added up.
  uint64_t steps = 0;
  double gpu_ns = 0;   // a step; 0 unknown
  double wall_ns = 0;  // a step, of what was measured; 0 unknown
};

// Makes the line of a run from its report; `ranks` is the number that the trace has.
RunLine MakeRunLine(const Report& report, uint64_t ranks);

// "2026-01-02 03:04:05", in the time zone of this machine; empty for 0.
std::string StartText(int64_t start_unix_ns);
// Returns the words of a command as one could type them again: those with blanks in them are quoted.
std::string CommandText(std::span<const std::string> argv);

// The process that began first; null of none.
const ProcessInfo* FirstProcess(std::span<const ProcessInfo> processes);

// Returns the commands of processes that were added up, if they differ. The arguments that a launcher gives each
// rank, and the workers that a process starts by itself, do not count as a difference.
std::vector<std::string> DifferentCommands(std::span<const ProcessInfo> processes);

// A view of `lines`.
RowSet RunRows(std::span<const RunLine> lines);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_RUN_LIST_H_
