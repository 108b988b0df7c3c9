// File: memory_curve.h
//
// MemoryCurve keeps how a device's memory went over one step: the step with most behind the first, whose warm-up is
// no other step's.
#ifndef RFINJECT_COLLECTOR_MEMORY_CURVE_H_
#define RFINJECT_COLLECTOR_MEMORY_CURVE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/site.h"
#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject {

using BytesByPhase = std::array<uint64_t, kPhaseNames.size()>;  // of the allocation

// Not thread-safe.
class MemoryCurve {
 public:
  // So much lies there behind an allocation or return; `phase` is what the program is in. May throw std::bad_alloc.
  void Note(uint64_t step, Phase phase, const BytesByPhase& bytes);

  // Ends the step that was noted last. Puts the kept step's points into `*peak` and returns true if they are other
  // ones than were taken last. May throw std::bad_alloc.
  bool Take(trace::MemoryPeak* peak);

 private:
  struct Point {
    Phase phase = Phase::kOther;
    uint64_t sum = 0;
    BytesByPhase bytes{};
  };
  struct Step {
    uint64_t index = 0, most = 0;
    std::vector<Point> points;  // each of `stride` events, but for the last
    size_t stride = 1, in_last = 0;
  };
  static constexpr size_t kMostPoints = 256;

  // Of two points the one with more.
  static void Add(const Point& point, Step* step);
  void EndStep();

  Step now_, kept_;
  bool first_over_ = false;  // a step has ended
  bool kept_first_ = false;  // `kept_` is the first step
  bool changed_ = false;     // since it was taken
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_MEMORY_CURVE_H_
