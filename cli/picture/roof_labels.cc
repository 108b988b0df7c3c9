#include "cli/picture/roof_labels.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/picture/roof_lines.h"
#include "cli/report/rows/picture_data.h"
#include "cli/report/rows/roofs.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

// Peaks that differ by less than this, relatively, are one line on the paper.
constexpr double kSamePlace = 0.005;
constexpr double kMostOfPlot = 0.85;  // of its width, for a label

// For what must be said: farther away, with a line to it.
void AddWithLeader(const std::string& css, const std::string& text, Point at, double size, Labels* labels,
                   Picture* out) {
  const std::optional<Text> placed = labels->Place(Around(css, text, at, 12, size), &at);
  if (!placed) return;
  const Point near = NearestPoint(placed->box, at);
  out->lines.push_back({"le", {at, near}});
  labels->BlockLeader(at, near);
  out->texts.push_back(*placed);
}

}  // namespace

std::vector<RoofLabel> RoofLabels(std::span<const RoofLine> roofs) {
  std::vector<RoofLabel> labels;
  for (const RoofLine& roof : roofs) {
    if (!(roof.peak_flop_per_s > 0) || !Drawn(roofs, roof)) continue;
    // Levels below DRAM repeat the same peaks.
    const bool drawn_before = std::any_of(labels.begin(), labels.end(), [&](const RoofLabel& other) {
      return other.roof->precision == roof.precision && other.roof->path == roof.path &&
             other.roof->peak_flop_per_s == roof.peak_flop_per_s && other.roof->kind == roof.kind;
    });
    if (drawn_before) continue;
    // A measured rate stands behind the datasheet's: "TF32 tensor, 156 TFLOP/s, 125 T empirical".
    const auto datasheet = std::find_if(labels.begin(), labels.end(), [&](const RoofLabel& other) {
      return other.roof->precision == roof.precision && (other.roof->path == roof.path || roof.path.empty()) &&
             other.roof->kind == RoofKind::kDatasheet && roof.kind != RoofKind::kDatasheet;
    });
    if (datasheet != labels.end()) {
      absl::StrAppendFormat(&datasheet->text, ", %s %s", WithPrefix(roof.peak_flop_per_s, ""),
                            RoofKindName(roof.kind));
      continue;
    }
    const auto same = std::find_if(labels.begin(), labels.end(), [&](const RoofLabel& other) {
      return other.roof->kind == roof.kind &&
             std::fabs(other.roof->peak_flop_per_s - roof.peak_flop_per_s) <= kSamePlace * roof.peak_flop_per_s;
    });
    if (same == labels.end()) {
      labels.push_back({RoofTitleAndRate(roof), &roof, roof.used});
      continue;
    }
    const std::string name = RoofTitle(roof);
    const size_t other_comma = same->text.rfind(", ");
    std::string names = same->text.substr(0, other_comma);
    const std::string rest = other_comma == std::string::npos ? "" : same->text.substr(other_comma);
    // "FP16, BF16 tensor (mma)"
    const size_t tensor = name.rfind(" tensor");
    if (tensor != std::string::npos && names.ends_with(name.substr(tensor))) {
      names.resize(names.size() - (name.size() - tensor));
    }
    same->text = names + ", " + name + rest;
    if (roof.used && !same->used) same->roof = &roof;
    same->used |= roof.used;
  }
  for (RoofLabel& label : labels) {
    if (label.roof->kind != RoofKind::kDatasheet) {
      absl::StrAppendFormat(&label.text, " (%s)", RoofKindName(label.roof->kind));
    }
  }
  return labels;
}

void LabelSlope(const std::string& text, Point from, Point to, Labels* labels, Picture* out) {
  // A slanted text does not fill its bounding box, so small boxes along it stand for it.
  constexpr int kPieces = 10;
  const double angle = std::atan2(to.y - from.y, to.x - from.x);
  const double length = TextWidth(text) * kText;
  const Point along{std::cos(angle), std::sin(angle)};
  for (const Labels::Avoid avoid : {Labels::Avoid::kTextsAndMarks, Labels::Avoid::kTexts}) {
    for (const double aside : {6.0, -14.0}) {
      for (double start = 26; start < 330; start += 38) {
        const Point base{from.x + along.x * start + along.y * aside, from.y + along.y * start - along.x * aside};
        std::vector<Box> pieces;
        for (int i = 0; i < kPieces; ++i) {
          const double middle = length * (i + 0.5) / kPieces;
          const Point at{base.x + along.x * middle + along.y * 4, base.y + along.y * middle - along.x * 4};
          const double half = length / kPieces / 2 + 4;
          pieces.push_back({at.x - half, at.y - half, 2 * half, 2 * half});
        }
        const auto free = [&](const Box& piece) { return labels->Free(piece, avoid); };
        if (!std::all_of(pieces.begin(), pieces.end(), free)) continue;
        for (const Box& piece : pieces) labels->Block(piece);
        Text label = MakeText("la me", text, base, Anchor::kStart, kText);
        label.rotate = angle * 180 / std::numbers::pi;
        out->texts.push_back(std::move(label));
        return;
      }
    }
  }
  const Point middle{(from.x + to.x) / 2, (from.y + to.y) / 2};
  AddWithLeader("la me", text, middle, kText, labels, out);
}

void LabelPeaks(const Report& report, const LogLog& axes, bool used, Labels* labels, Picture* out) {
  const Box& plot = axes.box;
  std::vector<RoofLabel> wanted = RoofLabels(report.roofs);
  std::stable_partition(wanted.begin(), wanted.end(), [&](const RoofLabel& label) {
    return !label.roof->path.empty() && PrecisionUsed(report.roofs, *label.roof);
  });
  struct Aside {
    std::string css, text;
    Point on_line;
  };
  std::vector<Aside> aside;
  for (const RoofLabel& label : wanted) {
    if (label.used != used || !(label.roof->peak_flop_per_s > 0) || !(label.roof->bytes_per_s > 0)) continue;
    // Where the line is shorter than all that could be said of it, its name and rate must do.
    const bool fits = TextWidth(label.text) * kText < kMostOfPlot * plot.width;
    const std::string text = fits ? label.text : RoofTitleAndRate(*label.roof);
    const std::string css = "la " + RoofTone(*label.roof, used);
    const double y = axes.Y(label.roof->peak_flop_per_s);
    const double width = TextWidth(text) * kText;
    const double ridge_x = axes.X(RidgeOf(*label.roof));
    // The second path of a precision that the run uses is said even where it is full: left of its ridge, because the
    // other path's line lies close above.
    const bool beside_used = !used && !label.roof->path.empty() && PrecisionUsed(report.roofs, *label.roof);
    const Text left_of_ridge = MakeText(css, text, {ridge_x - 10, y + 4}, Anchor::kEnd, kText);
    std::vector<Text> candidates;
    if (beside_used) candidates.push_back(left_of_ridge);
    // There is nothing above and left of a ridge that a label could cover.
    for (double right = plot.right() - 6; right > ridge_x - 8; right -= 24) {
      candidates.push_back(MakeText(css, text, {right, y - 5}, Anchor::kEnd, kText));
      if (right - width > ridge_x + 8) {
        candidates.push_back(MakeText(css, text, {right, y + 13}, Anchor::kEnd, kText));
      }
    }
    candidates.push_back(left_of_ridge);
    if (const std::optional<Text> placed = labels->Place(candidates)) {
      out->texts.push_back(*placed);
    } else {
      const Point on_line{(std::max(ridge_x, plot.x) + plot.right()) / 2, y};
      if (Inside({on_line.x, on_line.y, 0, 0}, plot)) aside.push_back({css, text, on_line});
    }
  }
  // This comes after all others have their places: a label away from its roof must not take the place of another
  // roof's.
  for (const Aside& label : aside) AddWithLeader(label.css, label.text, label.on_line, kText, labels, out);
}

void LabelRidges(const std::vector<const RoofLine*>& roofs, const LogLog& axes, bool used, Labels* labels,
                 Picture* out) {
  const Box& plot = axes.box;
  for (const RoofLine* roof : roofs) {
    if (roof->used != used) continue;
    const double ridge = RidgeOf(*roof);
    const Point at{axes.X(ridge), axes.Y(roof->peak_flop_per_s)};
    if (at.x <= plot.x || at.x >= plot.right()) continue;
    const bool marked = std::any_of(out->symbols.begin(), out->symbols.end(),
                                    [&](const Symbol& other) { return Distance(other.at, at) < 1; });
    if (marked) continue;  // of a roof with the same peak
    const bool named = used && roof->kind == RoofKind::kDatasheet;
    out->symbols.push_back({"ri " + RoofTone(*roof, used), -1, at, 3.5});
    labels->Block({at.x - 4, at.y - 4, 8, 8});
    const std::string text = (named ? "ridge " : "") + Plain(ridge) + (named ? " FLOP/B" : "");
    const double width = TextWidth(text) * kSmallText;
    std::vector<Text> candidates;
    for (const Point p : {Point{-6, -6}, Point{8 + width, 14}, Point{-10, 4}, Point{-10, -17}, Point{width * 0.6, -7},
                          Point{width * 0.6, 16}}) {
      candidates.push_back(
          MakeText("la rt " + RoofTone(*roof, used), text, {at.x + p.x, at.y + p.y}, Anchor::kEnd, kSmallText));
    }
    if (const std::optional<Text> placed = labels->Place(candidates, nullptr, true)) {
      out->texts.push_back(*placed);
    } else if (named) {
      AddWithLeader("la rt " + RoofTone(*roof, used), text, at, kSmallText, labels, out);
    }
  }
}

}  // namespace rfinject::cli
