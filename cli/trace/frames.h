// File: frames.h
//
// Reads a trace file as a sequence of frames (proto/wire/framing.h), with one in memory at a time.
//
//   FrameReader frames(source);
//   while (frames.Next()) Use(frames.payload(), frames.payload_offset());
//   if (!frames.status().ok()) Complain(frames.status());
#ifndef RFINJECT_CLI_TRACE_FRAMES_H_
#define RFINJECT_CLI_TRACE_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {

// Bytes that can be read from any place.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `size` bytes from `offset` on, and how many; fewer only at the end.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, void* out, size_t size) = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  absl::StatusOr<size_t> ReadAt(uint64_t offset, void* out, size_t size) override;

 private:
  std::span<const uint8_t> bytes_;
};

class FileSource : public ByteSource {
 public:
  FileSource() = default;
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  // A regular file, once.
  absl::Status Open(const std::string& path);
  uint64_t size() const { return size_; }  // when it was opened
  absl::StatusOr<size_t> ReadAt(uint64_t offset, void* out, size_t size) override;

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
};

class FrameReader {
 public:
  explicit FrameReader(ByteSource& source) : source_(source) {}

  // The next whole, undamaged frame; false at the end and at damage. The file header is checked at the first call.
  bool Next();

  // What is damaged (damage.h), if Next found something: also that the file ends inside a frame (IsCut).
  const absl::Status& status() const { return status_; }
  // False when not even the file's header could be used: it is no trace, or from a newer format.
  bool header_ok() const { return header_ok_; }
  uint64_t frames() const { return frames_; }  // how many Next has given
  // The current frame's bytes, valid until the next call of Next.
  std::span<const uint8_t> payload() const { return payload_; }
  uint64_t payload_offset() const { return payload_offset_; }

 private:
  bool Fail(absl::Status status);
  bool ReadHeader();

  ByteSource& source_;
  std::unique_ptr<uint8_t[]> buffer_;  // of `capacity_` bytes
  size_t capacity_ = 0;
  std::span<const uint8_t> payload_;
  uint64_t offset_ = 0;
  uint64_t payload_offset_ = 0;
  uint64_t frames_ = 0;
  bool header_ok_ = false;
  absl::Status status_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_FRAMES_H_
