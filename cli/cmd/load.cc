#include "cli/cmd/load.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/cmd/options.h"
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

// Adds one trace; says what is wrong with it.
void LoadTrace(const std::string& path, Loaded* loaded) {
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
  if (const absl::Status status = loaded->profile.Merge(std::move(contents.profile)); !status.ok()) {
    return complain("not added: ", status.message());
  }
  if (anything) ++loaded->files;
}

}  // namespace

Loaded LoadTraces(const std::vector<char*>& paths) {
  Loaded loaded;
  std::vector<std::string> files;
  for (const char* path : paths) {
    absl::StatusOr<std::vector<std::string>> found = FindTraces(path);
    if (found.ok()) {
      files.insert(files.end(), found->begin(), found->end());
    } else {
      loaded.damaged = true;
      Complain(absl::StrCat(path, ": ", found.status().message()));
    }
  }
  Progress progress("reading trace");
  for (size_t i = 0; i < files.size(); ++i) {
    progress.Show(i + 1, files.size());
    LoadTrace(files[i], &loaded);
  }
  return loaded;
}

}  // namespace rfinject::cli
