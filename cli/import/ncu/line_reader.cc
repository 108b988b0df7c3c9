#include "cli/import/ncu/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {
// What is read at once. It is copied and looked through while it is in the processor's second-level cache.
constexpr size_t kChunk = 64u << 10;
constexpr size_t kBlock = LineReader::kMaxLine + kChunk;
}  // namespace

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::Status(absl::ErrnoToStatusCode(errno), absl::StrCat(path, ": ", std::strerror(errno)));
  std::unique_ptr<LineReader> reader(new LineReader(path, fd));
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder"));
  }
  // Of a pipe nothing may be read here.
  char magic[2] = {};
  const bool packed = S_ISREG(info.st_mode) && pread(fd, magic, sizeof magic, 0) == sizeof magic &&
                      std::string_view(magic, sizeof magic) == "\x1f\x8b";
  if (packed) {
    absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::Open(path);
    if (!stream.ok())
      return absl::Status(stream.status().code(), absl::StrCat(path, ": ", stream.status().message()));
    reader->packed_ = *std::move(stream);
  }
  return reader;
}

// The block is not cleared: what no line needs is never resident.
LineReader::LineReader(std::string name, int fd) : name_(std::move(name)), fd_(fd), block_(new char[kBlock]) {}

LineReader::LineReader(std::string name, std::string_view bytes)
    : name_(std::move(name)), bytes_(bytes), block_(new char[kBlock]) {}

LineReader::~LineReader() {
  if (fd_ >= 0) close(fd_);
}

void LineReader::Rewind() {
  if (fd_ >= 0 && lseek(fd_, 0, SEEK_SET) < 0) {
    status_ = absl::Status(absl::ErrnoToStatusCode(errno),
                           absl::StrCat(name_, ": cannot read twice: ", std::strerror(errno)));
  }
  if (packed_ != nullptr) {
    absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::Open(name_);
    if (!stream.ok()) {
      status_ = stream.status();
    } else {
      packed_ = *std::move(stream);
    }
  }
  bytes_read_ = 0;
  begin_ = end_ = 0;
  at_end_ = skipping_ = false;
  line_number_ = offset_ = 0;
}

ssize_t LineReader::ReadSome(char* into, size_t most) {
  if (packed_ == nullptr) {
    return fd_ >= 0 ? read(fd_, into, most) : static_cast<ssize_t>(bytes_.copy(into, most, bytes_read_));
  }
  const size_t got = packed_->Read(into, most);
  if (got == 0 && !packed_->status().ok()) {
    status_ = absl::Status(packed_->status().code(),
                           absl::StrCat(name_, ": behind line ", line_number_, ": ", packed_->status().message()));
  }
  return static_cast<ssize_t>(got);
}

// Moves what is left to the front and reads more behind it; false when nothing came.
bool LineReader::Fill() {
  if (at_end_ || !status_.ok()) return false;
  std::memmove(block_.get(), block_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const size_t most = std::min(kChunk, kBlock - end_);
  for (;;) {
    const ssize_t n = ReadSome(block_.get() + end_, most);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status_ = absl::Status(absl::ErrnoToStatusCode(errno),
                             absl::StrCat(name_, ": behind line ", line_number_, ": ", std::strerror(errno)));
    }
    if (n <= 0) {
      at_end_ = true;
      return false;
    }
    end_ += static_cast<size_t>(n);
    bytes_read_ += static_cast<size_t>(n);
    return true;
  }
}

bool LineReader::Next(std::string_view prefix, std::string_view* line, bool* begins) {
  size_t searched = 0;  // bytes after begin_ that hold no line end
  if (begins != nullptr) {
    *begins = !skipping_ && end_ - begin_ > prefix.size() &&
              std::memcmp(block_.get() + begin_, prefix.data(), prefix.size()) == 0;
    if (*begins) searched = prefix.size();
  }
  for (;;) {
    const char* start = block_.get() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(start + searched, '\n', end_ - begin_ - searched));
    const size_t length = newline != nullptr ? static_cast<size_t>(newline - start) : end_ - begin_;
    if (newline == nullptr && length <= kMaxLine) {
      searched = length;
      if (Fill()) continue;
      if (length == 0 || !status_.ok()) return false;
      start = block_.get() + begin_;  // the last line has no line end
    }
    const bool cut = newline == nullptr && !at_end_;
    const bool rest = skipping_;
    *line = std::string_view(start, length > kMaxLine ? kMaxLine : length);
    if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
    const size_t taken = length + (newline != nullptr ? 1 : 0);
    begin_ += taken;
    offset_ += taken;
    skipping_ = cut;
    searched = 0;
    if (rest) continue;
    ++line_number_;
    return true;
  }
}

}  // namespace rfinject::cli
