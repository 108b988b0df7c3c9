#include "cli/cmd/load.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "cli/cmd/options.h"
#include "cli/reader/trace_files.h"
#include "cli/reader/trace_reader.h"
#include "cli/report/units.h"

namespace rfinject::cli {

using std::chrono::steady_clock;

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1), start_(steady_clock::now()), shown_(start_) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void Progress::Show(size_t done, size_t all) {
  if (!terminal_) return;
  const auto now = steady_clock::now();
  if (now - start_ < std::chrono::seconds(1) || now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  visible_ = true;
  std::fprintf(stderr, "\r%s %zu of %zu\033[K", what_.c_str(), done, all);
}

Loaded LoadTraces(const std::vector<char*>& paths) {
  Loaded loaded;
  std::vector<std::string> files;
  for (const char* path : paths) {
    const std::string error = FindTraces(path, &files);
    if (error.empty()) continue;
    loaded.damaged = true;
    Complain(std::string(path) + ": " + error);
  }
  Progress progress("reading trace");
  for (size_t i = 0; i < files.size(); ++i) {
    progress.Show(i + 1, files.size());
    const std::string& path = files[i];
    FileSource source;
    if (const std::string error = source.Open(path); !error.empty()) {
      loaded.damaged = true;
      Complain(path + ": cannot be read: " + error);
      continue;
    }
    TraceContents contents = ReadTrace(source);
    if (contents.damage) {
      loaded.damaged = true;
      std::string text = path + ": byte " + std::to_string(contents.damage->offset) + ": " + contents.damage->reason;
      if (contents.usable) {
        text += contents.chunks == 0   ? "; nothing before it can be used"
                : contents.chunks == 1 ? "; the chunk before it is used"
                                       : "; the " + Grouped(contents.chunks) + " chunks before it are used";
      }
      Complain(text);
    }
    if (!contents.usable) continue;
    const bool anything = !contents.profile.runs.empty();
    if (!anything && !contents.damage) {
      loaded.empty = true;
      Complain(path + ": byte " + std::to_string(source.size()) +
               ": the file ends before it says anything; its process ended before it measured, or has only begun");
    }
    if (const std::string error = loaded.profile.Merge(std::move(contents.profile)); !error.empty()) {
      loaded.damaged = true;
      Complain(path + ": not added: " + error);
      continue;
    }
    if (anything) ++loaded.files;
  }
  return loaded;
}

}  // namespace rfinject::cli
