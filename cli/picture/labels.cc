#include "cli/picture/labels.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rfinject::cli {
namespace {

constexpr double kLinePiece = 8;                // pixels of a slanted line that one box stands for
constexpr double kBeside = 2, kAboveUnder = 1;  // pixels kept free around a label

}  // namespace

void Labels::BlockLine(Point from, Point to, double thickness, May may) {
  const bool straight = from.x == to.x || from.y == to.y;
  const int pieces = straight ? 1 : std::max(1, static_cast<int>(Distance(from, to) / kLinePiece));
  for (int i = 0; i < pieces; ++i) {
    const double a = static_cast<double>(i) / pieces;
    const double b = static_cast<double>(i + 1) / pieces;
    const Point p{from.x + (to.x - from.x) * a, from.y + (to.y - from.y) * a};
    const Point q{from.x + (to.x - from.x) * b, from.y + (to.y - from.y) * b};
    (may == May::kCover ? lines_ : blocked_)
        .push_back({std::min(p.x, q.x) - thickness / 2, std::min(p.y, q.y) - thickness / 2,
                    std::fabs(q.x - p.x) + thickness, std::fabs(q.y - p.y) + thickness});
  }
}

bool Labels::Free(const Box& box, Avoid avoid) const {
  if (!Inside(box, bounds_)) return false;
  const auto hits = [&](const Box& other) { return Overlap(box, other); };
  return std::none_of(blocked_.begin(), blocked_.end(), hits) &&
         (avoid == Avoid::kTexts || std::none_of(marks_.begin(), marks_.end(), hits)) &&
         (avoid != Avoid::kAll || std::none_of(lines_.begin(), lines_.end(), hits));
}

bool Labels::LeaderIsFree(const Box& label, Point target) const {
  const Point end = NearestPoint(label, target);
  return std::none_of(texts_.begin(), texts_.end(), [&](const Box& text) { return Crosses(target, end, text); }) &&
         std::none_of(leaders_.begin(), leaders_.end(),
                      [&](const auto& leader) { return Meet(target, end, leader.first, leader.second); });
}

std::optional<Text> Labels::Place(std::span<const Text> candidates, const Point* target, bool spare_marks) {
  for (const Avoid avoid : {Avoid::kAll, Avoid::kTextsAndMarks, Avoid::kTexts}) {
    if (avoid == Avoid::kTexts && spare_marks) break;
    for (const Text& candidate : candidates) {
      const Box padded{candidate.box.x - kBeside, candidate.box.y - kAboveUnder, candidate.box.width + 2 * kBeside,
                       candidate.box.height + 2 * kAboveUnder};
      const auto covered = [&](const auto& leader) { return Crosses(leader.first, leader.second, padded); };
      if (!Free(padded, avoid) || (target != nullptr && !LeaderIsFree(padded, *target)) ||
          std::any_of(leaders_.begin(), leaders_.end(), covered)) {
        continue;
      }
      blocked_.push_back(padded);
      texts_.push_back(padded);
      return candidate;
    }
  }
  return std::nullopt;
}

std::vector<Text> Around(const std::string& css, const std::string& text, Point at, double radius, double size) {
  std::vector<Text> candidates;
  const double middle = size * 0.35;  // from a text's middle down to its baseline
  const auto add = [&](double x, double y, Anchor anchor) {
    candidates.push_back(MakeText(css, text, {x, y}, anchor, size));
  };
  for (const double away : {3.0, 12.0, 24.0, 40.0, 60.0, 84.0, 112.0, 144.0}) {
    const double d = radius + away;
    add(at.x + d, at.y + middle, Anchor::kStart);
    add(at.x - d, at.y + middle, Anchor::kEnd);
    add(at.x, at.y + d + size * 0.85, Anchor::kMiddle);
    add(at.x, at.y - d - size * 0.25, Anchor::kMiddle);
    for (const double degrees : {45.0, 20.0, 70.0}) {
      const double x = d * std::cos(degrees * std::numbers::pi / 180);
      const double y = d * std::sin(degrees * std::numbers::pi / 180);
      for (const double sx : {1.0, -1.0}) {
        for (const double sy : {1.0, -1.0}) {
          add(at.x + sx * x, at.y + sy * y + middle, sx > 0 ? Anchor::kStart : Anchor::kEnd);
        }
      }
    }
  }
  return candidates;
}

}  // namespace rfinject::cli
