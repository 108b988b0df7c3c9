// File: sample_timeline.h
//
// What ran when, and which of it ran in a sample: the ground that clock_fit.h and sample_join.h stand on.
#ifndef RFINJECT_COLLECTOR_CUPTI_SAMPLE_TIMELINE_H_
#define RFINJECT_COLLECTOR_CUPTI_SAMPLE_TIMELINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/cupti/sample_join.h"

namespace rfinject::cupti {

// How ticks become times of kernels.
struct SampleClock {
  double offset_ns = 0;  // from JoinOptions::first_sample_ns to where the first sample begins
  double ticks_per_ns = 1;
};

class SampleTimeline {
 public:
  // A stretch in which the same kernels run, or none. In ns from the first kernel's start.
  struct Segment {
    double begin, end;
    uint32_t first, count;  // of the members
  };
  // A sample and the segments in it, of which there is at least one.
  struct Sample {
    size_t index;
    double begin, end;
    const Segment* first;
    size_t parts;
    bool whole;  // it lies between the first kernel's start and the last one's end

    double length() const { return end - begin; }
    double Overlap(size_t part) const { return std::min(end, first[part].end) - std::max(begin, first[part].begin); }
  };

  // `kernels` are sorted by start, and not empty; `window` is not empty. Both must outlive the object.
  SampleTimeline(const SampleWindow& window, const std::vector<TimedKernel>& kernels, uint64_t first_sample_ns);

  const std::vector<Segment>& segments() const { return segments_; }
  uint32_t member(const Segment& segment, uint32_t i) const { return members_[segment.first + i]; }
  // In ns from the first kernel's start.
  double Time(uint64_t ns) const { return static_cast<double>(static_cast<int64_t>(ns - origin_)); }
  double Begin(size_t sample, const SampleClock& clock) const { return At(window_.begin[sample], clock); }
  double End(size_t sample, const SampleClock& clock) const { return At(window_.end[sample], clock); }

  // Calls `visit` with each sample in which the kernels' time was, in order.
  template <typename Visit>
  void Walk(const SampleClock& clock, Visit visit) const {
    size_t at = 0;
    for (size_t i = 0; i < window_.size(); ++i) {
      Sample sample{i, Begin(i, clock), End(i, clock), nullptr, 0, false};
      while (at < segments_.size() && segments_[at].end <= sample.begin) ++at;
      if (at == segments_.size()) return;
      if (sample.end <= segments_[at].begin || sample.length() <= 0) continue;
      sample.first = &segments_[at];
      while (at + sample.parts < segments_.size() && segments_[at + sample.parts].begin < sample.end) ++sample.parts;
      sample.whole = sample.begin >= segments_.front().begin && sample.end <= segments_.back().end;
      visit(sample);
    }
  }

 private:
  double At(uint64_t tick, const SampleClock& clock) const {
    const auto ticks = static_cast<int64_t>(tick - window_.begin.front());
    return Time(first_sample_ns_) + clock.offset_ns + static_cast<double>(ticks) / clock.ticks_per_ns;
  }

  const SampleWindow& window_;
  uint64_t first_sample_ns_;
  uint64_t origin_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> members_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_SAMPLE_TIMELINE_H_
