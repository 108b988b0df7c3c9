// File: text.h
//
// Decides what is UTF-8 in a trace. Each byte that is not becomes U+FFFD.
#ifndef RFINJECT_PROTO_WIRE_TEXT_H_
#define RFINJECT_PROTO_WIRE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rfinject::wire {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// The length in bytes of the UTF-8 sequence at the front of `text` (not empty), 0 if it is not one: overlong forms,
// surrogates and numbers above U+10FFFF are no sequences (RFC 3629, section 4).
inline size_t Utf8SequenceLength(std::string_view text) noexcept {
  auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  auto continues = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return continues(1) ? 2 : 0;
  if (first < 0xF0) {
    return continues(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && continues(2) ? 3 : 0;
  }
  if (first < 0xF5) {
    const bool second = continues(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// How many bytes at the front of `text` are valid.
inline size_t ValidUtf8Prefix(std::string_view text) noexcept {
  size_t good = 0;
  while (good < text.size()) {
    // Nearly all text is ASCII, so eight bytes are looked at together.
    uint64_t eight;
    if (text.size() - good >= sizeof eight) {
      std::memcpy(&eight, text.data() + good, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        good += sizeof eight;
        continue;
      }
    }
    const size_t length = Utf8SequenceLength(text.substr(good));
    if (length == 0) break;
    good += length;
  }
  return good;
}

inline bool IsUtf8(std::string_view text) noexcept { return ValidUtf8Prefix(text) == text.size(); }

// Returns the text with U+FFFD for each byte that is part of no character.
inline std::string CleanUtf8(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t good = ValidUtf8Prefix(text);
    clean += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    clean += kReplacementCharacter;
    text.remove_prefix(1);
  }
  return clean;
}

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_TEXT_H_
