#include "cli/reader/frames.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rfinject::cli {

ptrdiff_t MemorySource::ReadAt(uint64_t offset, void* out, size_t size, std::string*) {
  if (offset >= bytes_.size()) return 0;
  const size_t count = std::min<size_t>(size, bytes_.size() - offset);
  if (count > 0) std::memcpy(out, bytes_.data() + offset, count);
  return static_cast<ptrdiff_t>(count);
}

FileSource::~FileSource() {
  if (fd_ >= 0) ::close(fd_);
}

std::string FileSource::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return std::strerror(errno);
  struct stat status;
  if (::fstat(fd_, &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  size_ = static_cast<uint64_t>(status.st_size);
  return {};
}

ptrdiff_t FileSource::ReadAt(uint64_t offset, void* out, size_t size, std::string* error) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(fd_, static_cast<char*>(out) + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      *error = std::strerror(errno);
      return -1;
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ptrdiff_t>(done);
}

bool FrameReader::Fail(uint64_t offset, std::string reason) {
  damage_ = Damage{offset, std::move(reason)};
  return false;
}

bool FrameReader::ReadHeader() {
  uint8_t header[wire::kFileHeaderSize];
  std::string error;
  const ptrdiff_t count = source_.ReadAt(0, header, sizeof header, &error);
  if (count < 0) return Fail(0, "cannot be read: " + error);
  if (count == 0) return Fail(0, "the file is empty");
  const size_t magic = std::min(static_cast<size_t>(count), sizeof wire::kFileMagic);
  if (std::memcmp(header, wire::kFileMagic, magic) != 0) return Fail(0, "not a trace of rfinject");
  if (static_cast<size_t>(count) < sizeof header) {
    return Fail(static_cast<uint64_t>(count), "the file ends inside its header");
  }
  uint16_t major = 0;
  switch (wire::DecodeFileHeader(header, &major)) {
    case wire::FrameStatus::kOk:
      break;
    case wire::FrameStatus::kNewerFormat:
      return Fail(8, "written in format " + std::to_string(major) + ", this rfinject reads up to format " +
                         std::to_string(wire::kFormatMajor) + "; use a newer rfinject");
    default:
      return Fail(8, "the file's header is damaged (checksum)");
  }
  header_ok_ = true;
  offset_ = sizeof header;
  return true;
}

bool FrameReader::Next() {
  if (damage_ || (!header_ok_ && !ReadHeader())) return false;
  uint8_t bytes[wire::kFrameHeaderSize];
  std::string error;
  ptrdiff_t count = source_.ReadAt(offset_, bytes, sizeof bytes, &error);
  if (count < 0) return Fail(offset_, "cannot be read: " + error);
  if (count == 0) return false;
  if (static_cast<size_t>(count) < sizeof bytes) {
    return Fail(offset_, "the file ends inside a frame's header, as when its writer was killed");
  }
  wire::FrameHeader header;
  switch (wire::DecodeFrameHeader(bytes, static_cast<uint32_t>(frames_), &header)) {
    case wire::FrameStatus::kOk:
      break;
    case wire::FrameStatus::kTooLong:
      return Fail(offset_ + 4, "a frame claims " + std::to_string(header.length) + " bytes, more than any has");
    case wire::FrameStatus::kOutOfSequence:
      return Fail(offset_ + 8, "frame " + std::to_string(header.sequence) + " lies where frame " +
                                   std::to_string(static_cast<uint32_t>(frames_)) + " should be");
    default:
      return Fail(offset_, "no frame begins where one should");
  }
  // Memory grows with what is there, not with what the header claims.
  constexpr size_t kStep = 1u << 20;
  size_t have = 0;
  while (have < header.length) {
    const size_t want = std::min<size_t>(header.length - have, kStep);
    if (buffer_.size() < have + want) buffer_.resize(have + want);
    count = source_.ReadAt(offset_ + sizeof bytes + have, buffer_.data() + have, want, &error);
    if (count < 0) return Fail(offset_ + sizeof bytes + have, "cannot be read: " + error);
    have += static_cast<size_t>(count);
    if (static_cast<size_t>(count) < want) {
      return Fail(offset_, "the file ends inside a frame (" + std::to_string(have) + " of " +
                               std::to_string(header.length) + " bytes are there), as when its writer was killed");
    }
  }
  if (wire::CheckPayload(header, buffer_.data()) != wire::FrameStatus::kOk) {
    return Fail(offset_, "a frame is damaged (checksum)");
  }
  payload_ = {buffer_.data(), header.length};
  payload_offset_ = offset_ + sizeof bytes;
  offset_ += sizeof bytes + header.length;
  ++frames_;
  return true;
}

}  // namespace rfinject::cli
