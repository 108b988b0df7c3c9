#include "cli/cmd/load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
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

// Adds one trace; says what is wrong with it.
void LoadTrace(const std::string& path, Origins* origins, Loaded* loaded) {
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
  if (const absl::Status status = loaded->profile.Merge(std::move(contents.profile)); !status.ok()) {
    return complain("not added: ", status.message());
  }
  if (anything) ++loaded->files;
}

// The order in which files are read. Where two share a trace, the file that holds more traces comes first, then the
// longer one: a copy that was taken while the process ran, or a merged trace beside its parts, is then the one that
// is left out, whatever the order on the command line.
std::vector<std::string> InOrder(std::vector<std::string> files) {
  if (files.size() < 2) return files;
  std::vector<std::pair<TraceIdentity, std::string>> known;
  std::set<std::string> ids;
  bool again = false;
  for (std::string& file : files) {
    known.emplace_back(IdentityOf(file), std::move(file));
    for (const std::string& id : known.back().first.ids) again = !ids.insert(id).second || again;
  }
  if (again) {
    std::stable_sort(known.begin(), known.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.ids.size(), a.first.size) > std::pair(b.first.ids.size(), b.first.size);
    });
  }
  for (size_t i = 0; i < files.size(); ++i) files[i] = std::move(known[i].second);
  return files;
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
  files = InOrder(std::move(files));
  Origins origins;
  Progress progress("reading trace");
  for (size_t i = 0; i < files.size(); ++i) {
    progress.Show(i + 1, files.size());
    LoadTrace(files[i], &origins, &loaded);
  }
  return loaded;
}

}  // namespace rfinject::cli
