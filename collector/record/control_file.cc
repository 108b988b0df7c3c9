#include "collector/record/control_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rfinject {
namespace {

using Request = ControlFile::Request;

constexpr std::string_view kStartLine = "start\n";
constexpr std::string_view kStopLine = "stop\n";

// What the file asks for, given the beginning of its text. Part of a word, as a shell leaves it for a moment when it
// writes by itself, is none yet.
Request RequestIn(std::string_view text) noexcept {
  if (text == kStartLine) return Request::kStart;
  if (text == kStopLine) return Request::kStop;
  const bool may_grow = kStartLine.substr(0, text.size()) == text || kStopLine.substr(0, text.size()) == text;
  return may_grow ? Request::kNone : Request::kRefused;
}

// Removes the name, if it is still that of the file that was looked at. lstat is a symbol of glibc from 2.33 on only.
void Remove(const char* path, const struct stat& seen) noexcept {
  struct stat now;
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == seen.st_dev &&
      now.st_ino == seen.st_ino)
    unlink(path);
}

}  // namespace

void ControlFile::Watch(const std::string& trace) { path_ = trace + ".control"; }

ControlFile::Request ControlFile::Take() noexcept {
  if (path_.empty()) return Request::kNone;
  // O_NONBLOCK: a pipe that somebody put there must not hold us up.
  const int fd = open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Request::kNone;
  Request request = Request::kNone;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
    char text[16];
    const ssize_t size = read(fd, text, sizeof text);
    if (size >= 0) request = RequestIn(std::string_view(text, static_cast<size_t>(size)));
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) request = Request::kRefused;
    // A file that cannot be removed is read again every second. That does no harm, since the request stays the same.
    if (request != Request::kNone) Remove(path_.c_str(), status);
  }
  close(fd);
  return request;
}

}  // namespace rfinject
