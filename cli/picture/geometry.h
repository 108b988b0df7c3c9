// File: geometry.h
//
// Points, boxes and logarithmic axes, in pixels; y grows downwards. Nothing here knows what a picture shows.
#ifndef RFINJECT_CLI_PICTURE_GEOMETRY_H_
#define RFINJECT_CLI_PICTURE_GEOMETRY_H_

#include <cmath>

namespace rfinject::cli {

struct Point {
  double x = 0, y = 0;
};

struct Size {
  double width = 820, height = 640;
};

// Whether a picture is for a phone, where there is little room beside the plot.
inline bool IsNarrow(Size size) { return size.width < 560; }

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

inline double Distance(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

// Whether the boxes share more than an edge.
bool Overlap(const Box& a, const Box& b);

// Whether all of `inner` lies in `outer`; edges may touch.
bool Inside(const Box& inner, const Box& outer);

// The point of `box` that is nearest to `to`.
Point NearestPoint(const Box& box, Point to);

// Clamps the point to `box` and says whether that moved it by more than half a pixel.
bool ClampTo(const Box& box, Point* at);

// Whether the segment touches the box.
bool Crosses(Point from, Point to, const Box& box);

// Whether the segments a-b and c-d cross: both ends of each lie on different sides of the other.
bool Meet(Point a, Point b, Point c, Point d);

// A logarithmic axis from 10^low to 10^high.
struct Decades {
  int low = 0, high = 1;
};

// The exponents of the whole decades that hold `value` (> 0) between them. A value that is a power of ten but for
// rounding is its own decade.
int DecadeBelow(double value);
int DecadeAbove(double value);

// Where `value` (> 0) lies between two pixel positions, one for each end of the axis. It is not clamped.
double LogPosition(const Decades& axis, double value, double at_low, double at_high);

// Two logarithmic axes over a box.
struct LogLog {
  Decades horizontal, vertical;
  Box box;
  double X(double value) const { return LogPosition(horizontal, value, box.x, box.right()); }
  double Y(double value) const { return LogPosition(vertical, value, box.bottom(), box.y); }
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_GEOMETRY_H_
