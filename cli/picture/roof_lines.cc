#include "cli/picture/roof_lines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/picture/roof_labels.h"
#include "cli/report/rows/picture_data.h"
#include "cli/report/rows/roofs.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr double kLineThickness = 3;  // pixels that labels leave to a roof

// Returns the points of a roof from the left edge over the knee, where it is inside the frame, to the right edge.
std::vector<Point> PointsOf(const RoofLine& roof, const LogLog& axes) {
  const double least_oi = std::pow(10.0, axes.horizontal.low), most_oi = std::pow(10.0, axes.horizontal.high);
  const double ridge = RidgeOf(roof);
  const double left_rate = ridge > least_oi ? roof.bytes_per_s * least_oi : roof.peak_flop_per_s;
  std::vector<Point> points = {{axes.box.x, axes.Y(left_rate)}};
  if (ridge > least_oi && ridge < most_oi) points.push_back({axes.X(ridge), axes.Y(roof.peak_flop_per_s)});
  points.push_back({axes.box.right(), axes.Y(std::min(roof.peak_flop_per_s, roof.bytes_per_s * most_oi))});
  return points;
}

}  // namespace

bool PrecisionUsed(std::span<const RoofLine> roofs, const RoofLine& of) {
  return std::any_of(roofs.begin(), roofs.end(), [&](const RoofLine& roof) {
    return roof.used && roof.peak_flop_per_s > 0 && roof.precision == of.precision;
  });
}

bool Drawn(std::span<const RoofLine> roofs, const RoofLine& of) {
  if (of.path.empty() || PrecisionUsed(roofs, of)) return true;
  return std::none_of(roofs.begin(), roofs.end(), [&](const RoofLine& roof) {
    return roof.precision == of.precision && roof.kind == of.kind && roof.peak_flop_per_s > of.peak_flop_per_s;
  });
}

std::vector<const RoofLine*> DrawnRoofs(std::span<const RoofLine> roofs) {
  std::vector<const RoofLine*> drawn;
  for (const RoofLine& roof : roofs) {
    if (roof.peak_flop_per_s > 0 && roof.bytes_per_s > 0 && Drawn(roofs, roof)) drawn.push_back(&roof);
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const RoofLine* a, const RoofLine* b) { return a->used < b->used; });
  return drawn;
}

std::string LineKindCss(RoofKind kind) {
  if (kind == RoofKind::kMeasuredClock) return " dash";
  if (kind == RoofKind::kEmpirical) return " dot";
  return "";
}

std::string RoofTone(const RoofLine& roof, bool used) {
  return used ? "p" + std::to_string(static_cast<int>(roof.precision)) : "faint";
}

std::vector<Slope> AddRoofs(const Report& report, const std::vector<const RoofLine*>& roofs, const LogLog& axes,
                            Labels* labels, Picture* out) {
  const bool any_used = std::any_of(roofs.begin(), roofs.end(), [](const RoofLine* roof) { return roof->used; });
  double highest_peak = 0;  // that the run uses
  for (const RoofLine* roof : roofs) {
    if (roof->used || !any_used) highest_peak = std::max(highest_peak, roof->peak_flop_per_s);
  }
  std::vector<Slope> slopes;
  for (const RoofLine& roof : report.roofs) {  // bandwidths alone reach up to the highest peak
    if (roof.peak_flop_per_s > 0 || !(roof.bytes_per_s > 0)) continue;
    slopes.push_back({roof.bytes_per_s, highest_peak / roof.bytes_per_s, roof.level, roof.kind});
  }
  for (const RoofLine* roof : roofs) {
    std::vector<Point> points = PointsOf(*roof, axes);
    for (size_t i = 1; i < points.size(); ++i) labels->BlockLine(points[i - 1], points[i], kLineThickness);
    out->lines.push_back({"ro " + RoofTone(*roof, roof->used) + LineKindCss(roof->kind), std::move(points)});
    auto slope = std::find_if(slopes.begin(), slopes.end(), [&](const Slope& s) {
      return s.level == roof->level && s.bytes_per_s == roof->bytes_per_s;  // of whatever kind
    });
    if (slope == slopes.end()) slope = slopes.insert(slope, {roof->bytes_per_s, 0, roof->level, roof->kind});
    if (roof->used || !any_used) slope->end_oi = std::max(slope->end_oi, RidgeOf(*roof));
  }
  return slopes;
}

void AddSlopes(const std::vector<Slope>& slopes, const LogLog& axes, Labels* labels, Picture* out) {
  const double least_oi = std::pow(10.0, axes.horizontal.low), most_oi = std::pow(10.0, axes.horizontal.high);
  for (const Slope& slope : slopes) {
    const double end = std::min(slope.end_oi, most_oi);
    if (end <= least_oi) continue;
    const Point from{axes.box.x, axes.Y(slope.bytes_per_s * least_oi)};
    const Point to{axes.X(end), axes.Y(slope.bytes_per_s * end)};
    out->lines.push_back({"ro me" + LineKindCss(slope.kind), {from, to}});
    std::string text = absl::StrFormat("%s %s", MemoryLevelName(slope.level), WithPrefix(slope.bytes_per_s, "B/s"));
    if (slope.kind != RoofKind::kDatasheet) absl::StrAppendFormat(&text, " (%s)", RoofKindName(slope.kind));
    LabelSlope(text, from, to, labels, out);
  }
}

}  // namespace rfinject::cli
