// File: load.h
//
// Reads the traces that a command line names into one Profile, with progress and messages on stderr.
#ifndef RFINJECT_CLI_CMD_LOAD_H_
#define RFINJECT_CLI_CMD_LOAD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cmd/options.h"
#include "cli/cmd/sum_traces.h"
#include "cli/profile/profile.h"
#include "cli/trace/run_files.h"

namespace rfinject::cli {

// Adds up everything in files and folders, of whatever runs (for `merge`), as SumTraces does.
Loaded LoadTraces(const std::vector<std::string>& paths);

// A run: one job's ranks and restarts, added up.
struct LoadedRun {
  RunFiles of;
  Profile profile;
};

struct LoadedRuns {
  std::vector<LoadedRun> runs;  // in the order in which they were named; each with something in it
  bool damaged = false;         // as in Loaded
  bool empty = false;
};

// Which runs are meant by a folder that holds several. Files that are named are always all meant.
enum class FolderMeans : uint8_t { kNewestRun, kEveryRun };

// Reads the runs that are meant; only what belongs to one run is added up. Where a folder's older runs are left out,
// a line says which run it is and how to see the others.
LoadedRuns LoadRuns(const std::vector<std::string>& paths, FolderMeans folder);

// Returns the runs of all `paths`, oldest first. Files are read only as far as is needed to tell runs apart.
// Complaints go to `*loaded`.
std::vector<RunFiles> FindRuns(const std::vector<std::string>& paths, LoadedRuns* loaded);

// The order in which files are read, so that of two that share a trace (a copy that was taken while the process ran,
// a merged trace beside its parts) the one comes first that holds more.
std::vector<std::string> FullestFirst(std::vector<std::string> files);

// Returns what is meant where no path was given: the latest run below the working folder, and says so in a line. It
// is empty, after a complaint, where there is none.
std::string NewestRunHere(std::string_view verb);

// The words of the command line as paths, or what NewestRunHere returns where there are none. Empty where it is.
std::vector<std::string> PathsOrNewestRun(std::string_view verb, const ParsedOptions& parsed);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_LOAD_H_
