#include "cli/emit/markup.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace rfinject::cli {
namespace {

constexpr uint32_t kBroken = UINT32_MAX;

// Takes one code point from the front of `text` (not empty). Overlong forms, surrogates and numbers above U+10FFFF
// are broken, one byte at a time, as the Unicode standard recommends for decoders that replace.
uint32_t TakeCodePoint(std::string_view* text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>((*text)[i]); };
  const uint8_t lead = byte(0);
  size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : (lead & 0xf0) == 0xe0 ? 3 : 0;
  if (lead >= 0xf0 && lead <= 0xf4) length = 4;
  if (length == 0 || length > text->size()) {
    text->remove_prefix(1);
    return kBroken;
  }
  uint32_t value = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      text->remove_prefix(1);
      return kBroken;
    }
    value = value << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
    text->remove_prefix(1);
    return kBroken;
  }
  text->remove_prefix(length);
  return value;
}

bool IsInvisible(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe;
}

std::string Hex(const char* format, uint32_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof(buffer), format, static_cast<unsigned>(value));
  return buffer;
}

std::string Fixed(double value, int digits) {
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, digits);
  return std::string(buffer, end.ptr);
}

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

std::string MarkupText(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const char first = text.front();
    const std::string_view before = text;
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBroken) {
      out += Hex("&lt;byte %02X&gt;", static_cast<uint8_t>(first));
    } else if (IsInvisible(c)) {
      out += Hex("&lt;U+%04X&gt;", c);
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view before = text;
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBroken) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == '<' || c == '>' || c == '&' || (c < 0x10000 && IsInvisible(c))) {
      out += Hex("\\u%04x", c);
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  out += '"';
  return out;
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end.ptr);
}

std::string Coordinate(double value) {
  std::string text = Fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

double TextWidth(std::string_view text) {
  double width = 0;
  while (!text.empty()) {
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBroken || IsInvisible(c)) {
      width += 5;  // shown by its number
    } else if (c == 'i' || c == 'j' || c == 'l' || c == '.' || c == ',' || c == ' ' || c == ':' || c == 'I' ||
               c == '|' || c == '\'' || c == 0x202f || c == 0xb7) {
      width += 0.34;
    } else if (c == 'f' || c == 't' || c == 'r' || c == '(' || c == ')' || c == '/' || c == '-') {
      width += 0.42;
    } else if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%' || c == '@' || c == '<' || c == '>') {
      width += 0.98;
    } else if (c >= 'A' && c <= 'Z') {
      width += 0.71;
    } else if (c < 0x1100) {
      width += 0.635;
    } else {
      width += 1.05;  // CJK and symbols
    }
  }
  return width;
}

std::string ElideMiddle(std::string_view text, size_t most) { return Elide(text, most, (most - 1) / 2); }

std::string ElideStart(std::string_view text, size_t most) { return Elide(text, most, 0); }

}  // namespace rfinject::cli
