// File: code_points.h
//
// Text that comes from programs that we do not know, character by character: it may be broken UTF-8, and it may hold
// control characters and marks that turn the direction of text.
#ifndef RFINJECT_CLI_TEXT_CODE_POINTS_H_
#define RFINJECT_CLI_TEXT_CODE_POINTS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace rfinject::cli {

// What stands for a byte that begins no character.
inline constexpr uint32_t kBrokenByte = UINT32_MAX;

// Takes one code point from the front of `text` (not empty) and returns it. Overlong forms, surrogates and numbers
// above U+10FFFF are broken, one byte at a time, as the Unicode standard recommends for decoders that replace.
uint32_t TakeCodePoint(std::string_view* text);

// Whether a code point shows nothing by itself, or changes how its neighbours are shown: control characters, marks of
// direction and of width zero, non-characters.
bool IsInvisible(uint32_t code_point);

// Returns `text` as one line in which everything invisible or broken is "?". Names come from programs and files that
// we do not know, and an escape sequence, or a mark that turns the direction of what follows, must not reach a
// terminal.
std::string PrintableText(std::string_view text);

// The same for an output of several lines: line feeds stay and, where `colors` says that they are ours, the sequences
// that set them (ESC [ digits and semicolons m).
std::string PrintableLines(std::string_view text, bool colors);

// `text` with its middle replaced by an ellipsis, so that at most `most` characters (code points, at least 3) remain.
std::string ElideMiddle(std::string_view text, size_t most);

// The same with the beginning left out: of a layer's path the end says more.
std::string ElideStart(std::string_view text, size_t most);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TEXT_CODE_POINTS_H_
