// File: crc32c.h
//
// CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of a trace's frames. Table driven, one byte a step: a
// process writes some kilobytes a second, so simplicity wins over SSE 4.2.
#ifndef RFINJECT_PROTO_WIRE_CRC32C_H_
#define RFINJECT_PROTO_WIRE_CRC32C_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace rfinject::wire {

namespace internal {
constexpr std::array<uint32_t, 256> MakeCrc32cTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}
inline constexpr std::array<uint32_t, 256> kCrc32cTable = MakeCrc32cTable();
}  // namespace internal

// The CRC-32C of `size` bytes at `data`, continuing from `crc` (0 to begin).
inline uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0) noexcept {
  const auto* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ internal::kCrc32cTable[(crc ^ bytes[i]) & 0xFF];
  return ~crc;
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_CRC32C_H_
