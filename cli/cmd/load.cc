#include "cli/cmd/load.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/cmd/options.h"
#include "cli/import/file_name.h"
#include "cli/import/formats.h"
#include "cli/report/run_list.h"
#include "cli/text/code_points.h"
#include "cli/text/units.h"
#include "cli/trace/files.h"
#include "cli/trace/identity.h"

namespace rfinject::cli {

namespace {

// The order in which files are read. Where two share a trace, the file that holds more traces comes first, then the
// longer one: a copy that was taken while the process ran, or a merged trace beside its parts, is then the one that
// is left out, whatever the order on the command line.
std::vector<std::string> InOrder(std::vector<std::string> files, TraceBeginnings* beginnings) {
  if (files.size() < 2) return files;
  beginnings->ReadAhead(files);
  std::set<std::string_view> ids;
  bool again = false;
  for (const std::string& file : files) {
    for (const std::string& id : beginnings->Of(file).identity.ids) again = !ids.insert(id).second || again;
  }
  if (!again) return files;
  std::stable_sort(files.begin(), files.end(), [beginnings](const std::string& a, const std::string& b) {
    const TraceIdentity &of_a = beginnings->Of(a).identity, &of_b = beginnings->Of(b).identity;
    return std::pair(of_a.ids.size(), of_a.size) > std::pair(of_b.ids.size(), of_b.size);
  });
  return files;
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// What other tools wrote into a folder that has no traces.
std::vector<std::string> RecordingsOf(const std::string& path) {
  if (!IsFolder(path)) return {};
  absl::StatusOr<std::vector<std::string>> found = FilesToImport(path, nullptr);
  return found.ok() ? *std::move(found) : std::vector<std::string>();
}

std::vector<std::string> FilesOf(const std::string& path, bool* damaged) {
  if (const std::string remedy = OtherProfileRemedy(path); !remedy.empty()) {
    *damaged = true;
    Complain(absl::StrCat(path, ": ", remedy));
    return {};
  }
  absl::StatusOr<std::vector<std::string>> found = FindTraces(path);
  if (found.ok()) return *std::move(found);
  if (std::vector<std::string> recordings = RecordingsOf(path); !recordings.empty()) return recordings;
  *damaged = true;
  Complain(absl::StrCat(path, ": ", found.status().message()));
  return {};
}

std::vector<std::string> FilesOf(const std::vector<std::string>& paths, bool* damaged) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = FilesOf(path, damaged);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

// "2026-01-02 03:04:05: python train.py"
std::string RunTitle(const RunFiles& run) {
  return absl::StrCat(StartText(run.start_unix_ns), run.argv.empty() ? "" : ": ",
                      PrintableText(CommandText(run.argv)));
}

Loaded SumOf(const std::vector<std::string>& files) {
  std::vector<FileToAdd> all;
  for (const std::string& file : files) all.push_back({file, 0});
  return std::move(SumTraces(all, 1).front());
}

void AddRun(const RunFiles& run, Loaded sum, LoadedRuns* loaded) {
  loaded->damaged = loaded->damaged || sum.damaged;
  loaded->empty = loaded->empty || sum.empty;
  if (sum.files > 0) loaded->runs.push_back({run, std::move(sum.profile)});
}

// Returns the runs of what one word names. What belongs to no known run is put into `*loaded`.
std::vector<RunFiles> RunsOf(const std::vector<std::string>& files, TraceBeginnings* beginnings, LoadedRuns* loaded) {
  std::vector<std::string> unknown;
  std::vector<RunFiles> runs = GroupByRun(files, beginnings, &unknown);
  for (const std::string& file : unknown) {
    AddRun({.job = {}, .files = {file}}, SumOf({file}), loaded);  // says what is wrong with it
  }
  return runs;
}

}  // namespace

Loaded LoadTraces(const std::vector<std::string>& paths) {
  TraceBeginnings beginnings;
  bool damaged = false;
  Loaded loaded = SumOf(InOrder(FilesOf(paths, &damaged), &beginnings));
  loaded.damaged = loaded.damaged || damaged;
  return loaded;
}

std::vector<std::string> FullestFirst(std::vector<std::string> files) {
  TraceBeginnings beginnings;
  return InOrder(std::move(files), &beginnings);
}

std::vector<RunFiles> FindRuns(const std::vector<std::string>& paths, LoadedRuns* loaded) {
  std::vector<std::string> files = FilesOf(paths, &loaded->damaged);
  // The same file named twice is one trace.
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  TraceBeginnings beginnings;
  return RunsOf(files, &beginnings, loaded);
}

LoadedRuns LoadRuns(const std::vector<std::string>& paths, FolderMeans folder) {
  LoadedRuns loaded;
  TraceBeginnings beginnings;
  std::vector<std::string> named;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = FilesOf(path, &loaded.damaged);
    if (IsFolder(path) && !found.empty() && found == RecordingsOf(path)) {
      // It is read as one: the ranks of a job add up, and what differs is a run of its own within it.
      AddRun({.job = {}, .files = found}, SumOf(found), &loaded);
      continue;
    }
    if (folder == FolderMeans::kEveryRun || !IsFolder(path)) {
      named.insert(named.end(), found.begin(), found.end());
      continue;
    }
    const std::vector<RunFiles> runs = RunsOf(found, &beginnings, &loaded);
    if (runs.empty()) continue;
    const RunFiles& newest = runs.back();
    if (runs.size() > 1) {
      Complain(absl::StrCat(path, ": the newest of ", Grouped(runs.size()), " runs, ", RunTitle(newest),
                            "; `rfinject runs ", path, "` lists them"));
    }
    named.insert(named.end(), newest.files.begin(), newest.files.end());
  }
  // Runs stay in the order in which they are named. A file that is named twice is reported where it is read.
  std::map<std::string, size_t> place;
  std::vector<std::string> different;
  for (const std::string& file : named) {
    if (place.emplace(file, place.size()).second) different.push_back(file);
  }
  std::vector<RunFiles> runs = RunsOf(different, &beginnings, &loaded);
  const auto first_named = [&](const RunFiles& run) {
    size_t first = named.size();
    for (const std::string& file : run.files) first = std::min(first, place[file]);
    return first;
  };
  std::sort(runs.begin(), runs.end(),
            [&](const RunFiles& a, const RunFiles& b) { return first_named(a) < first_named(b); });
  // What two files share counts once, also when they are of different runs (a copy, a merged trace beside its parts).
  std::map<std::string, size_t> run_of;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& file : runs[i].files) run_of[file] = i;
  }
  std::vector<FileToAdd> all;
  for (const std::string& file : InOrder(named, &beginnings)) {
    const auto run = run_of.find(file);
    if (run != run_of.end()) all.push_back({file, run->second});
  }
  std::vector<Loaded> sums = SumTraces(all, runs.size());
  for (size_t i = 0; i < runs.size(); ++i) AddRun(runs[i], std::move(sums[i]), &loaded);
  return loaded;
}

std::vector<std::string> PathsOrNewestRun(std::string_view verb, const ParsedOptions& parsed) {
  if (!parsed.words.empty()) return parsed.words;
  const std::string newest = NewestRunHere(verb);
  return newest.empty() ? std::vector<std::string>() : std::vector<std::string>{newest};
}

std::string NewestRunHere(std::string_view verb) {
  const std::string here(kRunsFolder);
  std::string path = LatestRun(here);
  if (path.empty() && IsFolder(here)) path = here + "/";
  if (path.empty()) {
    UsageError(verb, "no trace is named, and there is no " + here + "/ here");
    return {};
  }
  if (path != here + "/") Complain(path);  // which run it is; without one there is another line
  if (const std::string started = StartedWithoutTrace(here); !started.empty()) {
    Complain("the run that began last, " + started + ", has left no trace; this is a run before it");
  }
  return path;
}

}  // namespace rfinject::cli
