#include "cli/picture/diff_picture.h"

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/picture/roofline.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

constexpr Size kAlone = {900, 660};
constexpr Size kSizeBeside = {700, 580};
constexpr size_t kMostArrows = 20;    // of the largest changes of time; the rest would be a thicket
constexpr double kShortestArrow = 6;  // pixels; what moved less stays a point
constexpr double kHollowRadius = 3.5;

const Mark* MarkOf(const Picture& picture, size_t row) {
  for (const Mark& mark : picture.marks) {
    if (mark.row == row && !mark.in_gutter) return &mark;
  }
  return nullptr;
}

// The row of `report`'s pictures that `wanted` is; its size where there is none.
size_t Find(std::span<const Row> rows, const DiffRow& wanted, bool one_model) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool model =
        rows[i].model == wanted.model || (one_model && !rows[i].model.empty() && !wanted.model.empty());
    if (model && rows[i].layer == wanted.layer && rows[i].phase == wanted.phase) return i;
  }
  return rows.size();
}

void AddArrow(Point from, Point to, Picture* picture) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length < kShortestArrow) return;
  const Point along{(to.x - from.x) / length, (to.y - from.y) / length};
  constexpr double kHead = 7, kHalf = 3.2;
  const Point base{to.x - along.x * kHead, to.y - along.y * kHead};
  picture->lines.push_back({"dc", {from, to}});
  picture->lines.push_back({"dc",
                            {{base.x - along.y * kHalf, base.y + along.x * kHalf},
                             to,
                             {base.x + along.y * kHalf, base.y - along.x * kHalf}}});
}

// `after`'s roofline with hollow marks where the rows were before, and arrows. Both pictures have the same frames and
// size, so a position means the same in both.
Picture WithArrows(const RunDiff& pair, const Frames& frames, Size size) {
  const Picture before = LayOutRoofline(pair.before, frames, size);
  const Picture unmoved = LayOutRoofline(pair.after, frames, size);
  const std::span<const Row> before_rows = PictureRows(pair.before), after_rows = PictureRows(pair.after);
  const bool one_model = pair.before.run.models.size() == 1 && pair.after.run.models.size() == 1;
  std::vector<std::pair<Point, Point>> arrows;
  std::vector<Symbol> hollow;
  for (const DiffRow& row : pair.rows) {
    if (arrows.size() >= kMostArrows) break;
    if (!row.in_before || !row.in_after || !row.Changed()) continue;
    const Mark* from = MarkOf(before, Find(before_rows, row, one_model));
    const Mark* to = MarkOf(unmoved, Find(after_rows, row, one_model));
    if (from == nullptr || to == nullptr) continue;
    if (Distance(from->pin, to->pin) < kShortestArrow) continue;
    hollow.push_back({"sy sy0", from->phase, from->pin, kHollowRadius});
    arrows.push_back({from->pin, to->pin});
  }
  Picture after = LayOutRoofline(pair.after, frames, size, arrows);
  after.symbols.insert(after.symbols.end(), hollow.begin(), hollow.end());
  for (const auto& [from, to] : arrows) AddArrow(from, to, &after);
  for (Text& text : after.texts) {
    if (text.css != "mu") continue;  // the first is the subtitle
    const std::string origin =
        arrows.empty()
            ? "no row moved from where it was in " + pair.before_title
            : "arrows: from where a row was in " + pair.before_title + " (hollow)" +
                  (arrows.size() == kMostArrows ? ", of the " + std::to_string(arrows.size()) + " largest changes"
                                                : "");
    text.text = ElideMiddle(origin, static_cast<size_t>((size.width - 24) / (0.55 * text.size)));
    break;
  }
  after.title = "Change: " + pair.before_title + " to " + pair.after_title;
  return after;
}

bool SameGpu(const RunDiff& pair) { return pair.before.machine.name == pair.after.machine.name; }

}  // namespace

Frames FramesFor(const Diff& diff) {
  std::vector<Report> all;
  for (const RunDiff& pair : diff.pairs) {
    all.push_back(pair.before);
    all.push_back(pair.after);
  }
  return FramesFor(all);
}

std::vector<DiffPicture> LayOutDiff(const RunDiff& pair, const Frames& frames, std::optional<Size> size) {
  std::vector<DiffPicture> pictures;
  if (!SameGpu(pair))
    pictures.push_back({LayOutRoofline(pair.before, frames, size.value_or(kSizeBeside)), &pair.before});
  pictures.push_back({WithArrows(pair, frames, size.value_or(SameGpu(pair) ? kAlone : kSizeBeside)), &pair.after});
  return pictures;
}

}  // namespace rfinject::cli
