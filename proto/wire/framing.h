// File: framing.h
//
// How Chunk messages (../rfinject/v1/trace.proto) lie in a file: a file header, then frames to the end of the file.
// All integers are little-endian.
//
//   file header, 16 bytes        frame header, 16 bytes            payload
//   0  "RFINJECT"                0  u32 magic, "RFXC"              a serialized Chunk,
//   8  u16 format, major         4  u32 payload length             `length` bytes
//   10 u16 format, minor         8  u32 sequence: 0, 1, 2, …
//   12 u32 CRC-32C of 0..11      12 u32 CRC-32C of 4..11 and the payload
//
// Both sides include this file; it needs nothing but libc.
#ifndef RFINJECT_PROTO_WIRE_FRAMING_H_
#define RFINJECT_PROTO_WIRE_FRAMING_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "proto/wire/crc32c.h"

namespace rfinject::wire {

inline constexpr size_t kFileHeaderSize = 16;
inline constexpr size_t kFrameHeaderSize = 16;
inline constexpr char kFileMagic[8] = {'R', 'F', 'I', 'N', 'J', 'E', 'C', 'T'};
inline constexpr uint32_t kFrameMagic = 0x43584652;  // "RFXC"
// A reader refuses a file whose major number is larger than its own; minor numbers only tell what wrote it.
inline constexpr uint16_t kFormatMajor = 3;
inline constexpr uint16_t kFormatMinor = 0;
// A longer frame is taken for damage: the limit bounds what a reader allocates for one frame. Writers close a frame
// long before that.
inline constexpr uint32_t kMaxPayloadSize = 16u << 20;
// A longer range of keys (RepeatedLaunches) is damage. A range takes three bytes at least, so the work of reading
// stays proportional to the file, whoever wrote it.
inline constexpr uint32_t kMostKeysInARange = 64;

namespace internal {
inline void PutU16(uint8_t* out, uint16_t v) noexcept {
  out[0] = static_cast<uint8_t>(v);
  out[1] = static_cast<uint8_t>(v >> 8);
}
inline void PutU32(uint8_t* out, uint32_t v) noexcept {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(v >> (8 * i));
}
inline uint16_t GetU16(const uint8_t* in) noexcept { return static_cast<uint16_t>(in[0] | in[1] << 8); }
inline uint32_t GetU32(const uint8_t* in) noexcept {
  return uint32_t{in[0]} | uint32_t{in[1]} << 8 | uint32_t{in[2]} << 16 | uint32_t{in[3]} << 24;
}
}  // namespace internal

enum class FrameStatus : uint8_t {
  kOk,
  kNotATrace,      // the magic of the file is not there
  kNewerFormat,    // the major number is larger than kFormatMajor
  kDamagedHeader,  // file or frame header: bad magic or checksum
  kTooLong,        // payload length above kMaxPayloadSize
  kOutOfSequence,
  kDamagedPayload,  // checksum
};

// Writes the header of a file in this version of the format.
inline void EncodeFileHeader(uint8_t (&out)[kFileHeaderSize]) noexcept {
  std::memcpy(out, kFileMagic, sizeof kFileMagic);
  internal::PutU16(out + 8, kFormatMajor);
  internal::PutU16(out + 10, kFormatMinor);
  internal::PutU32(out + 12, Crc32c(out, 12));
}

// `major` receives the file's format number when the result is kOk or kNewerFormat.
inline FrameStatus DecodeFileHeader(const uint8_t (&in)[kFileHeaderSize], uint16_t* major) noexcept {
  if (std::memcmp(in, kFileMagic, sizeof kFileMagic) != 0) return FrameStatus::kNotATrace;
  if (internal::GetU32(in + 12) != Crc32c(in, 12)) return FrameStatus::kDamagedHeader;
  *major = internal::GetU16(in + 8);
  return *major > kFormatMajor ? FrameStatus::kNewerFormat : FrameStatus::kOk;
}

struct FrameHeader {
  uint32_t length = 0;  // of the payload, in bytes
  uint32_t sequence = 0;
  uint32_t checksum = 0;
};

// Writes the header of a frame with `length` bytes of payload; the checksum covers length, sequence and payload.
inline void EncodeFrameHeader(const void* payload, uint32_t length, uint32_t sequence,
                              uint8_t (&out)[kFrameHeaderSize]) noexcept {
  internal::PutU32(out, kFrameMagic);
  internal::PutU32(out + 4, length);
  internal::PutU32(out + 8, sequence);
  internal::PutU32(out + 12, Crc32c(payload, length, Crc32c(out + 4, 8)));
}

// Checks everything but the payload's checksum; `expected` is the sequence number that must come now.
inline FrameStatus DecodeFrameHeader(const uint8_t (&in)[kFrameHeaderSize], uint32_t expected,
                                     FrameHeader* header) noexcept {
  if (internal::GetU32(in) != kFrameMagic) return FrameStatus::kDamagedHeader;
  header->length = internal::GetU32(in + 4);
  header->sequence = internal::GetU32(in + 8);
  header->checksum = internal::GetU32(in + 12);
  if (header->length > kMaxPayloadSize) return FrameStatus::kTooLong;
  if (header->sequence != expected) return FrameStatus::kOutOfSequence;
  return FrameStatus::kOk;
}

// Compares the payload, of header.length bytes, with the checksum: kOk or kDamagedPayload.
inline FrameStatus CheckPayload(const FrameHeader& header, const void* payload) noexcept {
  uint8_t fields[8];
  internal::PutU32(fields, header.length);
  internal::PutU32(fields + 4, header.sequence);
  return Crc32c(payload, header.length, Crc32c(fields, sizeof fields)) == header.checksum
             ? FrameStatus::kOk
             : FrameStatus::kDamagedPayload;
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_FRAMING_H_
