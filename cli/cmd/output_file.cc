#include "cli/cmd/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/emit/own_output.h"
#include "cli/trace/files.h"
#include "cli/trace/identity.h"

namespace rfinject::cli {
namespace {

// The name that a signal must not leave behind; empty: none. A command writes one file at a time.
char g_temporary[4096] = "";

void RemoveTemporary(int signal) {
  if (g_temporary[0] != '\0') ::unlink(g_temporary);
  ::raise(signal);  // with the default again (SA_RESETHAND): the caller sees the signal
}

void WatchTemporary(const std::string& path) {
  if (path.size() >= sizeof g_temporary) return;
  struct sigaction action {};
  action.sa_handler = RemoveTemporary;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ}) {
    struct sigaction old;
    if (::sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) ::sigaction(signal, &action, nullptr);
  }
  std::memcpy(g_temporary, path.c_str(), path.size() + 1);
}

std::string Folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Never one of the standard streams', which may be closed: messages would go into the file.
int AboveStandardStreams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

std::string Beginning(const std::string& path) {
  std::array<char, kOwnOutputBytes> bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return {};
  const ssize_t size = ::pread(fd, bytes.data(), bytes.size(), 0);
  ::close(fd);
  return {bytes.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

bool IsAmong(const struct stat& file, const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    struct stat other;
    return ::stat(path.c_str(), &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino;
  });
}

}  // namespace

Replace ReplaceOf(const ParsedOptions& parsed, std::span<const std::string> inputs) {
  Replace replace;
  replace.any = parsed.Has(kForceOption.name);
  for (const std::string& input : inputs) {
    const absl::StatusOr<std::vector<std::string>> found = FindTraces(input);
    if (found.ok()) replace.inputs.insert(replace.inputs.end(), found->begin(), found->end());
  }
  return replace;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    g_temporary[0] = '\0';
  }
}

std::string OutputFile::Open(const std::string& path, const Replace& replace) {
  path_ = path;
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0) {
    if (S_ISLNK(status.st_mode)) return "is a symbolic link; name the file itself";
    if (S_ISDIR(status.st_mode)) return "is a folder";
    if (!S_ISREG(status.st_mode)) {
      fd_ = AboveStandardStreams(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
      return fd_ >= 0 ? std::string() : std::strerror(errno);
    }
    is_input_ = IsAmong(status, replace.inputs);
    const bool merged = (is_input_ || !replace.any) && IsMergedTrace(path);
    if (is_input_ && !(replace.merged_inputs && merged)) return "is one of the inputs, which are never replaced";
    if (!is_input_ && !replace.any && status.st_size > 0 && !merged && !IsOwnOutput(Beginning(path))) {
      return "exists, and is nothing that rfinject can make again; --force replaces it";
    }
  }
  std::string error = replace.named ? std::string() : OpenUnnamed();
  return fd_ >= 0 || !error.empty() ? error : OpenBeside();
}

// A file without a name, where the file system has such. Empty without fd_: it has not.
std::string OutputFile::OpenUnnamed() {
  fd_ = AboveStandardStreams(::open(Folder(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  unnamed_ = fd_ >= 0;
  // Kernels and file systems that do not know the flag answer with one of these.
  if (fd_ >= 0 || errno == EISDIR || errno == EOPNOTSUPP || errno == ENOENT || errno == EINVAL) return {};
  return std::strerror(errno);
}

std::string OutputFile::OpenBeside() {
  std::string temporary = path_ + ".XXXXXX";
  fd_ = AboveStandardStreams(::mkostemp(temporary.data(), O_CLOEXEC));  // 0600
  if (fd_ < 0) return std::strerror(errno);
  temporary_ = temporary;
  WatchTemporary(temporary_);
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

// Gives the unnamed file a name beside path_, since a link never replaces a file, and rename needs a name.
std::string OutputFile::NameUnnamed() {
  char descriptor[64];
  std::snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd_);
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    const std::string name = path_ + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    WatchTemporary(name);
    if (::linkat(AT_FDCWD, descriptor, AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return {};
    }
    const int error = errno;
    g_temporary[0] = '\0';
    if (error != EEXIST) return std::strerror(error);
  }
  return std::strerror(EEXIST);
}

std::string OutputFile::Commit() {
  // Without this a machine that loses power can have the new name with none of the bytes. Pipes cannot, and need not.
  if ((unnamed_ || !temporary_.empty()) && ::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    return std::strerror(errno);
  }
  if (unnamed_) {
    if (std::string error = NameUnnamed(); !error.empty()) return error;
  }
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) return std::strerror(errno);  // where NFS says that the disk is full
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return std::strerror(errno);
  temporary_.clear();
  g_temporary[0] = '\0';
  return {};
}

}  // namespace rfinject::cli
