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
  constexpr double kTick = 3;  // pixels
  const Box& plot = axes.box;
  const auto add = [out](const Decades& axis, const auto& line_at) {
    for (int e = axis.low; e <= axis.high; ++e) {
      for (int m = 1; m < 10 && (m == 1 || e < axis.high); ++m) {
        out->lines.push_back({m == 1 ? "gr" : "tk", line_at(m * std::pow(10.0, e), m == 1)});
      }
    }
  };
  add(axes.horizontal, [&](double value, bool across) -> std::vector<Point> {
    const double x = axes.X(value);
    return {{x, across ? plot.y : plot.bottom() - kTick}, {x, plot.bottom()}};
  });
  add(axes.vertical, [&](double value, bool across) -> std::vector<Point> {
    const double y = axes.Y(value);
    return {{plot.x, y}, {across ? plot.right() : plot.x + kTick, y}};
  });
}

void AddFrame(const Box& box, Picture* out) {
  out->lines.push_back(
      {"fr",
       {{box.x, box.y}, {box.right(), box.y}, {box.right(), box.bottom()}, {box.x, box.bottom()}, {box.x, box.y}}});
}

}  // namespace rfinject::cli
