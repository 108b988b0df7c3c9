#include "cli/cmd/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rfinject::cli {

bool ReadUpTo(int fd, size_t most, std::string* text) {
  char part[8192];
  while (text->size() < most) {
    const ssize_t size = ::read(fd, part, std::min(sizeof part, most - text->size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    if (size == 0) return true;
    text->append(part, static_cast<size_t>(size));
  }
  return true;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool read = fd >= 0 && ReadUpTo(fd, SIZE_MAX, &text);
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!read) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(error)));
  return text;
}

}  // namespace rfinject::cli
