// File: run_files.h
//
// Which trace files are of one run, and which run is the newest. A run is what one command started: the ranks of a
// job and their restarts say the same Process.job_id. A trace that says none is a run of its own, and so is a merged
// one.
//
//   for (const RunFiles& run : GroupByRun(files, &unknown)) Read(run.files);
#ifndef RFINJECT_CLI_TRACE_RUN_FILES_H_
#define RFINJECT_CLI_TRACE_RUN_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

struct RunFiles {
  std::string job;                 // Process.job_id; empty: one trace that stands alone
  std::vector<std::string> files;  // sorted
  int64_t start_unix_ns = 0;       // of the first process; the file's own time where no process says
  std::vector<std::string> argv;   // of the first process
};

// Oldest first; of runs that began at one moment the first by name of file. Of each file only the beginning is read.
// What does not say what it is of (damaged, empty, no trace) is put into `*unknown`.
std::vector<RunFiles> GroupByRun(const std::vector<std::string>& files, std::vector<std::string>* unknown);

// Where `rfinject` puts runs when it is not told, below the working folder.
inline constexpr std::string_view kRunsFolder = "rfinject-out";
inline constexpr std::string_view kLatestLink = "latest";

// The folder that the link `latest` in `folder` names; empty where there is none, or where it leads out of the
// folder.
std::string LatestRun(const std::string& folder);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_RUN_FILES_H_
