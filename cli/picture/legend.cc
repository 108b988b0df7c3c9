#include "cli/picture/legend.h"

#include <algorithm>

#include "cli/picture/marks.h"
#include "cli/picture/palette.h"

namespace rfinject::cli {

std::vector<LegendItem> MarkLegend(const Frames& frames, Size size) {
  std::vector<LegendItem> items;
  for (const Phase phase : {Phase::kForward, Phase::kEval, Phase::kBackward, Phase::kRecompute, Phase::kOptimizer,
                            Phase::kData, Phase::kCommunication, Phase::kOther}) {
    if (frames.phases.contains(static_cast<int>(phase))) {
      items.push_back(
          {"sy sy0", "", static_cast<int>(phase), 5, std::string(kPhaseNames[static_cast<size_t>(phase)])});
    }
  }
  for (size_t p = 0; p < kPrecisionCount; ++p) {
    if (frames.precisions.contains(static_cast<int>(p))) {
      items.push_back(
          {"sy " + ToneOf(static_cast<int>(p)), "", -1, 5, "most FLOP in " + std::string(kPrecisionTitles[p])});
    }
  }
  if (frames.gutter) items.push_back({"sy pn", "", -1, 5, "no FLOP"});
  if (frames.time_shares) {
    items.push_back({"sy sy0", "", -1, RadiusOf(0.01) * MarkScale(size), "1 % of GPU time,"});
    items.push_back({"sy sy0", "", -1, RadiusOf(0.04) * MarkScale(size), "4 %"});
  }
  return items;
}

int AddLegend(const std::vector<LegendItem>& items, double top, Picture* out) {
  double x = 12;
  int line = 0;
  for (const LegendItem& item : items) {
    const double symbol = item.line_css.empty() ? std::max(10.0, 2 * item.radius) : 24;
    const double width = symbol + 5 + TextWidth(item.text) * kSmallText + 16;
    if (x > 12 && x + width > out->size.width - 4) {
      x = 12;
      ++line;
    }
    const double y = top + line * kLegendLine;
    if (!item.line_css.empty()) {
      out->lines.push_back({item.line_css, {{x, y - 3.5}, {x + symbol, y - 3.5}}});
    } else {
      out->symbols.push_back({item.symbol_css, item.phase, {x + symbol / 2, y - 3.5}, item.radius});
    }
    out->texts.push_back(MakeText("mu", item.text, {x + symbol + 5, y}, Anchor::kStart, kSmallText));
    x += width;
  }
  return line + 1;
}

int LegendLines(const std::vector<LegendItem>& items, double width) {
  Picture scratch;
  scratch.size.width = width;
  return AddLegend(items, 0, &scratch);
}

}  // namespace rfinject::cli
