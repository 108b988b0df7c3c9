#include "collector/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace rfinject {

std::string ReadFile(const char* path, size_t limit) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  while (text.size() < limit) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  if (text.size() > limit) text.resize(limit);
  return text;
}

}  // namespace rfinject
