#include "cli/picture/mark_shape.h"

#include <algorithm>
#include <array>
#include <span>

#include "cli/text/markup.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

std::string Pair(double x, double y) { return Coordinate(x).text() + " " + Coordinate(y).text(); }

// The corners of a phase's polygon, of the area pi of the unit circle; none where the shape is the circle.
std::span<const Point> Corners(int phase) {
  static constexpr Point kSquare[] = {{-.886, -.886}, {.886, -.886}, {.886, .886}, {-.886, .886}};
  static constexpr Point kDiamond[] = {{0, -1.253}, {1.253, 0}, {0, 1.253}, {-1.253, 0}};
  static constexpr Point kUp[] = {{0, -1.555}, {1.347, .778}, {-1.347, .778}};
  static constexpr Point kDown[] = {{0, 1.555}, {1.347, -.778}, {-1.347, -.778}};
  static constexpr Point kHexagon[] = {{1.1, 0}, {.55, .952}, {-.55, .952}, {-1.1, 0}, {-.55, -.952}, {.55, -.952}};
  static constexpr Point kCross[] = {{-.396, -1.189}, {.396, -1.189}, {.396, -.396},   {1.189, -.396},
                                     {1.189, .396},   {.396, .396},   {.396, 1.189},   {-.396, 1.189},
                                     {-.396, .396},   {-1.189, .396}, {-1.189, -.396}, {-.396, -.396}};
  // By Phase. Forward and eval have the circle.
  static constexpr std::array<std::span<const Point>, kPhaseNames.size()> kByPhase = {
      kCross, {}, kSquare, kDiamond, kDown, kHexagon, kUp, {}};
  const bool known = phase >= 0 && static_cast<size_t>(phase) < kByPhase.size();
  return known ? kByPhase[static_cast<size_t>(phase)] : std::span<const Point>();
}

}  // namespace

Box MarkExtent(int phase, double radius) {
  const std::span<const Point> corners = Corners(phase);
  if (corners.empty()) return {-radius, -radius, 2 * radius, 2 * radius};
  const auto [left, right] =
      std::minmax_element(corners.begin(), corners.end(), [](Point a, Point b) { return a.x < b.x; });
  const auto [top, bottom] =
      std::minmax_element(corners.begin(), corners.end(), [](Point a, Point b) { return a.y < b.y; });
  return {left->x * radius, top->y * radius, (right->x - left->x) * radius, (bottom->y - top->y) * radius};
}

std::string MarkPath(int phase, Point at, double radius) {
  if (const std::span<const Point> corners = Corners(phase); !corners.empty()) {
    std::string path;
    for (const Point& c : corners) {
      path += (path.empty() ? "M" : "L") + Pair(at.x + c.x * radius, at.y + c.y * radius);
    }
    return path + "Z";
  }
  const std::string r = Coordinate(radius).text(), d = Coordinate(2 * radius).text();
  return "M" + Pair(at.x - radius, at.y) + "a" + r + " " + r + " 0 1 0 " + d + " 0a" + r + " " + r + " 0 1 0 -" + d +
         " 0Z";
}

}  // namespace rfinject::cli
