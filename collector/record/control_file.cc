#include "collector/record/control_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rfinject {

void ControlFile::Watch(const std::string& trace) { path_ = trace + ".control"; }

ControlFile::Request ControlFile::Take() noexcept {
  if (path_.empty()) return Request::kNone;
  // O_NONBLOCK: a pipe that somebody put there must not hold us up.
  const int fd = open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Request::kNone;
  char text[16];
  ssize_t size = -1;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    size = read(fd, text, sizeof text);
  }
  close(fd);
  if (size < 0) return Request::kNone;
  const std::string_view word(text, static_cast<size_t>(size));
  const Request request = word == "start\n" ? Request::kStart : word == "stop\n" ? Request::kStop : Request::kNone;
  // A file that cannot be removed is read again every second. That does no harm, since the request stays the same.
  if (request != Request::kNone) unlink(path_.c_str());
  return request;
}

}  // namespace rfinject
