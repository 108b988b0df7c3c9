#include "cli/picture/axes.h"

#include <algorithm>
#include <cmath>

#include "cli/text/markup.h"
#include "cli/text/units.h"

namespace rfinject::cli {

std::string RateTick(int exponent) {
  constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  const int step = std::clamp(exponent >= 0 ? exponent / 3 : 0, 0, 6);
  return Coordinate(std::pow(10.0, exponent - 3 * step)).text() + kPrefixes[step];
}

std::string PlainTick(int exponent) {
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + "1";
  return Count(std::pow(10.0, exponent));
}

std::string TimeTick(int exponent) {
  if (exponent < 0) return PlainTick(exponent) + " ns";
  constexpr const char* kUnits[] = {" ns", " us", " ms", " s"};
  const int step = std::min(exponent / 3, 3);
  return Count(std::pow(10.0, exponent - 3 * step)) + kUnits[step];
}

void AddTickText(const std::string& text, Point at, Picture* out) {
  const double width = out->size.width;
  Text tick = MakeText("ax", text, at, Anchor::kMiddle, kText);
  if (tick.box.right() > width - 3) tick = MakeText("ax", text, {width - 3, at.y}, Anchor::kEnd, kText);
  const bool covers = std::any_of(out->texts.begin(), out->texts.end(), [&](const Text& other) {
    return other.css == "ax" && Overlap(other.box, tick.box);
  });
  if (!covers) out->texts.push_back(tick);
}

void AddDecadeGrid(const LogLog& axes, Picture* out) {
  const Box& plot = axes.box;
  const Decades &x = axes.horizontal, &y = axes.vertical;
  for (int e = x.low; e <= x.high; ++e) {
    for (int m = 1; m < 10 && (m == 1 || e < x.high); ++m) {
      const double at = LogPosition(x, m * std::pow(10.0, e), plot.x, plot.right());
      if (m == 1) {
        out->lines.push_back({"gr", {{at, plot.y}, {at, plot.bottom()}}});
      } else {
        out->lines.push_back({"tk", {{at, plot.bottom() - 3}, {at, plot.bottom()}}});
      }
    }
  }
  for (int e = y.low; e <= y.high; ++e) {
    for (int m = 1; m < 10 && (m == 1 || e < y.high); ++m) {
      const double at = LogPosition(y, m * std::pow(10.0, e), plot.bottom(), plot.y);
      if (m == 1) {
        out->lines.push_back({"gr", {{plot.x, at}, {plot.right(), at}}});
      } else {
        out->lines.push_back({"tk", {{plot.x, at}, {plot.x + 3, at}}});
      }
    }
  }
}

void AddFrame(const Box& box, Picture* out) {
  out->lines.push_back(
      {"fr",
       {{box.x, box.y}, {box.right(), box.y}, {box.right(), box.bottom()}, {box.x, box.bottom()}, {box.x, box.y}}});
}

}  // namespace rfinject::cli
