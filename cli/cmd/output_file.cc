#include "cli/cmd/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rfinject::cli {

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::string OutputFile::Open(const std::string& path) {
  path_ = path;
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISLNK(status.st_mode)) return "is a symbolic link; name the file itself";
    if (S_ISDIR(status.st_mode)) return "is a folder";
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd_ >= 0 ? std::string() : std::strerror(errno);
  }
  std::string temporary = path + ".XXXXXX";
  fd_ = ::mkostemp(temporary.data(), O_CLOEXEC);  // 0600
  if (fd_ < 0) return std::strerror(errno);
  temporary_ = temporary;
  return {};
}

std::string OutputFile::Write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(fd_, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::strerror(errno);
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return {};
}

std::string OutputFile::Commit() {
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) return std::strerror(errno);  // where NFS says that the disk is full
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return std::strerror(errno);
  temporary_.clear();
  return {};
}

}  // namespace rfinject::cli
