#include "cli/import/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rfinject::cli {
namespace {
// What is read at once. It is copied and looked through while it is in the processor's second-level cache.
constexpr size_t kChunk = 256u << 10;
constexpr size_t kBlock = LineReader::kMaxLine + kChunk;
}  // namespace

LineReader::LineReader(const std::string& path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    error_ = path + ": " + std::strerror(errno);
    return;
  }
  struct stat info {};
  if (fstat(fd_, &info) == 0 && S_ISDIR(info.st_mode)) {
    error_ = path + ": is a folder";
    close(fd_);
    fd_ = -1;
    return;
  }
  block_.reset(new char[kBlock]);  // not cleared: what no line needs is never resident
}

LineReader::~LineReader() {
  if (fd_ >= 0) close(fd_);
}

void LineReader::Rewind() {
  if (fd_ < 0) return;
  if (lseek(fd_, 0, SEEK_SET) < 0) error_ = std::string("cannot read twice: ") + std::strerror(errno);
  begin_ = end_ = 0;
  at_end_ = skipping_ = false;
  line_number_ = offset_ = 0;
}

// Moves what is left to the front and reads more behind it; false when nothing came.
bool LineReader::Fill() {
  if (at_end_ || fd_ < 0) return false;
  std::memmove(block_.get(), block_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  for (;;) {
    const ssize_t n = read(fd_, block_.get() + end_, std::min(kChunk, kBlock - end_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error_ = std::strerror(errno);
    if (n <= 0) {
      at_end_ = true;
      return false;
    }
    end_ += static_cast<size_t>(n);
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
      if (length == 0 || !error_.empty()) return false;
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
