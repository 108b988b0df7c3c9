// File: python_text.h
//
// The little of Python's syntax that generated code needs to be read by: names, numbers, brackets and lists.
#ifndef RFINJECT_OPERATORS_PYTHON_TEXT_H_
#define RFINJECT_OPERATORS_PYTHON_TEXT_H_

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace rfinject::python_text {

inline bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

inline std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The name that `text` begins with, with dots where `dotted`.
inline std::string_view NameAt(std::string_view text, bool dotted = false) {
  size_t end = 0;
  while (end < text.size() && (IsNameCharacter(text[end]) || (dotted && text[end] == '.'))) ++end;
  return text.substr(0, end);
}

template <typename T>
bool ParseNumber(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

inline int DepthChange(char c) {
  if (c == '(' || c == '[' || c == '{') return 1;
  return c == ')' || c == ']' || c == '}' ? -1 : 0;
}

// What the bracket that `text` begins with holds; empty where it is not closed.
inline std::string_view Bracketed(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += DepthChange(text[i]);
    if (depth == 0) return text.substr(1, i == 0 ? 0 : i - 1);
  }
  return {};
}

// Takes the next part of a list off its front, up to a comma that is in no bracket.
inline std::string_view TakePart(std::string_view* list) {
  int depth = 0;
  size_t i = 0;
  for (; i < list->size(); ++i) {
    depth += DepthChange((*list)[i]);
    if ((*list)[i] == ',' && depth == 0) break;
  }
  const std::string_view part = Trim(list->substr(0, i));
  list->remove_prefix(std::min(list->size(), i + 1));
  return part;
}

// How often `word` stands in `text` right behind `before`, as a whole name.
inline size_t CountWord(std::string_view text, std::string_view before, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool whole =
        (at == 0 || !IsNameCharacter(text[at - 1])) && (end == text.size() || !IsNameCharacter(text[end]));
    if (whole && text.substr(0, at).ends_with(before)) ++count;
  }
  return count;
}

}  // namespace rfinject::python_text

#endif  // RFINJECT_OPERATORS_PYTHON_TEXT_H_
