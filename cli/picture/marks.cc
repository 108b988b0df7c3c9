#include "cli/picture/marks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cli/picture/mark_shape.h"
#include "cli/picture/names.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr size_t kTopLabels = 8, kTopRunLabels = 24;
constexpr double kLeastLabelledShare = 0.004;
constexpr double kLeastCoveringShare = 0.05;  // of a mark whose label may cover other marks
constexpr size_t kMarksKeptFree = 300;        // the largest; the rest are dots
constexpr double kWholeRadius = 56;           // of a mark that takes all of the GPU time
constexpr double kLeastRadius = 2.2;          // smaller ones could not be seen
constexpr double kRunRadius = 6;              // of a mark that is a whole run
constexpr double kLeaderFrom = 8;             // pixels between a mark and its label from which a line joins them
constexpr double kLeastDrop = 3;              // pixels; a shorter line to a target is not drawn
constexpr double kDropThickness = 2;          // pixels that labels leave to such a line
constexpr double kHalfCap = 4;                // of the tick at the line's end

Box MarkBox(const Mark& mark) {
  const Box extent = MarkExtent(mark.phase, mark.radius);
  return {mark.at.x + extent.x, mark.at.y + extent.y, extent.width, extent.height};
}

// A mark that is named, and how many more lie there.
struct Group {
  const Mark* mark;
  size_t more = 0;
};

std::vector<Group> NamedMarks(const Report& report, const Picture& picture) {
  const std::span<const Row> rows = PictureRows(report);
  const size_t most = report.rows_are_runs ? kTopRunLabels : kTopLabels;
  std::vector<Group> groups;
  for (size_t i = 0; i < std::min(picture.marks.size(), kMarksKeptFree); ++i) {
    const Mark& mark = picture.marks[i];
    if (mark.in_gutter || mark.member) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return Distance(group.mark->at, mark.at) < std::max(5.0, 0.7 * (group.mark->radius + mark.radius));
    });
    if (same != groups.end()) {
      ++same->more;
    } else if (groups.size() < most && (report.rows_are_runs || rows[mark.row].time_share >= kLeastLabelledShare)) {
      groups.push_back({&mark});
    }
  }
  return groups;
}

std::string LabelText(const Report& report, const Group& group, MarkNote note) {
  const Row& row = PictureRows(report)[group.mark->row];
  std::string text = MarkLabel(row, report);
  if (note == MarkNote::kTime) {
    text += " · " + Duration(PerStep(report, row.sums.time_ns()));
  } else if (row.derived.attainable_flop_per_s > 0) {
    text += " · " + Percent(row.derived.attainable_share);
  }
  if (group.more > 0) text += " (+" + std::to_string(group.more) + ")";
  if (group.mark->above_roof) text += " R001";
  return text;
}

// The point of the mark's edge towards `to`, which is `distance` away from its middle.
Point Edge(const Mark& mark, Point to, double distance) {
  const double t = mark.radius / distance;
  return {mark.at.x + (to.x - mark.at.x) * t, mark.at.y + (to.y - mark.at.y) * t};
}

// The line from a mark to its target, from edge to point; none where there is no room for one.
std::optional<std::pair<Point, Point>> DropLine(const Mark& mark) {
  if (!mark.has_target || mark.clipped) return std::nullopt;
  const double gap = Distance(mark.target, mark.at);
  if (gap <= mark.radius + kLeastDrop) return std::nullopt;
  return std::pair(Edge(mark, mark.target, gap), mark.target);
}

}  // namespace

int PhaseOf(const Row& row) { return row.phase ? static_cast<int>(*row.phase) : -1; }

double RadiusOf(double share) {
  return std::max(kLeastRadius, kWholeRadius * std::sqrt(std::clamp(share, 0.0, 1.0)));
}

Mark MakeMark(const Report& report, size_t index) {
  const Row& row = PictureRows(report)[index];
  Mark mark;
  mark.row = index;
  mark.radius = report.rows_are_runs ? kRunRadius : RadiusOf(row.time_share);
  mark.phase = PhaseOf(row);
  mark.precision = DominantPrecision(row.sums.flop());
  mark.above_roof = AboveRoof(report, row);
  mark.member = row.member_of >= 0;
  return mark;
}

void PlaceMark(const Box& frame, Point at, Mark* mark) {
  mark->pin = at;
  mark->clipped = ClampTo(frame, &mark->pin);
  mark->at = mark->pin;
  if (!mark->clipped) return;
  const Box extent = MarkExtent(mark->phase, mark->radius);
  const auto inside = [](double value, double pinned, double low, double high) {
    if (value == pinned) return pinned;
    return low < high ? std::clamp(pinned, low, high) : (low + high) / 2;
  };
  mark->at.x = inside(at.x, mark->pin.x, frame.x - extent.x, frame.right() - extent.right());
  mark->at.y = inside(at.y, mark->pin.y, frame.y - extent.y, frame.bottom() - extent.bottom());
}

std::vector<size_t> RowsByTime(const Report& report) {
  const std::span<const Row> rows = PictureRows(report);
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].sums.time_ns() > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows[a].sums.time_ns() > rows[b].sums.time_ns(); });
  return order;
}

void SortAndBlock(Labels* labels, Picture* out) {
  std::stable_sort(out->marks.begin(), out->marks.end(), [](const Mark& a, const Mark& b) {
    return a.member != b.member ? b.member : a.radius > b.radius;
  });
  for (size_t i = 0; i < std::min(out->marks.size(), kMarksKeptFree); ++i) {
    if (!out->marks[i].in_gutter && !out->marks[i].member) labels->BlockIfPossible(MarkBox(out->marks[i]));
  }
}

void BlockDropLines(const Report& report, const Picture& picture, Labels::May may, Labels* labels) {
  for (const Group& group : NamedMarks(report, picture)) {
    if (const auto drop = DropLine(*group.mark)) labels->BlockLine(drop->first, drop->second, kDropThickness, may);
  }
}

void LabelMarks(const Report& report, MarkNote note, Labels* labels, Picture* out) {
  const std::span<const Row> rows = PictureRows(report);
  const std::vector<Group> groups = NamedMarks(report, *out);
  for (const Group& group : groups) labels->Block(MarkBox(*group.mark));
  for (const Group& group : groups) {
    const Mark& mark = *group.mark;
    const std::vector<Text> places = Around(mark.above_roof ? "la bad" : "la", LabelText(report, group, note),
                                            mark.at, MarkExtent(mark.phase, mark.radius).right(), kText);
    const bool spare_marks = rows[mark.row].time_share < kLeastCoveringShare;
    const std::optional<Text> placed = labels->Place(places, &mark.at, spare_marks);
    if (!placed) continue;  // it is in the table and in the tooltip
    out->texts.push_back(*placed);
    const Point near = NearestPoint(placed->box, mark.at);
    const double distance = Distance(near, mark.at);
    if (distance > mark.radius + kLeaderFrom) {
      out->lines.push_back({"le", {Edge(mark, near, distance), near}});
      labels->BlockLeader(mark.at, near);
    }
    const auto drop = DropLine(mark);
    if (!drop) continue;
    out->lines.push_back({"dr", {drop->first, drop->second}});
    if (note == MarkNote::kShareOfAttainable) {
      out->lines.push_back(
          {"dc", {{mark.target.x - kHalfCap, mark.target.y}, {mark.target.x + kHalfCap, mark.target.y}}});
    }
  }
}

}  // namespace rfinject::cli
