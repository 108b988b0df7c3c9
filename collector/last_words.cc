#include "collector/last_words.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "collector/process_facts.h"
#include "collector/safe_write.h"

namespace rfinject {
namespace {

bool SomebodyListens(const Settings& settings) noexcept {
  return settings.verbosity > 0 || (settings.verbosity == 0 && isatty(STDERR_FILENO) == 1);
}

bool IsLaunched(const Settings& settings) noexcept { return settings.launched == static_cast<uint64_t>(getpid()); }

// Returns the path as a user in the working folder would write it.
std::string Relative(const std::string& path) {
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return path;
  const std::string folder = std::string(here) + "/";
  return path.starts_with(folder) ? path.substr(folder.size()) : path;
}

// Whether something lies in the folder; true where that cannot be told.
bool HasFiles(const std::string& folder) noexcept {
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return errno != ENOENT;
  bool any = false;
  while (const dirent* entry = readdir(open)) any = any || entry->d_name[0] != '.';
  closedir(open);
  return any;
}

}  // namespace

bool MaySpeakLast(const Settings& settings) noexcept {
  if (settings.launched == 0 || !SomebodyListens(settings)) return false;
  uint32_t rank = 0;
  return RankFromEnvironment(&rank) ? rank == 0 : IsLaunched(settings);
}

std::string TraceWords(const Settings& settings, uint64_t steps, const std::string& path) {
  const std::string shown = Relative(path);
  const std::string measured = std::to_string(steps) + (steps == 1 ? " step" : " steps");
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    return measured + ", but nothing is left of them: " + shown + " was removed while the program ran";
  }
  std::string line = measured + ", trace in " + shown + "; next: rfinject report";
  // Without a name the command takes the newest run below the working folder.
  if (!settings.link_latest || shown.starts_with('/')) line += " " + shown;
  return line;
}

void ExplainNoTrace() noexcept try {
  if (g_trace_begun.load(std::memory_order_relaxed) || std::getenv("RFINJECT_LAUNCHED") == nullptr) return;
  const Settings& settings = GetSettings();
  const bool called = g_called_without_parameters.load(std::memory_order_relaxed) && settings.verbosity >= 0;
  if (settings.disabled || !IsLaunched(settings) || !(called || SomebodyListens(settings))) return;
  // Other processes of the program may have trained; where a pattern put their traces is not known.
  if (!settings.output.ends_with('/') || settings.output.find('%') != std::string::npos || HasFiles(settings.output))
    return;
  WriteLogLine(
      called ? "no trace: the modules that the program called have no parameters, and what has none is taken for no "
               "model; one with a parameter around them is"
      : settings.estimate.empty() && access("/dev/nvidiactl", F_OK) != 0
          ? "no trace, and no NVIDIA GPU here: 'rfinject --estimate A100-SXM4-40GB PROGRAM' runs without one"
          : "no trace: nothing in the program called a model with parameters or stepped an optimizer of PyTorch "
            "(rfinject doctor tells what works here)");
} catch (const std::exception&) {
}

}  // namespace rfinject
