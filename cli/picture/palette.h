// File: palette.h
//
// What the class names of a picture look like, in light and in dark. Source of the palette: Okabe and Ito, 2008,
// "Color Universal Design", darkened for white and lightened for dark grounds.
#ifndef RFINJECT_CLI_PICTURE_PALETTE_H_
#define RFINJECT_CLI_PICTURE_PALETTE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/text/markup.h"

namespace rfinject::cli {

enum class Theme : uint8_t {
  kPreferred,  // light, or dark by the viewer's preference
  kChosen,     // the same, but the root element's attribute data-theme ("light", "dark") overrules the preference
};

// The class of what is drawn in a Precision's colour, "p0" to "p7". Both 8-bit types of tensor cores have one colour.
inline constexpr size_t kToneCount = 8;
std::string ToneOf(int precision);

// The style sheet of the pictures.
Css PictureStyle(Theme theme);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_PALETTE_H_
