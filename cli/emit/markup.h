// File: markup.h
//
// Text for SVG, HTML and the JSON inside HTML. Names come from programs that we do not know:
// they may hold markup, broken UTF-8, control characters and marks that turn the direction of text.
#ifndef RFINJECT_CLI_EMIT_MARKUP_H_
#define RFINJECT_CLI_EMIT_MARKUP_H_

#include <string>
#include <string_view>

namespace rfinject::cli {

// `text` as the content of an XML or HTML element or of a quoted attribute. Markup characters become entities. What
// XML 1.0 cannot hold and what would reorder or hide the text around it (control characters, bidirectional controls,
// broken UTF-8) is shown by its number, "<U+202E>".
std::string MarkupText(std::string_view text);

// `text` as a JSON string with its quotes, safe inside an HTML script element: "<", ">", "&", U+2028 and U+2029 are
// written as \uXXXX. Keeps every character, apart from broken UTF-8, which becomes U+FFFD.
std::string JsonText(std::string_view text);

// The shortest text that reads back as `value`; "null" when it is not finite (JSON has no other word for that).
std::string JsonNumber(double value);

// A coordinate: one digit behind the point, none where it is zero, without regard to the locale.
std::string Coordinate(double value);

// Width of `text` in units of the font size, for sans-serif fonts. An upper estimate (the widths of DejaVu Sans, the
// widest of the usual ones), because the viewer's font is not known when labels are placed.
double TextWidth(std::string_view text);

// `text` with its middle replaced by an ellipsis, so that at most `most` characters (code points, at least 3) remain.
std::string ElideMiddle(std::string_view text, size_t most);

// The same with the beginning left out: of a layer's path the end says more.
std::string ElideStart(std::string_view text, size_t most);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_MARKUP_H_
