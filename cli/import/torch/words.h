// File: words.h
//
// Small questions about texts, for std::string_view: Debian's Abseil has a string_view of its own.
#ifndef RFINJECT_CLI_IMPORT_TORCH_WORDS_H_
#define RFINJECT_CLI_IMPORT_TORCH_WORDS_H_

#include <charconv>
#include <string_view>

namespace rfinject::cli {

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Removes `prefix` from the front; false where it is not there.
inline bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

inline std::string_view WithoutBlanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Reads the number that is the whole text but for blanks around it; false, and `*value` unchanged, where it is none
// of the type.
template <typename Number>
bool ParseNumber(std::string_view text, Number* value) {
  text = WithoutBlanks(text);
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return false;
  *value = parsed;
  return true;
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_WORDS_H_
