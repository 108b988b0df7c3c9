#include "cli/emit/picture/mark_shape.h"

#include <initializer_list>

#include "cli/emit/markup.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

std::string Pair(double x, double y) { return Coordinate(x).text() + " " + Coordinate(y).text(); }

}  // namespace

std::string MarkPath(int phase, Point at, double radius) {
  const auto polygon = [&](std::initializer_list<Point> corners) {
    std::string path;
    for (const Point& c : corners) {
      path += (path.empty() ? "M" : "L") + Pair(at.x + c.x * radius, at.y + c.y * radius);
    }
    return path + "Z";
  };
  // Each polygon has the area pi of the unit circle.
  switch (phase) {
    case static_cast<int>(Phase::kBackward):
      return polygon({{-.886, -.886}, {.886, -.886}, {.886, .886}, {-.886, .886}});
    case static_cast<int>(Phase::kOptimizer):
      return polygon({{0, -1.253}, {1.253, 0}, {0, 1.253}, {-1.253, 0}});
    case static_cast<int>(Phase::kRecompute):
      return polygon({{0, -1.555}, {1.347, .778}, {-1.347, .778}});
    case static_cast<int>(Phase::kData):
      return polygon({{0, 1.555}, {1.347, -.778}, {-1.347, -.778}});
    case static_cast<int>(Phase::kCommunication):
      return polygon({{1.1, 0}, {.55, .952}, {-.55, .952}, {-1.1, 0}, {-.55, -.952}, {.55, -.952}});
    case static_cast<int>(Phase::kOther):
      return polygon({{-.396, -1.189},
                      {.396, -1.189},
                      {.396, -.396},
                      {1.189, -.396},
                      {1.189, .396},
                      {.396, .396},
                      {.396, 1.189},
                      {-.396, 1.189},
                      {-.396, .396},
                      {-1.189, .396},
                      {-1.189, -.396},
                      {-.396, -.396}});
    default:
      break;
  }
  const std::string r = Coordinate(radius).text(), d = Coordinate(2 * radius).text();
  return "M" + Pair(at.x - radius, at.y) + "a" + r + " " + r + " 0 1 0 " + d + " 0a" + r + " " + r + " 0 1 0 -" + d +
         " 0Z";
}

}  // namespace rfinject::cli
