#include "cli/trace/frames.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/trace/damage.h"

namespace rfinject::cli {

absl::StatusOr<size_t> MemorySource::ReadAt(uint64_t offset, void* out, size_t size) {
  if (offset >= bytes_.size()) return size_t{0};
  const size_t count = std::min<size_t>(size, bytes_.size() - offset);
  if (count > 0) std::memcpy(out, bytes_.data() + offset, count);
  return count;
}

FileSource::~FileSource() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status FileSource::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
    const int error = errno;
    return absl::Status(absl::ErrnoToStatusCode(error), std::strerror(error));
  }
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError("not a regular file");
  size_ = static_cast<uint64_t>(status.st_size);
  return absl::OkStatus();
}

absl::StatusOr<size_t> FileSource::ReadAt(uint64_t offset, void* out, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(fd_, static_cast<char*>(out) + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      return absl::Status(absl::ErrnoToStatusCode(error), absl::StrCat("cannot be read: ", std::strerror(error)));
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

bool FrameReader::Fail(absl::Status status) {
  status_ = std::move(status);
  return false;
}

bool FrameReader::ReadHeader() {
  uint8_t header[wire::kFileHeaderSize];
  const absl::StatusOr<size_t> count = source_.ReadAt(0, header, sizeof header);
  if (!count.ok()) return Fail(DamageAt(0, DamageReason(count.status())));
  if (*count == 0) return Fail(CutAt(0, "the file is empty"));
  const size_t magic = std::min(*count, sizeof wire::kFileMagic);
  if (std::memcmp(header, wire::kFileMagic, magic) != 0) return Fail(DamageAt(0, "not a trace of rfinject"));
  if (*count < sizeof header) return Fail(CutAt(*count, "the file ends inside its header"));
  uint16_t major = 0;
  switch (wire::DecodeFileHeader(header, &major)) {
    case wire::FrameStatus::kOk:
      break;
    case wire::FrameStatus::kNewerFormat:
      return Fail(DamageAt(8, absl::StrCat("written in format ", major, ", this rfinject reads up to format ",
                                           wire::kFormatMajor, "; use a newer rfinject")));
    default:
      return Fail(DamageAt(8, "the file's header is damaged (checksum)"));
  }
  header_ok_ = true;
  offset_ = sizeof header;
  return true;
}

bool FrameReader::Next() {
  if (!status_.ok() || (!header_ok_ && !ReadHeader())) return false;
  uint8_t bytes[wire::kFrameHeaderSize];
  absl::StatusOr<size_t> count = source_.ReadAt(offset_, bytes, sizeof bytes);
  if (!count.ok()) return Fail(DamageAt(offset_, DamageReason(count.status())));
  if (*count == 0) return false;
  if (*count < sizeof bytes) {
    return Fail(CutAt(offset_, "the file ends inside a frame's header, as when its writer was killed"));
  }
  const auto expected = static_cast<uint32_t>(frames_);
  wire::FrameHeader header;
  switch (wire::DecodeFrameHeader(bytes, expected, &header)) {
    case wire::FrameStatus::kOk:
      break;
    case wire::FrameStatus::kTooLong:
      return Fail(DamageAt(offset_ + 4, absl::StrCat("a frame claims ", header.length, " bytes, more than any has")));
    case wire::FrameStatus::kOutOfSequence:
      return Fail(DamageAt(offset_ + 8,
                           absl::StrCat("frame ", header.sequence, " lies where frame ", expected, " should be")));
    default:
      return Fail(DamageAt(offset_, "no frame begins where one should"));
  }
  // Memory grows with what is there, not with what the header claims.
  constexpr size_t kStep = 1u << 20;
  size_t have = 0;
  while (have < header.length) {
    const size_t want = std::min<size_t>(header.length - have, kStep);
    if (capacity_ < have + want) {
      const size_t capacity = std::max(have + want, std::min<size_t>(2 * capacity_, wire::kMaxPayloadSize));
      std::unique_ptr<uint8_t[]> larger(new uint8_t[capacity]);  // which is not filled with zeros first
      if (have > 0) std::memcpy(larger.get(), buffer_.get(), have);
      buffer_ = std::move(larger);
      capacity_ = capacity;
    }
    count = source_.ReadAt(offset_ + sizeof bytes + have, buffer_.get() + have, want);
    if (!count.ok()) return Fail(DamageAt(offset_ + sizeof bytes + have, DamageReason(count.status())));
    have += *count;
    if (*count < want) {
      return Fail(CutAt(offset_, absl::StrCat("the file ends inside a frame (", have, " of ", header.length,
                                              " bytes are there), as when its writer was killed")));
    }
  }
  if (wire::CheckPayload(header, buffer_.get()) != wire::FrameStatus::kOk) {
    return Fail(DamageAt(offset_, "a frame is damaged (checksum)"));
  }
  payload_ = {buffer_.get(), header.length};
  payload_offset_ = offset_ + sizeof bytes;
  offset_ += sizeof bytes + header.length;
  ++frames_;
  return true;
}

}  // namespace rfinject::cli
