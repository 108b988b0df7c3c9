#include "collector/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "collector/output_path.h"
#include "collector/safe_write.h"
#include "proto/wire/framing.h"

namespace rfinject {
namespace {

// Out of the way of programs that expect to get, or to print, small descriptor numbers.
constexpr int kLowestDescriptor = 250;

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
  fd_ = fd;
  path_ = std::move(path);
  return Begin(error);
}

bool TraceFile::Adopt(int fd, std::string* error) {
  fd_ = fd;
  path_ = "descriptor " + std::to_string(fd);
  return Begin(error);
}

bool TraceFile::Begin(std::string* error) {
  struct stat at {};
  if (!StatDescriptor(fd_, &at)) {
    *error = path_ + ": " + std::strerror(errno);
    Close();
    return false;
  }
  device_ = at.st_dev;
  inode_ = at.st_ino;
  uint8_t header[wire::kFileHeaderSize];
  wire::EncodeFileHeader(header);
  return Write(header, sizeof header, error);
}

bool TraceFile::IsStillOurs() const noexcept {
  struct stat at {};
  return fd_ >= 0 && StatDescriptor(fd_, &at) && at.st_dev == device_ && at.st_ino == inode_;
}

bool TraceFile::Write(const void* data, size_t size, std::string* error) {
  if (!IsStillOurs()) {
    fd_ = -1;  // not ours to close
    *error = path_ + ": the program closed the trace's file descriptor";
    return false;
  }
  SignalShield shield;
  size_t written = 0;
  const int number = WriteAll(fd_, data, size, &written);
  if (number == 0) {
    size_ += size;
    return true;
  }
  // Half a frame at the end would be read as damage. Where cutting fails too, that is what it is.
  if (written > 0 && ftruncate(fd_, static_cast<off_t>(size_)) != 0) errno = number;
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
  if (IsStillOurs()) close(fd_);
  fd_ = -1;
}

void TraceFile::AbandonInForkedChild() noexcept {
  if (IsStillOurs()) close(fd_);
  new (this) TraceFile;  // path_'s memory is leaked: it may be half-written
}

}  // namespace rfinject
