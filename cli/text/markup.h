// File: markup.h
//
// The one way in which text gets into SVG, HTML, style sheets and the JSON inside HTML. Names come from programs that
// we do not know, so each of these languages is a type, and a value of it can be made in three ways only: from a
// literal of this program's source, from other values of the type, and from text by the function that escapes it. A
// std::string has no other way in; text that was not escaped does not compile.
//
//   Markup page;
//   page.Add({"<td title=\"", Escaped(row.layer), "\">", Escaped(Percent(row.time_share)), "</td>"});
#ifndef RFINJECT_CLI_TEXT_MARKUP_H_
#define RFINJECT_CLI_TEXT_MARKUP_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace rfinject::cli {

// A literal of the source. The compiler refuses whatever is not known when it compiles.
class Literal {
 public:
  template <size_t size>
  consteval Literal(const char (&text)[size]) : text_(text, size - 1) {}  // NOLINT(google-explicit-constructor)
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// A number in digits, which means the same in every language.
class Digits {
 public:
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>) Digits(Integer value)
      : text_(std::to_string(value)) {}  // NOLINT(google-explicit-constructor)
  const std::string& text() const { return text_; }

 private:
  friend Digits Coordinate(double value);
  friend Digits JsonNumber(double value);
  friend Digits RoundedJsonNumber(double value, int digits);
  explicit Digits(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// A coordinate: one digit behind the point, none where it is zero, without regard to the locale.
Digits Coordinate(double value);

// Returns `value` rounded to `digits` digits, in its shortest form; "null" when it is not finite.
Digits RoundedJsonNumber(double value, int digits);

// The shortest text that reads back as `value`; "null" when it is not finite (JSON has no other word for that).
Digits JsonNumber(double value);

enum class Language : uint8_t { kMarkup, kJson, kCss };

// A piece of a document in one language.
template <Language language>
class Fragment {
 public:
  // One piece of a fragment. It refers to its source, so it must not live longer than the call that it
  // is for.
  class Part {
   public:
    template <size_t size>
    consteval Part(const char (&text)[size]) : text_(text, size - 1) {}  // NOLINT(google-explicit-constructor)
    constexpr Part(Literal literal) : text_(literal.text()) {}           // NOLINT(google-explicit-constructor)
    constexpr Part(const Fragment& fragment) : text_(fragment.text_) {}  // NOLINT(google-explicit-constructor)
    constexpr Part(const Digits& digits) : text_(digits.text()) {}       // NOLINT(google-explicit-constructor)
    constexpr std::string_view text() const { return text_; }

   private:
    std::string_view text_;
  };

  Fragment() = default;
  Fragment(Literal literal) : text_(literal.text()) {}  // NOLINT(google-explicit-constructor)
  Fragment(std::initializer_list<Part> parts) { Add(parts); }

  Fragment& Add(std::initializer_list<Part> parts) {
    for (const Part& part : parts) text_ += part.text();
    return *this;
  }
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  friend Fragment<Language::kMarkup> Escaped(std::string_view text);
  friend Fragment<Language::kJson> JsonString(std::string_view text);
  friend Fragment<Language::kMarkup> InScript(const Fragment<Language::kJson>& json);
  friend Fragment<Language::kMarkup> InStyle(const Fragment<Language::kCss>& css);
  struct Safe {};
  Fragment(Safe, std::string text) : text_(std::move(text)) {}

  std::string text_;
};

using Markup = Fragment<Language::kMarkup>;    // XML or HTML
using ScriptJson = Fragment<Language::kJson>;  // JSON that may stand in an HTML script element
using Css = Fragment<Language::kCss>;          // a style sheet

// `text` as the content of an XML or HTML element or of a quoted attribute. Markup characters become entities. What
// XML 1.0 cannot hold and what would reorder or hide the text around it (control characters, bidirectional controls,
// broken UTF-8) is shown by its number, "<U+202E>".
Markup Escaped(std::string_view text);

// `text` as a JSON string with its quotes, safe inside an HTML script element: "<", ">", "&", U+2028 and U+2029 are
// written as \uXXXX. It keeps every character, apart from broken UTF-8, which becomes U+FFFD.
ScriptJson JsonString(std::string_view text);

// The same as plain text, for documents that are JSON and nothing else.
std::string JsonText(std::string_view text);

// A text in a line or a table's cell of Markdown, as it is read: nothing in it is a mark, and it is shown where a
// terminal shows it, too (the log of a job), so that it is printable.
std::string MarkdownText(std::string_view text);

// The content of a script element that holds data, and of a style element: no character of them ends the element.
Markup InScript(const ScriptJson& json);
Markup InStyle(const Css& css);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_MARKUP_H_
