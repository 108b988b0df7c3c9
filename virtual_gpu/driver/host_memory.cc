#include "virtual_gpu/driver/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace rfinject::virtual_gpu {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

// The beginning of a file, empty where it cannot be read.
std::string Read(const char* path) {
  std::string text(8192, '\0');
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file >= 0 ? read(file, text.data(), text.size()) : -1;
  if (file >= 0) close(file);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return text;
}

uint64_t Number(std::string_view text) {
  uint64_t number = 0;
  const size_t first = std::min(text.find_first_not_of(": \t"), text.size());
  const auto parsed = std::from_chars(text.data() + first, text.data() + text.size(), number);
  return parsed.ec == std::errc() ? number : kUnknown;
}

// What a control group has left. What it uses as a cache, the field `cache` of the file `stat`, can be given back.
uint64_t Left(const char* limit, const char* used, const char* stat, std::string_view cache) {
  const uint64_t most = Number(Read(limit));
  const uint64_t taken = Number(Read(used));
  if (most == kUnknown || taken == kUnknown) return kUnknown;
  const uint64_t returned = NumberOf(Read(stat), cache);
  const uint64_t held = returned != kUnknown && returned < taken ? taken - returned : taken;
  return most > held ? most - held : 0;
}

}  // namespace

uint64_t NumberOf(std::string_view text, std::string_view name) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with(name) && line.size() > name.size() &&
        (line[name.size()] == ' ' || line[name.size()] == ':')) {
      return Number(line.substr(name.size()));
    }
    begin = end + 1;
  }
  return kUnknown;
}

uint64_t HostBytesLeft() {
  const uint64_t kib = NumberOf(Read("/proc/meminfo"), "MemAvailable");
  uint64_t left = kib != kUnknown ? kib * 1024 : kUnknown;
  // Control groups, version 2 and version 1, as a container sees its own.
  left = std::min(left, Left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                             "/sys/fs/cgroup/memory.stat", "inactive_file"));
  left = std::min(left,
                  Left("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                       "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"));
  if (left == kUnknown) return left;
  // Kernels of the CPU take memory for their results before these are copied to the device.
  constexpr uint64_t kMostSpared = 1 << 30;
  return left - std::min(left / 8, kMostSpared);
}

}  // namespace rfinject::virtual_gpu
