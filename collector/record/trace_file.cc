#include "collector/record/trace_file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "collector/output_path.h"
#include "collector/safe_write.h"
#include "proto/wire/framing.h"

namespace rfinject {
namespace {

// High enough to be out of the way of programs that expect to get, or to print, small descriptor numbers.
constexpr int kLowestDescriptor = 250;

// Whether the file is on a disk of this machine, or in its memory, as far as the file system tells (linux/magic.h).
bool IsLocal(int fd) noexcept {
  constexpr uint32_t kZfs = 0x2fc12fc1;  // not in the header
  struct statfs at {};
  if (fstatfs(fd, &at) != 0) return false;
  switch (static_cast<uint32_t>(at.f_type)) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case kZfs:
      return true;
    default:
      return false;
  }
}

bool StatDescriptor(int fd, struct stat* out) noexcept { return syscall(SYS_fstat, fd, out) == 0; }

}  // namespace

bool TraceFile::Open(const std::string& pattern, std::string* error) {
  std::string path = ExpandOutput(pattern, CurrentOutputNames());
  int fd = CreateOutputFile(&path, error);
  if (fd < 0) return false;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (moved >= 0) {
    close(fd);
    fd = moved;
  }
  path_ = std::move(path);
  if (!Begin(fd, error)) return false;
  if (moved < 0) KeepNoDescriptor();
  return true;
}

void TraceFile::KeepNoDescriptor() noexcept try {
  const int fd = fd_.load(std::memory_order_relaxed);
  char absolute[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), absolute, sizeof absolute);
  if (size <= 0 || static_cast<size_t>(size) == sizeof absolute || absolute[0] != '/') return;
  reopen_.assign(absolute, static_cast<size_t>(size));
  fd_.store(-1, std::memory_order_release);
  close(fd);
} catch (...) {
  reopen_.clear();
}

bool TraceFile::Adopt(int fd, std::string* error) {
  path_ = "descriptor " + std::to_string(fd);
  return Begin(fd, error);
}

bool TraceFile::Begin(int fd, std::string* error) {
  struct stat at {};
  if (!StatDescriptor(fd, &at)) {
    *error = path_ + ": " + std::strerror(errno);
    return false;
  }
  device_ = at.st_dev;
  inode_ = at.st_ino;
  may_hang_ = !S_ISREG(at.st_mode) || !IsLocal(fd);
  fd_.store(fd, std::memory_order_release);
  open_.store(true, std::memory_order_release);
  uint8_t header[wire::kFileHeaderSize];
  wire::EncodeFileHeader(header);
  return Write(header, sizeof header, error);
}

bool TraceFile::IsStillOurs(int fd) const noexcept {
  struct stat at {};
  return fd >= 0 && StatDescriptor(fd, &at) && at.st_dev == device_ && at.st_ino == inode_;
}

bool TraceFile::Write(const void* data, size_t size, std::string* error) {
  int fd = fd_.load(std::memory_order_relaxed);
  const bool reopened = fd < 0 && !reopen_.empty();
  if (reopened) fd = open(reopen_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (reopened && fd < 0) {
    *error = reopen_ + ": cannot be opened again: " + std::strerror(errno);
    open_.store(false, std::memory_order_release);
    return false;
  }
  if (!IsStillOurs(fd)) {
    *error = path_ + (reopened ? ": another file has taken the trace's name"
                               : ": the program closed the trace's file descriptor");
    if (reopened) close(fd);
    fd_.store(-1, std::memory_order_relaxed);  // not ours to close
    open_.store(false, std::memory_order_release);
    return false;
  }
  SignalShield shield;
  size_t written = 0;
  const int number = WriteAll(fd, data, size, &written);
  if (number == 0) {
    size_ += size;
    if (reopened) close(fd);
    return true;
  }
  // The file is cut because half a frame at the end would be read as damage. Where cutting also fails, it is damage.
  if (written > 0 && ftruncate(fd, static_cast<off_t>(size_)) != 0) errno = number;
  if (reopened) close(fd);
  Close();
  *error = path_ + ": " + std::strerror(number);
  return false;
}

bool TraceFile::WriteFrame(uint8_t* frame, size_t size, std::string* error) {
  const size_t length = size - wire::kFrameHeaderSize;
  uint8_t header[wire::kFrameHeaderSize];
  wire::EncodeFrameHeader(frame + wire::kFrameHeaderSize, static_cast<uint32_t>(length), sequence_, header);
  std::memcpy(frame, header, sizeof header);
  if (!Write(frame, size, error)) return false;
  ++sequence_;
  return true;
}

void TraceFile::Close() noexcept {
  open_.store(false, std::memory_order_release);
  const int fd = fd_.exchange(-1, std::memory_order_relaxed);
  if (IsStillOurs(fd)) close(fd);
}

// This is the raw system call: a race detector's wrapper would report the parent's thread that wrote to this
// descriptor.
void TraceFile::CloseInForkedChild() const noexcept {
  const int fd = fd_.load(std::memory_order_acquire);
  if (IsStillOurs(fd)) syscall(SYS_close, fd);
}

}  // namespace rfinject
