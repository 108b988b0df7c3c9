#include "injector/torch/engine_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>

namespace rfinject {
namespace {

constexpr int kMostLooks = 100;
constexpr long kBetweenLooksNs = 1'000'000;

enum class Engine { kNone, kAtRest, kBusy };

// The fields of /proc/PID/task/TID/stat are "TID (name) state …"; a name may hold anything.
Engine StateOf(const std::string& path) noexcept {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Engine::kNone;  // it has ended
  char text[256];
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  if (size <= 0) return Engine::kNone;
  const std::string_view stat(text, static_cast<size_t>(size));
  const size_t begin = stat.find('('), end = stat.rfind(')');
  if (end == std::string_view::npos || begin >= end || end + 2 >= stat.size()) return Engine::kNone;
  if (!stat.substr(begin + 1).starts_with("pt_autograd_")) return Engine::kNone;
  return stat[end + 2] == 'S' ? Engine::kAtRest : Engine::kBusy;
}

Engine Look(const std::string& tasks) {
  DIR* const folder = opendir(tasks.c_str());
  if (folder == nullptr) return Engine::kNone;
  Engine all = Engine::kNone;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    const Engine one = StateOf(tasks + "/" + entry->d_name + "/stat");
    if (one == Engine::kBusy || all == Engine::kNone) all = one;
    if (all == Engine::kBusy) break;
  }
  closedir(folder);
  return all;
}

}  // namespace

// A thread that waits for a lock looks like one that waits for work, so it has to be seen at rest twice.
int WaitForEngineThreadsIn(const std::string& tasks) noexcept try {
  int at_rest = 0;
  for (int looks = 1; looks <= kMostLooks; ++looks) {
    const Engine engine = Look(tasks);
    if (engine == Engine::kNone) return looks;
    at_rest = engine == Engine::kAtRest ? at_rest + 1 : 0;
    if (at_rest == 2) return looks;
    const timespec pause{0, kBetweenLooksNs};
    nanosleep(&pause, nullptr);
  }
  return kMostLooks;
} catch (const std::exception&) {  // no memory
  return 0;
}

void WaitForEngineThreads() noexcept { WaitForEngineThreadsIn("/proc/self/task"); }

}  // namespace rfinject
