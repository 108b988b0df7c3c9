#include "cli/import/torch/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kGzipMagic("\x1f\x8b", 2), kZipMagic("PK\x03\x04", 4);

uint32_t Little(const unsigned char* bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::OpenAsItIs(const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::Status(absl::ErrnoToStatusCode(errno), std::strerror(errno));
  std::unique_ptr<ByteStream> stream(new ByteStream);
  stream->fd_ = fd;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return absl::InvalidArgumentError("is no regular file");
  stream->buffer_.reset(new char[kBuffer]);
  return stream;
}

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<ByteStream>> stream = OpenAsItIs(path);
  if (!stream.ok()) return stream;
  if (absl::Status status = (*stream)->Begin(); !status.ok()) return status;
  return stream;
}

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::OfBytes(std::string_view bytes) {
  std::unique_ptr<ByteStream> stream(new ByteStream);
  stream->memory_ = bytes;
  stream->buffer_.reset(new char[kBuffer]);
  if (absl::Status status = stream->Begin(); !status.ok()) return status;
  return stream;
}

ByteStream::~ByteStream() {
  if (inflating_) inflateEnd(&zlib_);
  if (fd_ >= 0) close(fd_);
}

absl::Status ByteStream::Begin() {
  Fill();
  const std::string_view first(buffer_.get() + begin_, end_ - begin_);
  if (first.starts_with(kGzipMagic)) packing_ = Packing::kGzip;
  if (first.starts_with(kZipMagic)) {
    if (const absl::Status status = SkipZipHeader(); !status.ok()) return status;
  }
  if (packing_ == Packing::kNone) return status_;
  constexpr int kWithGzipHeader = 16;
  if (inflateInit2(&zlib_, packing_ == Packing::kGzip ? kWithGzipHeader + MAX_WBITS : -MAX_WBITS) != Z_OK) {
    return absl::ResourceExhaustedError("zlib cannot begin");
  }
  inflating_ = true;
  return status_;
}

// PKWARE's APPNOTE.TXT, 4.3.7: the header of the first file, whose name and extra field follow it.
absl::Status ByteStream::SkipZipHeader() {
  constexpr size_t kHeader = 30;
  if (end_ - begin_ < kHeader) return absl::InvalidArgumentError("a ZIP archive that ends in its first header");
  const auto* header = reinterpret_cast<const unsigned char*>(buffer_.get() + begin_);
  const uint32_t flags = Little(header + 6, 2), method = Little(header + 8, 2);
  const uint32_t packed = Little(header + 18, 4);
  const size_t behind = kHeader + Little(header + 26, 2) + Little(header + 28, 2);
  if ((flags & 1) != 0) return absl::InvalidArgumentError("a ZIP archive whose first file is encrypted");
  if (behind > end_ - begin_) return absl::InvalidArgumentError("a ZIP archive that ends in its first header");
  constexpr uint32_t kStored = 0, kDeflated = 8, kInZip64 = 0xFFFFFFFF;
  if (method != kStored && method != kDeflated) {
    return absl::InvalidArgumentError(absl::StrCat("a ZIP archive whose first file is packed by method ", method));
  }
  if (method == kDeflated) packing_ = Packing::kDeflate;
  if (method == kStored && packed != kInZip64) stored_left_ = packed;
  begin_ += behind;
  return absl::OkStatus();
}

// Reads more where nothing is left; false at the end of the file.
bool ByteStream::Fill() {
  begin_ = end_ = 0;
  if (fd_ < 0) {
    end_ = memory_.copy(buffer_.get(), kBuffer);
    memory_.remove_prefix(end_);
    return end_ > 0;
  }
  // The first bytes are looked at before anything is read of them, so a short read is filled up.
  while (end_ < kBuffer) {
    const ssize_t got = read(fd_, buffer_.get() + end_, kBuffer - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status_ = absl::Status(absl::ErrnoToStatusCode(errno), std::strerror(errno));
    if (got <= 0) break;
    end_ += static_cast<size_t>(got);
  }
  return end_ > 0;
}

size_t ByteStream::Take(char* out, size_t size) {
  if (begin_ == end_ && !Fill()) return 0;
  const size_t taken = std::min<uint64_t>({size, end_ - begin_, stored_left_});
  std::memcpy(out, buffer_.get() + begin_, taken);
  begin_ += taken;
  if (stored_left_ != UINT64_MAX) stored_left_ -= taken;
  return taken;
}

size_t ByteStream::Read(char* out, size_t size) {
  if (packing_ == Packing::kNone) return Take(out, size);
  zlib_.next_out = reinterpret_cast<unsigned char*>(out);
  zlib_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
  const uInt wanted = zlib_.avail_out;
  while (!ended_ && zlib_.avail_out == wanted) {
    if (begin_ == end_ && !Fill()) {
      cut_ = true;
      if (status_.ok()) status_ = absl::DataLossError("the packed file ends too early");
      ended_ = true;
      break;
    }
    zlib_.next_in = reinterpret_cast<unsigned char*>(buffer_.get() + begin_);
    zlib_.avail_in = static_cast<uInt>(end_ - begin_);
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    begin_ = end_ - zlib_.avail_in;
    if (result == Z_STREAM_END) {
      // Several gzip files one after the other are one, as gzip itself reads them.
      const bool more = packing_ == Packing::kGzip && (begin_ != end_ || Fill());
      ended_ = !more || inflateReset(&zlib_) != Z_OK;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      ended_ = true;
      if (zlib_.avail_out == wanted || status_.ok()) {
        status_ = absl::DataLossError(
            absl::StrCat("the packed file is damaged: ", zlib_.msg != nullptr ? zlib_.msg : "inflate failed"));
      }
    }
  }
  return wanted - zlib_.avail_out;
}

}  // namespace rfinject::cli
