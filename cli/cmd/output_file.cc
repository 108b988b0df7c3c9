#include "cli/cmd/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
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

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Returns a descriptor above those of the standard streams, which may be closed: messages would go into the file.
int AboveStandardStreams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
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

absl::Status OutputFile::Failed(absl::StatusCode code, std::string_view why) const {
  return absl::Status(code, absl::StrFormat("%s: cannot be written: %s", path_, why));
}

absl::Status OutputFile::Failed(int error) const {
  return Failed(absl::ErrnoToStatusCode(error), std::strerror(error));
}

absl::Status OutputFile::Open(const std::string& path, const Replace& replace) {
  path_ = path;
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0) {
    if (S_ISLNK(status.st_mode))
      return Failed(absl::StatusCode::kFailedPrecondition, "is a symbolic link; name the file itself");
    if (S_ISDIR(status.st_mode)) return Failed(absl::StatusCode::kFailedPrecondition, "is a folder");
    if (!S_ISREG(status.st_mode)) {
      fd_ = AboveStandardStreams(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
      return fd_ >= 0 ? absl::OkStatus() : Failed(errno);
    }
    is_input_ = IsAmong(status, replace.inputs);
    if (is_input_ && !(replace.merged_inputs && IsMergedTrace(path))) {
      return Failed(absl::StatusCode::kFailedPrecondition, "is one of the inputs, which are never replaced");
    }
    if (!is_input_ && !replace.any && status.st_size > 0) {
      return Failed(absl::StatusCode::kAlreadyExists, "exists; --force replaces it");
    }
  }
  absl::Status unnamed = replace.named ? absl::OkStatus() : OpenUnnamed();
  return fd_ >= 0 || !unnamed.ok() ? unnamed : OpenBeside();
}

// A file without a name, where the file system has such. No failure and no fd_: it has not.
absl::Status OutputFile::OpenUnnamed() {
  fd_ = AboveStandardStreams(::open(FolderOf(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  unnamed_ = fd_ >= 0;
  // Kernels and file systems that do not know the flag answer with one of these.
  if (fd_ >= 0 || errno == EISDIR || errno == EOPNOTSUPP || errno == ENOENT || errno == EINVAL)
    return absl::OkStatus();
  return Failed(errno);
}

absl::Status OutputFile::OpenBeside() {
  std::string temporary = path_ + ".XXXXXX";
  fd_ = AboveStandardStreams(::mkostemp(temporary.data(), O_CLOEXEC));  // 0600
  if (fd_ < 0) return Failed(errno);
  temporary_ = temporary;
  WatchTemporary(temporary_);
  return absl::OkStatus();
}

absl::Status OutputFile::Write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(fd_, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    write_failed_ = count < 0;
    if (write_failed_) return Failed(errno);
    bytes += count;
    size -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

// Gives the unnamed file a name beside path_, since a link never replaces a file, and rename needs a name.
absl::Status OutputFile::NameUnnamed() {
  char descriptor[64];
  std::snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd_);
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    const std::string name = path_ + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    WatchTemporary(name);
    if (::linkat(AT_FDCWD, descriptor, AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return absl::OkStatus();
    }
    const int error = errno;
    g_temporary[0] = '\0';
    if (error != EEXIST) return Failed(error);
  }
  return Failed(EEXIST);
}

absl::Status OutputFile::Commit(const absl::Status& made) {
  if (!made.ok()) return write_failed_ ? made : Failed(made.code(), std::string(made.message()));
  // Without this a machine that loses power can have the new name with none of the bytes. Pipes cannot, and need not.
  if ((unnamed_ || !temporary_.empty()) && ::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    return Failed(errno);
  }
  if (unnamed_) {
    if (absl::Status named = NameUnnamed(); !named.ok()) return named;
  }
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) return Failed(errno);  // where NFS says that the disk is full
  if (temporary_.empty()) return absl::OkStatus();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Failed(errno);
  temporary_.clear();
  g_temporary[0] = '\0';
  return absl::OkStatus();
}

}  // namespace rfinject::cli
