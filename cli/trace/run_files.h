// File: run_files.h
//
// Finds which trace files are of one run, and which run is the newest. The ranks of a job and their restarts have the
// same Process.job_id; a trace without one is a run of its own, and so is a merged one.
//
//   TraceBeginnings beginnings;
//   for (const RunFiles& run : GroupByRun(files, &beginnings, &unknown)) Read(run.files);
#ifndef RFINJECT_CLI_TRACE_RUN_FILES_H_
#define RFINJECT_CLI_TRACE_RUN_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "cli/trace/identity.h"

namespace rfinject::cli {

struct RunFiles {
  std::string job;                 // Process.job_id; empty: one trace that stands alone
  std::vector<std::string> files;  // sorted
  int64_t start_unix_ns = 0;       // of the first process; the file's own time where no process says
  std::vector<std::string> argv;   // of the first process
};

// Remembers what the beginnings of files say, which traces they are and of which run, so that each file of a folder
// is opened only once.
class TraceBeginnings {
 public:
  struct One {
    TraceIdentity identity;
    bool says_run = false;  // false: damaged, empty, or no trace
    RunFiles run;           // with this one file
  };
  // The reference stays valid.
  const One& Of(const std::string& path);
  // Reads those that are not known yet with all processors.
  void ReadAhead(const std::vector<std::string>& paths);

 private:
  absl::node_hash_map<std::string, One> known_;
};

// Oldest first; of runs that began at one moment the first by name of file. Of each file only the beginning is read.
// Files that do not say which run they are of (damaged, empty, no trace) are put into `*unknown`.
std::vector<RunFiles> GroupByRun(const std::vector<std::string>& files, TraceBeginnings* beginnings,
                                 std::vector<std::string>* unknown);

// Where `rfinject` puts runs when it is not told, below the working folder.
inline constexpr std::string_view kRunsFolder = "rfinject-out";
inline constexpr std::string_view kLatestLink = "latest", kStartedLink = ".started";

// The folder that the link `latest` in `folder` names; empty where there is none, or where it leads out of the
// folder.
std::string LatestRun(const std::string& folder);

// Notes in `folder` that a run begins there whose folder will be `name`, by a link of that text that nobody follows;
// not before the folder has a run that could be taken for it. What cannot be written is left.
void NoteStarted(const std::string& folder, const std::string& name);
// The name that was noted last, where no folder has it: that run has left no trace, or none yet. Else empty.
std::string StartedWithoutTrace(const std::string& folder);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_RUN_FILES_H_
