#include "collector/memory_curve.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rfinject {

void MemoryCurve::Add(const Point& point, Step* step) {
  step->most = std::max(step->most, point.sum);
  if (step->points.empty() || step->in_last == step->stride) {
    if (step->points.size() == kMostPoints) {
      // Two become one, so that all stand for equally many events again.
      for (size_t i = 0; i < kMostPoints / 2; ++i) {
        const Point &a = step->points[2 * i], &b = step->points[2 * i + 1];
        step->points[i] = a.sum >= b.sum ? a : b;
      }
      step->points.resize(kMostPoints / 2);
      step->stride *= 2;
    }
    step->points.push_back(point);
    step->in_last = 1;
    return;
  }
  ++step->in_last;
  if (point.sum > step->points.back().sum) step->points.back() = point;
}

void MemoryCurve::Note(uint64_t step, Phase phase, const BytesByPhase& bytes) {
  if (step != now_.index || now_.points.empty()) {
    EndStep();
    now_.index = step;
    now_.points.reserve(kMostPoints);
  }
  Add({.phase = phase, .sum = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}), .bytes = bytes}, &now_);
}

void MemoryCurve::EndStep() {
  Step ended = std::exchange(now_, {});
  if (ended.points.empty()) return;
  const bool first = !std::exchange(first_over_, true);
  if (!first && !kept_first_ && ended.most <= kept_.most) return;
  kept_ = std::move(ended);
  kept_first_ = first;
  changed_ = true;
}

bool MemoryCurve::Take(trace::MemoryPeak* peak) {
  EndStep();
  if (!std::exchange(changed_, false)) return false;
  peak->point_step = kept_.index;
  peak->point_phase.clear();
  peak->point_bytes.clear();
  for (const Point& point : kept_.points) {
    peak->point_phase.push_back(static_cast<uint32_t>(point.phase));
    peak->point_bytes.insert(peak->point_bytes.end(), point.bytes.begin(), point.bytes.end());
  }
  return true;
}

}  // namespace rfinject
