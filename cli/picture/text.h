// File: text.h
//
// A line of text in a picture, and how much room it takes.
#ifndef RFINJECT_CLI_PICTURE_TEXT_H_
#define RFINJECT_CLI_PICTURE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/picture/geometry.h"

namespace rfinject::cli {

// Sizes of type, in pixels.
inline constexpr double kSmallText = 10, kText = 11, kAxisTitleText = 12, kTitleText = 17;

enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

struct Text {
  std::string css;   // class names (palette.cc)
  std::string text;  // plain; it is escaped where it is written
  Point at;          // baseline
  Anchor anchor = Anchor::kStart;
  double size = kText;
  double rotate = 0;  // degrees, clockwise, around `at`
  Box box;            // its estimated extent when not rotated
};

// Returns a text that is not rotated, with its box.
Text MakeText(std::string css, std::string text, Point at, Anchor anchor, double size);

// The width of `text` in units of the font size, for sans-serif fonts. It is an upper estimate (the widths of DejaVu
// Sans, the widest of the usual ones), because the viewer's font is not known when labels are placed.
double TextWidth(std::string_view text);

// `text` with its middle left out until it is at most `width` pixels wide. At least eight characters stay.
std::string FitTo(const std::string& text, double width, double size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_TEXT_H_
