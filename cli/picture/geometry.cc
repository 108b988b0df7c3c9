#include "cli/picture/geometry.h"

#include <algorithm>
#include <cmath>

namespace rfinject::cli {

bool Overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

bool Inside(const Box& inner, const Box& outer) {
  return inner.x >= outer.x && inner.y >= outer.y && inner.right() <= outer.right() &&
         inner.bottom() <= outer.bottom();
}

Point NearestPoint(const Box& box, Point to) {
  return {std::clamp(to.x, box.x, box.right()), std::clamp(to.y, box.y, box.bottom())};
}

bool ClampTo(const Box& box, Point* at) {
  const Point before = *at;
  at->x = std::clamp(at->x, box.x, box.right());
  at->y = std::clamp(at->y, box.y, box.bottom());
  return std::fabs(at->x - before.x) > 0.5 || std::fabs(at->y - before.y) > 0.5;
}

// This is the slab method.
bool Crosses(Point from, Point to, const Box& box) {
  double enter = 0, leave = 1;
  const auto slab = [&](double start, double delta, double low, double high) {
    if (delta == 0) return start >= low && start <= high;
    const double a = (low - start) / delta, b = (high - start) / delta;
    enter = std::max(enter, std::min(a, b));
    leave = std::min(leave, std::max(a, b));
    return enter <= leave;
  };
  return slab(from.x, to.x - from.x, box.x, box.right()) && slab(from.y, to.y - from.y, box.y, box.bottom());
}

bool Meet(Point a, Point b, Point c, Point d) {
  const auto side = [](Point p, Point q, Point r) { return (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x); };
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
}

int DecadeBelow(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }
int DecadeAbove(double value) { return static_cast<int>(std::ceil(std::log10(value) - 1e-9)); }

double LogPosition(const Decades& axis, double value, double at_low, double at_high) {
  return at_low + (std::log10(value) - axis.low) / (axis.high - axis.low) * (at_high - at_low);
}

}  // namespace rfinject::cli
