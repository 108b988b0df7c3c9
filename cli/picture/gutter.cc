#include "cli/picture/gutter.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "cli/picture/axes.h"
#include "cli/picture/mark_shape.h"
#include "cli/picture/marks.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr Decades kPercent = {-1, 2};  // of the bandwidth roof: 0.1 % to 100 %

}  // namespace

std::vector<int> GutterPhases(std::span<const Row> rows) {
  std::vector<int> lanes;
  for (const int phase : {1, 2, 6, 3, 4, 5, 0, -1}) {
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [&](const Row& row) { return PhaseOf(row) == phase && row.sums.total_flop() <= 0; });
    if (any) lanes.push_back(phase);
  }
  return lanes;
}

double LaneX(const Box& gutter, const std::vector<int>& lanes, int phase) {
  const auto found = std::find(lanes.begin(), lanes.end(), phase);
  const double lane = static_cast<double>(found - lanes.begin());
  return gutter.x + gutter.width * (lane + 0.5) / static_cast<double>(std::max<size_t>(lanes.size(), 1));
}

void KeepInGutter(const Box& gutter, Mark* mark) {
  const Box extent = MarkExtent(mark->phase, mark->radius);
  const double low = gutter.x - extent.x, high = gutter.right() - extent.right();
  mark->at.x = low < high ? std::clamp(mark->at.x, low, high) : (low + high) / 2;
}

double BandwidthScale::Y(double share) const { return LogPosition(kPercent, 100 * share, Lowest(), gutter.y + 40); }

void AddBandwidthGutter(const Report& report, Picture* out) {
  const Box& gutter = out->gutter;
  const BandwidthScale scale(gutter);
  const double middle = gutter.x + gutter.width / 2;
  AddFrame(gutter, out);
  out->lines.push_back({"gt", {{gutter.x, gutter.bottom() - 18}, {gutter.right(), gutter.bottom() - 18}}});
  for (int e = kPercent.low; e <= kPercent.high; ++e) {
    const double y = scale.Y(std::pow(10.0, e - 2));
    out->lines.push_back({e == kPercent.high ? "ro me" : "gr", {{gutter.x, y}, {gutter.right(), y}}});
    out->texts.push_back(MakeText("ax", PlainTick(e) + " %", {gutter.x - 5, y + 4}, Anchor::kEnd, kSmallText));
  }
  const auto centred = [&](const char* css, std::string text, double y, double size) {
    out->texts.push_back(MakeText(css, std::move(text), {middle, y}, Anchor::kMiddle, size));
  };
  out->texts.push_back(MakeText("ax", "none", {gutter.x - 5, gutter.bottom() - 5}, Anchor::kEnd, kSmallText));
  const std::string share = Percent(WithoutFlop(report).time_share);
  const bool narrow = IsNarrow(out->size);
  centred("gh", narrow ? "no FLOP" : "no FLOP: " + share, gutter.y + 14, kText);
  centred("mu", narrow ? share + " of time" : "of GPU time", gutter.y + 27, kSmallText);
  centred("ah", "DRAM bandwidth,", gutter.bottom() + 17, kText);
  const double roof = BandwidthRoof(report);
  centred("ah", roof > 0 ? "% of " + WithPrefix(roof, "B/s") : "roof unknown", gutter.bottom() + 31, kText);
}

}  // namespace rfinject::cli
