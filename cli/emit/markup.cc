#include "cli/emit/markup.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "cli/emit/code_points.h"

namespace rfinject::cli {
namespace {

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

}  // namespace

Markup Escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const char first = text.front();
    const std::string_view before = text;
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBrokenByte) {
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
  return {Markup::Safe{}, std::move(out)};
}

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view before = text;
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBrokenByte) {
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

ScriptJson JsonString(std::string_view text) { return {ScriptJson::Safe{}, JsonText(text)}; }

Markup InScript(const ScriptJson& json) { return {Markup::Safe{}, json.text()}; }

Markup InStyle(const Css& css) { return {Markup::Safe{}, css.text()}; }

Digits JsonNumber(double value) {
  if (!std::isfinite(value)) return Digits(std::string("null"));
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return Digits(std::string(buffer, end.ptr));
}

Digits Coordinate(double value) {
  std::string text = Fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  if (text == "-0") text = "0";
  return Digits(std::move(text));
}

}  // namespace rfinject::cli
