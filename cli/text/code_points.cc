#include "cli/text/code_points.h"

#include <algorithm>
#include <vector>

namespace rfinject::cli {
namespace {

// The first `head` characters, an ellipsis, and the last ones.
std::string Elide(std::string_view text, size_t most, size_t head) {
  std::vector<size_t> starts;
  for (std::string_view rest = text; !rest.empty();) {
    starts.push_back(text.size() - rest.size());
    TakeCodePoint(&rest);
  }
  if (starts.size() <= most) return std::string(text);
  const size_t tail = most - 1 - head;
  return std::string(text.substr(0, starts[head])) + "…" + std::string(text.substr(starts[starts.size() - tail]));
}

}  // namespace

uint32_t TakeCodePoint(std::string_view* text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>((*text)[i]); };
  const auto broken = [&] {
    text->remove_prefix(1);
    return kBrokenByte;
  };
  const uint8_t lead = byte(0);
  size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : (lead & 0xf0) == 0xe0 ? 3 : 0;
  if (lead >= 0xf0 && lead <= 0xf4) length = 4;
  if (length == 0 || length > text->size()) return broken();
  uint32_t value = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return broken();
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return broken();
  text->remove_prefix(length);
  return value;
}

bool IsInvisible(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff) || (c & 0xfffe) == 0xfffe;
}

std::string PrintableText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBrokenByte || IsInvisible(c)) {
      clean += '?';
    } else {
      clean += before.substr(0, before.size() - text.size());
    }
  }
  return clean;
}

std::string PrintableLines(std::string_view text, bool colors) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\033"), text.size());
    clean += PrintableText(text.substr(0, end));
    text.remove_prefix(end);
    if (text.empty()) break;
    size_t kept = text[0] == '\n' ? 1 : 0;
    if (kept == 0 && colors && text.starts_with("\033[")) {
      const size_t last = text.find_first_not_of("0123456789;", 2);
      if (last != std::string_view::npos && text[last] == 'm') kept = last + 1;
    }
    clean += kept > 0 ? text.substr(0, kept) : std::string_view("?");
    text.remove_prefix(std::max<size_t>(kept, 1));
  }
  return clean;
}

std::string ElideMiddle(std::string_view text, size_t most) { return Elide(text, most, (most - 1) / 2); }

std::string ElideStart(std::string_view text, size_t most) { return Elide(text, most, 0); }

}  // namespace rfinject::cli
