#include "cli/cmd/load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/cmd/options.h"
#include "cli/emit/text_grid.h"
#include "cli/report/run_list.h"
#include "cli/report/units.h"
#include "cli/trace/files.h"
#include "cli/trace/frames.h"
#include "cli/trace/read.h"

namespace rfinject::cli {

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1), start_(absl::Now()), shown_(start_) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void Progress::Show(size_t done, size_t all) {
  if (!terminal_) return;
  const absl::Time now = absl::Now();
  if (now - start_ < absl::Seconds(1) || now - shown_ < absl::Milliseconds(100)) return;
  shown_ = now;
  visible_ = true;
  absl::FPrintF(stderr, "\r%s %d of %d\033[K", what_, done, all);
}

namespace {

// What becomes of a trace that is damaged after `chunks` good chunks.
std::string UsedInSpite(uint64_t chunks) {
  if (chunks == 0) return "; nothing before it can be used";
  if (chunks == 1) return "; the chunk before it is used";
  return absl::StrCat("; the ", Grouped(chunks), " chunks before it are used");
}

// Which operators the processes of each kind of run ran in which layers and phases. Ranks of one job that differ in
// that are not doing the same work, and their mean is the mean of nothing.
class Operators {
 public:
  // Of one trace. A trace that was cut may lack some, which proves nothing.
  void Note(const std::string& path, const Profile& profile) {
    for (const auto& [key, run] : profile.runs) {
      if (run.unfinished > 0) continue;
      std::set<std::string> ran;
      for (const auto& [launch, stats] : run.launches) ran.insert(std::string(launch.op));
      const auto [known, is_new] = first_.try_emplace(key, One{path, ran});
      if (is_new || said_ || known->second.ran == ran) continue;
      std::vector<std::string> only;
      std::set_symmetric_difference(known->second.ran.begin(), known->second.ran.end(), ran.begin(), ran.end(),
                                    std::back_inserter(only));
      said_ = true;
      Complain(absl::StrCat(path, " did not run the operators of ", known->second.path, ", to which it is added: ",
                            only.front(), only.size() > 1 ? absl::StrCat(" and ", only.size() - 1, " more") : "",
                            only.size() > 1 ? " are" : " is", " in one of them only"));
    }
  }

 private:
  struct One {
    std::string path;
    std::set<std::string> ran;
  };
  std::map<RunKey, One> first_;
  bool said_ = false;
};

// Adds one trace; says what is wrong with it.
void LoadTrace(const std::string& path, Operators* operators, Loaded* loaded) {
  const auto complain = [&](const auto&... what) {
    loaded->damaged = true;
    Complain(absl::StrCat(path, ": ", what...));
  };
  FileSource source;
  if (const absl::Status status = source.Open(path); !status.ok()) {
    return complain("cannot be read: ", status.message());
  }
  TraceContents contents = ReadTrace(source);
  if (!contents.status.ok()) {
    complain(contents.status.message(), contents.usable ? UsedInSpite(contents.chunks) : std::string());
  }
  if (!contents.usable) return;
  const bool anything = !contents.profile.runs.empty();
  if (!anything && contents.status.ok()) {
    loaded->empty = true;
    Complain(
        absl::StrCat(path, ": byte ", source.size(),
                     ": the file ends before it says anything; its process ended before it measured, or has only "
                     "begun"));
  }
  operators->Note(path, contents.profile);
  if (const absl::Status status = loaded->profile.Merge(std::move(contents.profile)); !status.ok()) {
    return complain("not added: ", status.message());
  }
  if (anything) ++loaded->files;
}

std::vector<std::string> FilesOf(const std::string& path, bool* damaged) {
  absl::StatusOr<std::vector<std::string>> found = FindTraces(path);
  if (found.ok()) return *std::move(found);
  *damaged = true;
  Complain(absl::StrCat(path, ": ", found.status().message()));
  return {};
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// "2026-01-02 03:04:05: python train.py"
std::string RunTitle(const RunFiles& run) {
  return absl::StrCat(StartText(run.start_unix_ns), run.argv.empty() ? "" : ": ",
                      PrintableText(CommandText(run.argv)));
}

// The runs of what one word names. What belongs to no run that is known is put into `*loaded`.
std::vector<RunFiles> RunsOf(const std::vector<std::string>& files, Operators* operators, LoadedRuns* loaded) {
  std::vector<std::string> unknown;
  std::vector<RunFiles> runs = GroupByRun(files, &unknown);
  for (const std::string& file : unknown) {
    Loaded none;  // says what is wrong with it
    LoadTrace(file, operators, &none);
    loaded->damaged = loaded->damaged || none.damaged;
    loaded->empty = loaded->empty || none.empty;
    if (none.files > 0) loaded->runs.push_back({{.job = {}, .files = {file}}, std::move(none.profile)});
  }
  return runs;
}

}  // namespace

std::vector<std::string> PathsOf(const std::vector<char*>& words) { return {words.begin(), words.end()}; }

Loaded LoadTraces(const std::vector<std::string>& paths) {
  Loaded loaded;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = FilesOf(path, &loaded.damaged);
    files.insert(files.end(), found.begin(), found.end());
  }
  Progress progress("reading trace");
  Operators operators;
  for (size_t i = 0; i < files.size(); ++i) {
    progress.Show(i + 1, files.size());
    LoadTrace(files[i], &operators, &loaded);
  }
  return loaded;
}

std::vector<RunFiles> FindRuns(const std::vector<std::string>& paths, LoadedRuns* loaded) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = FilesOf(path, &loaded->damaged);
    files.insert(files.end(), found.begin(), found.end());
  }
  // The same file named twice is one trace.
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  Operators operators;
  return RunsOf(files, &operators, loaded);
}

LoadedRuns LoadRuns(const std::vector<std::string>& paths, FolderMeans folder) {
  LoadedRuns loaded;
  std::vector<std::string> named;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = FilesOf(path, &loaded.damaged);
    if (folder == FolderMeans::kEveryRun || !IsFolder(path)) {
      named.insert(named.end(), found.begin(), found.end());
      continue;
    }
    Operators operators;
    const std::vector<RunFiles> runs = RunsOf(found, &operators, &loaded);
    if (runs.empty()) continue;
    const RunFiles& newest = runs.back();
    if (runs.size() > 1) {
      Complain(absl::StrCat(path, ": the newest of ", Grouped(runs.size()), " runs, ", RunTitle(newest),
                            "; `rfinject runs ", path, "` lists them"));
    }
    named.insert(named.end(), newest.files.begin(), newest.files.end());
  }
  // The same file named twice is one trace; runs stay in the order in which they are named.
  std::map<std::string, size_t> place;
  std::erase_if(named, [&](const std::string& file) { return !place.emplace(file, place.size()).second; });
  Operators unreadable;
  std::vector<RunFiles> runs = RunsOf(named, &unreadable, &loaded);
  const auto first_named = [&](const RunFiles& run) {
    size_t first = named.size();
    for (const std::string& file : run.files) first = std::min(first, place[file]);
    return first;
  };
  std::sort(runs.begin(), runs.end(),
            [&](const RunFiles& a, const RunFiles& b) { return first_named(a) < first_named(b); });
  Progress progress("reading trace");
  size_t done = 0;
  for (const RunFiles& run : runs) {
    Loaded one;
    Operators operators;
    for (const std::string& file : run.files) {
      progress.Show(++done, named.size());
      LoadTrace(file, &operators, &one);
    }
    loaded.damaged = loaded.damaged || one.damaged;
    loaded.empty = loaded.empty || one.empty;
    if (one.files > 0) loaded.runs.push_back({run, std::move(one.profile)});
  }
  return loaded;
}

std::string NewestRunHere(std::string_view verb) {
  const std::string here(kRunsFolder);
  std::string path = LatestRun(here);
  if (path.empty() && IsFolder(here)) path = here + "/";
  if (path.empty()) {
    UsageError(verb, "no trace is named, and there is no " + here + "/ here");
    return {};
  }
  Complain(path);
  return path;
}

}  // namespace rfinject::cli
