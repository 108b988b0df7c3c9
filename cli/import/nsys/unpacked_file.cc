#include "cli/import/nsys/unpacked_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/torch/byte_stream.h"

namespace rfinject::cli {
namespace {

absl::Status Failed(const std::string& path) {
  return absl::Status(absl::ErrnoToStatusCode(errno),
                      absl::StrCat("cannot unpack it into ", path, ": ", std::strerror(errno)));
}

bool WriteAll(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

absl::Status Copy(ByteStream& from, int to, const std::string& path, uint64_t most_bytes) {
  constexpr size_t kChunk = size_t{1} << 20;
  std::vector<char> chunk(kChunk);
  uint64_t copied = 0;
  while (const size_t size = from.Read(chunk.data(), chunk.size())) {
    copied += size;
    if (copied > most_bytes) return absl::InvalidArgumentError("a packed file that holds more than can be unpacked");
    if (!WriteAll(to, chunk.data(), size)) return Failed(path);
  }
  return from.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnpackedFile>> UnpackedFile::Of(const std::string& path, uint64_t most_bytes) {
  std::unique_ptr<UnpackedFile> file(new UnpackedFile(path));
  const absl::StatusOr<std::unique_ptr<ByteStream>> plain = ByteStream::OpenAsItIs(path);
  char magic[2] = {};
  // What cannot be opened or is no regular file, its reader says better.
  if (!plain.ok() || (*plain)->Read(magic, sizeof magic) != sizeof magic) return file;
  if (std::string_view(magic, sizeof magic) != "\x1f\x8b") return file;
  const absl::StatusOr<std::unique_ptr<ByteStream>> packed = ByteStream::Open(path);
  if (!packed.ok()) return packed.status();
  const char* folder = getenv("TMPDIR");
  std::string name = absl::StrCat(folder != nullptr && *folder != '\0' ? folder : "/tmp", "/rfinject-XXXXXX");
  const int fd = mkstemp(name.data());
  if (fd < 0) return Failed(name);
  file->path_ = name;
  file->temporary_ = true;
  absl::Status copied = Copy(**packed, fd, name, most_bytes);
  close(fd);
  if (!copied.ok()) return copied;
  return file;
}

UnpackedFile::~UnpackedFile() {
  if (temporary_) unlink(path_.c_str());
}

}  // namespace rfinject::cli
