#include "cli/text/markup.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

std::string Hex(const char* format, uint32_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof(buffer), format, static_cast<unsigned>(value));
  return buffer;
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

std::string MarkdownText(std::string_view text) {
  std::string escaped;
  for (const char c : PrintableText(text)) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<' || c == '[') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

Markup InScript(const ScriptJson& json) { return {Markup::Safe{}, json.text()}; }

Markup InStyle(const Css& css) { return {Markup::Safe{}, css.text()}; }

Digits JsonNumber(double value) {
  if (!std::isfinite(value)) return Digits(std::string("null"));
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return Digits(std::string(buffer, end.ptr));
}

Digits RoundedJsonNumber(double value, int digits) {
  if (!std::isfinite(value)) return Digits(std::string("null"));
  char buffer[40];
  const char* const end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific, digits - 1).ptr;
  double rounded = value;
  std::from_chars(buffer, end, rounded);
  const std::string plain = JsonNumber(rounded).text();
  // "1.6625e+08" as "16625e4".
  const std::string scientific(buffer, static_cast<size_t>(end - buffer));
  const size_t e = scientific.find('e');
  std::string mantissa = scientific.substr(0, e);
  int exponent = std::atoi(scientific.c_str() + e + 1);
  if (const size_t point = mantissa.find('.'); point != std::string::npos) {
    exponent -= static_cast<int>(mantissa.size() - point - 1);
    mantissa.erase(point, 1);
  }
  for (; mantissa.size() > 1 && mantissa.back() == '0'; ++exponent) mantissa.pop_back();
  const std::string whole = mantissa + "e" + std::to_string(exponent);
  return Digits(whole.size() < plain.size() && mantissa.find('0') != 0 ? whole : plain);
}

Digits Coordinate(double value) {
  char buffer[400];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, 1);
  std::string text(buffer, end.ptr);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  if (text == "-0") text = "0";
  return Digits(std::move(text));
}

}  // namespace rfinject::cli
