// File: hash.h
//
// Hashes for the collector's own tables. They do not withstand adversaries, and no order depends on them.
#ifndef RFINJECT_COLLECTOR_HASH_H_
#define RFINJECT_COLLECTOR_HASH_H_

#include <cstdint>
#include <cstring>
#include <string_view>

namespace rfinject {

// The two halves of the 128-bit product, xored, which depend on all bits of both operands.
inline uint64_t HashFold(uint64_t a, uint64_t b) noexcept {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// One step of a multiply-and-fold hash. The constant is 2^64 divided by the golden ratio, made odd.
inline uint64_t HashMix(uint64_t hash, uint64_t value) noexcept {
  return HashFold(hash ^ value, 0x9E3779B97F4A7C15u);
}

// Returns a hash of the text, whose bytes are taken eight at a time in the machine's order.
inline uint32_t HashBytes(std::string_view text) noexcept {
  uint64_t hash = HashMix(0x243F6A8885A308D3u, text.size());
  while (!text.empty()) {
    uint64_t word = 0;
    const size_t size = text.size() < sizeof word ? text.size() : sizeof word;
    std::memcpy(&word, text.data(), size);
    hash = HashMix(hash, word);
    text.remove_prefix(size);
  }
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_HASH_H_
