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
#include "cli/emit/code_points.h"
#include "cli/emit/text_grid.h"
#include "cli/import/file_name.h"
#include "cli/report/run_list.h"
#include "cli/report/units.h"
#include "cli/trace/files.h"
#include "cli/trace/frames.h"
#include "cli/trace/identity.h"
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

// Which file each trace that was added came from, by the trace's id.
using Origins = std::map<std::string, std::string>;

// A digest of the frames (FNV-1a, 64 bits) for traces without an id: versions before ids, and imports, of which the
// same again is the same to the last byte.
std::string ContentId(ByteSource& source) {
  uint64_t hash = 0xcbf29ce484222325;
  FrameReader frames(source);
  while (frames.Next()) {
    for (const uint8_t byte : frames.payload()) hash = (hash ^ byte) * 0x100000001b3;
  }
  return frames.frames() == 0 ? std::string() : absl::StrFormat("content-%016x", hash);
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
void LoadTrace(const std::string& path, Origins* origins, Operators* operators, Loaded* loaded) {
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
  std::set<std::string>& ids = contents.profile.trace_ids;
  if (ids.empty()) {
    std::string id = ContentId(source);
    if (!id.empty()) ids.insert(std::move(id));
  }
  // Files that hold more traces come first (InOrder), so a file that shares one mostly holds nothing else.
  std::string shared_with;
  size_t shared = 0;
  for (const std::string& id : ids) {
    const auto known = origins->find(id);
    if (known == origins->end()) continue;
    if (shared++ == 0) shared_with = known->second;
  }
  if (shared > 0 && shared == ids.size()) {
    return Complain(absl::StrCat(path, ": not counted again: what is in it is in ", shared_with));
  }
  if (shared > 0) {
    return complain("not added: ", shared, " of its ", ids.size(), " traces are in ", shared_with,
                    ", and its sums cannot be taken apart; name the traces that it was merged from");
  }
  for (const std::string& id : ids) origins->emplace(id, path);
  operators->Note(path, contents.profile);
  if (const absl::Status status = loaded->profile.Merge(std::move(contents.profile)); !status.ok()) {
    return complain("not added: ", status.message());
  }
  if (anything) ++loaded->files;
}

// The order in which files are read. Where two share a trace, the file that holds more traces comes first, then the
// longer one: a copy that was taken while the process ran, or a merged trace beside its parts, is then the one that
// is left out, whatever the order on the command line.
std::vector<std::string> InOrder(std::vector<std::string> files, TraceBeginnings* beginnings) {
  if (files.size() < 2) return files;
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

std::vector<std::string> FilesOf(const std::string& path, bool* damaged) {
  if (const std::string remedy = OtherProfileRemedy(path); !remedy.empty()) {
    *damaged = true;
    Complain(absl::StrCat(path, ": ", remedy));
    return {};
  }
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
std::vector<RunFiles> RunsOf(const std::vector<std::string>& files, TraceBeginnings* beginnings, LoadedRuns* loaded) {
  std::vector<std::string> unknown;
  std::vector<RunFiles> runs = GroupByRun(files, beginnings, &unknown);
  for (const std::string& file : unknown) {
    Loaded none;  // says what is wrong with it
    Origins origins;
    Operators operators;
    LoadTrace(file, &origins, &operators, &none);
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
  TraceBeginnings beginnings;
  files = InOrder(std::move(files), &beginnings);
  Origins origins;
  Progress progress("reading trace");
  Operators operators;
  for (size_t i = 0; i < files.size(); ++i) {
    progress.Show(i + 1, files.size());
    LoadTrace(files[i], &origins, &operators, &loaded);
  }
  return loaded;
}

std::vector<std::string> FullestFirst(std::vector<std::string> files) {
  TraceBeginnings beginnings;
  return InOrder(std::move(files), &beginnings);
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
  TraceBeginnings beginnings;
  return RunsOf(files, &beginnings, loaded);
}

LoadedRuns LoadRuns(const std::vector<std::string>& paths, FolderMeans folder) {
  LoadedRuns loaded;
  TraceBeginnings beginnings;
  std::vector<std::string> named;
  for (const std::string& path : paths) {
    const std::vector<std::string> found = FilesOf(path, &loaded.damaged);
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
  // Runs stay in the order in which they are named; what is named twice is said where it is read.
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
  struct Target {
    Operators operators;
    Loaded loaded;
  };
  std::vector<Target> targets(runs.size());
  std::map<std::string, Target*> target_of;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& file : runs[i].files) target_of[file] = &targets[i];
  }
  Origins origins;
  Progress progress("reading trace");
  size_t done = 0;
  for (const std::string& file : InOrder(named, &beginnings)) {
    progress.Show(++done, named.size());
    const auto target = target_of.find(file);
    if (target != target_of.end()) LoadTrace(file, &origins, &target->second->operators, &target->second->loaded);
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    Loaded& one = targets[i].loaded;
    loaded.damaged = loaded.damaged || one.damaged;
    loaded.empty = loaded.empty || one.empty;
    if (one.files > 0) loaded.runs.push_back({runs[i], std::move(one.profile)});
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
