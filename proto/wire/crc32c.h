// File: crc32c.h
//
// CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of a trace's frames. It is computed by the processor's
// own instruction where there is one (SSE 4.2), else by tables, eight bytes at a time ("slicing by 8"), since it
// takes much of the time of reading a long trace.
#ifndef RFINJECT_PROTO_WIRE_CRC32C_H_
#define RFINJECT_PROTO_WIRE_CRC32C_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#endif

namespace rfinject::wire {

namespace internal {
// Table 0 is that of one byte; table k is what k zero bytes after it make of that.
using Crc32cTables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Crc32cTables MakeCrc32cTables() {
  Crc32cTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t i = 0; i < 256; ++i) tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
  }
  return tables;
}
inline constexpr Crc32cTables kCrc32cTables = MakeCrc32cTables();

inline uint32_t Crc32cByTables(const void* data, size_t size, uint32_t crc) noexcept {
  const auto& t = kCrc32cTables;
  const auto* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    crc ^= uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
    crc = t[7][crc & 0xFF] ^ t[6][(crc >> 8) & 0xFF] ^ t[5][(crc >> 16) & 0xFF] ^ t[4][crc >> 24] ^ t[3][bytes[4]] ^
          t[2][bytes[5]] ^ t[1][bytes[6]] ^ t[0][bytes[7]];
  }
  for (; size > 0; --size) crc = (crc >> 8) ^ t[0][(crc ^ *bytes++) & 0xFF];
  return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) inline uint32_t Crc32cByInstruction(const void* data, size_t size,
                                                                      uint32_t crc) noexcept {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint64_t state = ~crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes, sizeof eight);
    state = _mm_crc32_u64(state, eight);
  }
  auto rest = static_cast<uint32_t>(state);
  for (; size > 0; --size) rest = _mm_crc32_u8(rest, *bytes++);
  return ~rest;
}

inline bool HasCrc32cInstruction() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}
#endif
}  // namespace internal

// The CRC-32C of `size` bytes at `data`, continuing from `crc` (0 to begin).
inline uint32_t Crc32c(const void* data, size_t size, uint32_t crc = 0) noexcept {
#if defined(__x86_64__)
  // Asking the processor takes as long as the checksum of a kilobyte, so it is done once.
  static const bool by_instruction = internal::HasCrc32cInstruction();
  if (by_instruction) return internal::Crc32cByInstruction(data, size, crc);
#endif
  return internal::Crc32cByTables(data, size, crc);
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_CRC32C_H_
