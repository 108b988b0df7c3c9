#include "cli/picture/frames.h"

#include <algorithm>
#include <cmath>

#include "cli/picture/marks.h"
#include "cli/report/rows/picture_data.h"

namespace rfinject::cli {
namespace {

constexpr double kLeftmostOi = 1e-2;  // FLOP per byte; an element-wise kernel is near 10^-1
constexpr double kHeadroom = 1.2;     // of the performance axis above the highest peak, for its label
constexpr int kTimeDecades = 6;

}  // namespace

Frames FramesFor(std::span<const Report> reports) {
  Frames frames;
  double highest_ridge = 0, highest_peak = 0, lowest_bandwidth = INFINITY;
  double high_oi = 0, high_performance = 0, low_performance = INFINITY, longest = 0;
  for (const Report& report : reports) {
    frames.time_shares |= !report.rows_are_runs;
    for (const RoofLine& roof : report.roofs) {
      if (std::find(frames.roof_kinds.begin(), frames.roof_kinds.end(), roof.kind) == frames.roof_kinds.end()) {
        frames.roof_kinds.push_back(roof.kind);
      }
      frames.unused_roofs |= !roof.used;
      if (!(roof.bytes_per_s > 0)) continue;
      if (roof.level == MemoryLevel::kDram) lowest_bandwidth = std::min(lowest_bandwidth, roof.bytes_per_s);
      if (!(roof.peak_flop_per_s > 0)) continue;
      highest_ridge = std::max(highest_ridge, RidgeOf(roof));
      highest_peak = std::max(highest_peak, roof.peak_flop_per_s);
    }
    frames.shortest_launch |= report.queue.shortest_ns > 0;
    for (const Row& row : PictureRows(report)) {
      frames.phases.insert(PhaseOf(row));
      frames.levels |= row.sums.l2_bytes() > 0 || row.sums.l1_bytes() > 0;
      frames.precisions.insert(DominantPrecision(row.sums.flop()));
      if (row.sums.total_flop() > 0) {
        if (std::isfinite(row.derived.oi_flop_per_byte)) high_oi = std::max(high_oi, row.derived.oi_flop_per_byte);
        if (row.derived.performance_flop_per_s > 0) {
          high_performance = std::max(high_performance, row.derived.performance_flop_per_s);
          low_performance = std::min(low_performance, row.derived.performance_flop_per_s);
        }
      } else if (row.sums.time_ns() > 0) {
        frames.gutter = true;
      }
      longest = std::max({longest, PerStep(report, row.sums.time_ns()), PerStep(report, row.sums.least_compute_ns()),
                          PerStep(report, row.sums.least_memory_ns())});
    }
  }
  const bool roofs = highest_peak > 0;
  frames.oi = {DecadeBelow(kLeftmostOi),
               roofs ? DecadeAbove(highest_ridge * 10) : DecadeAbove(std::max(high_oi, 1e2))};
  if (roofs) {
    frames.performance = {DecadeBelow(lowest_bandwidth * kLeftmostOi / 10), DecadeAbove(highest_peak * kHeadroom)};
  } else if (high_performance > 0) {
    frames.performance = {DecadeBelow(low_performance), DecadeAbove(high_performance * kHeadroom)};
  } else {
    frames.performance = {9, 15};
  }
  frames.oi.high = std::max(frames.oi.high, frames.oi.low + 1);
  frames.performance.high = std::max(frames.performance.high, frames.performance.low + 1);
  const int top = longest > 0 && std::isfinite(longest) ? DecadeAbove(longest) : 6;
  frames.time = {top - kTimeDecades, top};
  return frames;
}

}  // namespace rfinject::cli
