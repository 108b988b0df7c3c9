// File: byte_stream.h
//
// The bytes of a recording, whether it lies in its file as it is, packed by gzip, or as the first file of a ZIP
// archive (TensorBoard's exporter writes those). What it is, its first bytes tell, and not its name.
#ifndef RFINJECT_CLI_IMPORT_TORCH_BYTE_STREAM_H_
#define RFINJECT_CLI_IMPORT_TORCH_BYTE_STREAM_H_

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rfinject::cli {

class ByteStream {
 public:
  // Opens a file for reading once. Fails with the reason; a ZIP whose first file is packed in a way that
  // is not deflate is refused.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(const std::string& path);
  // The same of a file's own bytes, packed or not.
  static absl::StatusOr<std::unique_ptr<ByteStream>> OpenAsItIs(const std::string& path);
  // The same of bytes in memory, which stay the caller's.
  static absl::StatusOr<std::unique_ptr<ByteStream>> OfBytes(std::string_view bytes);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Reads at most `size` bytes into `out` and returns how many; 0 at the end, and where the file is cut or damaged,
  // which status() then says. Memory is constant whatever the bytes are.
  size_t Read(char* out, size_t size);
  // What stopped the reading; OK where the end was the end.
  const absl::Status& status() const { return status_; }
  // Whether that is a packed file that ends too early.
  bool cut() const { return cut_; }

 private:
  enum class Packing : uint8_t { kNone, kGzip, kDeflate };
  ByteStream() = default;
  absl::Status Begin();
  bool Fill();
  size_t Take(char* out, size_t size);
  absl::Status SkipZipHeader();

  static constexpr size_t kBuffer = 64u << 10;
  int fd_ = -1;
  std::string_view memory_;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0, end_ = 0;
  Packing packing_ = Packing::kNone;
  uint64_t stored_left_ = UINT64_MAX;  // of a file that a ZIP holds as it is
  bool inflating_ = false, ended_ = false, cut_ = false;
  z_stream zlib_{};
  absl::Status status_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_BYTE_STREAM_H_
