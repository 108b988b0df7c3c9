#include "cli/picture/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

// WCAG 2.1, 1.4.11: graphics need a contrast of 3:1; relative luminance after 1.4.3.
double Luminance(const std::string& colour) {
  const auto channel = [&](size_t at) {
    const double c = static_cast<double>(std::stoul(colour.substr(at, 2), nullptr, 16)) / 255;
    return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

TEST(PictureStyle, HasContrastInLightAndDark) {
  const std::string css = PictureStyle(Theme::kPreferred).text();
  const size_t dark_at = css.find("@media");
  ASSERT_NE(dark_at, std::string::npos);
  for (const std::string& part : {css.substr(0, dark_at), css.substr(dark_at)}) {
    const auto colour = [&](const std::string& selector, const std::string& property) {
      const size_t at = part.find(selector);
      EXPECT_NE(at, std::string::npos) << selector;
      return part.substr(part.find(property + ":#", at) + property.size() + 1, 7);
    };
    const double ground = Luminance(colour(".pic .bg", "fill"));
    const auto contrast = [&](const std::string& c) {
      const double l = Luminance(c);
      return (std::max(l, ground) + 0.05) / (std::min(l, ground) + 0.05);
    };
    for (size_t p = 0; p < kToneCount; ++p) {
      EXPECT_GE(contrast(colour("text.p" + std::to_string(p), "fill")), 4.5) << p;  // they colour text too
    }
    EXPECT_GE(contrast(colour("text{fill", "fill")), 7);
    EXPECT_GE(contrast(colour(".pic .mu", "fill")), 4.5);
    EXPECT_GE(contrast(colour("text.faint", "fill")), 3);
    EXPECT_GE(contrast(colour("text.bad", "fill")), 4.5);
    EXPECT_GE(contrast(colour(".pic .ms", "fill")), 4.5);
    EXPECT_GE(contrast(colour(".so2{fill", "fill")), 4.5);
  }
}

// What is half transparent gets darker where two marks lie on one another, and is then taken for another precision.
TEST(PictureStyle, MarksAreOpaqueAndHalfAsStrongAsTheirOutline) {
  const std::string css = PictureStyle(Theme::kPreferred).text();
  EXPECT_EQ(css.find("fill-opacity"), std::string::npos);
  const size_t dark_at = css.find("@media");
  for (const std::string& part : {css.substr(0, dark_at), css.substr(dark_at)}) {
    const auto channel = [](const std::string& colour, size_t at) {
      return std::stoi(colour.substr(at, 2), nullptr, 16);
    };
    const auto colour = [&](const std::string& selector, const std::string& property) {
      return part.substr(part.find(property + ":#", part.find(selector)) + property.size() + 1, 7);
    };
    const std::string ground = colour(".pic .bg", "fill");
    for (const std::string of : {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "pn"}) {
      const std::string fill = colour(".m." + of, "fill"), stroke = colour(".m." + of, "stroke");
      for (const size_t at : {size_t{1}, size_t{3}, size_t{5}}) {
        EXPECT_NEAR(channel(fill, at), (channel(stroke, at) + channel(ground, at)) / 2.0, 1) << of;
      }
    }
  }
}

}  // namespace
}  // namespace rfinject::cli
