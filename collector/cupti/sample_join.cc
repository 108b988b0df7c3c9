#include "collector/cupti/sample_join.h"

#include <algorithm>
#include <cstddef>

#include "collector/cupti/clock_fit.h"
#include "collector/cupti/sample_timeline.h"

namespace rfinject::cupti {
namespace {

using Sample = SampleTimeline::Sample;
using Segment = SampleTimeline::Segment;

// A kernel counts as sampled where all of it but this lies in samples: times of records and samples are rounded.
constexpr double kRounding = 1e-3;
// A kernel that begins a little before the one ahead of it has ended is still taken as alone: what it moves in that
// part of its time follows from the rest.
constexpr double kMostOverlap = 0.1;

class Divider {
 public:
  Divider(const SampleWindow& window, const std::vector<TimedKernel>& kernels, const SampleTimeline& timeline,
          const SampleClock& clock)
      : window_(window),
        kernels_(kernels),
        timeline_(timeline),
        clock_(clock),
        metrics_(window.metrics),
        inside_(kernels.size()),
        covered_ns_(kernels.size()) {
    for (const Segment& segment : timeline.segments()) {
      for (uint32_t m = 0; m < segment.count; ++m) {
        Inside& inside = inside_[timeline.member(segment, m)];
        inside.ns += segment.end - segment.begin;
        inside.overlap_ns += segment.count > 1 ? segment.end - segment.begin : 0;
      }
    }
  }

  void Divide(const std::vector<double>& fitted, Joined* joined);

 private:
  // The samples wholly inside a kernel while nothing else ran.
  struct Inside {
    uint32_t count = 0;
    size_t first = 0, last = 0;
    double ns = 0, overlap_ns = 0;  // of the kernel

    bool alone() const { return count > 0 && overlap_ns <= kMostOverlap * ns; }
  };
  // A kernel in a sample.
  struct Piece {
    uint32_t kernel;
    double ns;
  };

  void LookInside();
  void FindPieces(const Sample& sample);
  double Expected(const Piece& piece, size_t sample, size_t metric) const;
  void GiveOut(const Sample& sample, size_t metric, double value, Joined* joined) const;
  void NoteShared(const Sample& sample, Joined* joined) const;
  double Rate(size_t sample, size_t metric) const {
    return window_.values[sample * metrics_ + metric] /
           (timeline_.End(sample, clock_) - timeline_.Begin(sample, clock_));
  }

  const SampleWindow& window_;
  const std::vector<TimedKernel>& kernels_;
  const SampleTimeline& timeline_;
  const SampleClock clock_;
  const size_t metrics_;
  std::vector<Inside> inside_;
  std::vector<double> covered_ns_;
  std::vector<Piece> pieces_;  // of the sample that is looked at
  double sampled_ns_ = 0;      // of it, in the kernels' time
  double busy_ns_ = 0;         // of it, while at least one kernel ran
};

void Divider::Divide(const std::vector<double>& fitted, Joined* joined) {
  LookInside();
  double in_kernels = 0, in_all = 0;
  timeline_.Walk(clock_, [&](const Sample& sample) {
    FindPieces(sample);
    if (sample.whole) {
      in_all += fitted[sample.index];
      in_kernels += fitted[sample.index] * busy_ns_ / sample.length();
    }
    if (pieces_.empty()) return;
    // A sample that reaches out of the kernels' time is divided as if that part of it were like the other.
    const double part = sampled_ns_ / sample.length();
    for (size_t m = 0; m < metrics_; ++m) {
      GiveOut(sample, m, window_.values[sample.index * metrics_ + m] * part, joined);
    }
    if (sample.whole) NoteShared(sample, joined);
  });
  for (size_t k = 0; k < kernels_.size(); ++k) {
    Joined::Kernel& kernel = joined->kernels[k];
    const double ns = inside_[k].ns;
    kernel.samples = inside_[k].count;
    kernel.whole = ns > 0 && covered_ns_[k] >= (1 - kRounding) * ns;
    kernel.alone = kernel.whole && inside_[k].alone();
  }
  joined->share_in_kernels = in_all > 0 ? in_kernels / in_all : 0;
}

void Divider::LookInside() {
  timeline_.Walk(clock_, [&](const Sample& sample) {
    if (sample.parts != 1 || !sample.whole || sample.first->count != 1) return;
    Inside& inside = inside_[timeline_.member(*sample.first, 0)];
    if (inside.count++ == 0) inside.first = sample.index;
    inside.last = sample.index;
  });
}

void Divider::FindPieces(const Sample& sample) {
  pieces_.clear();
  sampled_ns_ = busy_ns_ = 0;
  for (size_t p = 0; p < sample.parts; ++p) {
    const Segment& segment = sample.first[p];
    const double ns = sample.Overlap(p);
    sampled_ns_ += ns;
    busy_ns_ += segment.count > 0 ? ns : 0;
    for (uint32_t m = 0; m < segment.count; ++m) {
      const uint32_t kernel = timeline_.member(segment, m);
      covered_ns_[kernel] += ns;
      auto piece = pieces_.begin();
      while (piece != pieces_.end() && piece->kernel != kernel) ++piece;
      piece == pieces_.end() ? pieces_.push_back({kernel, ns}) : void(piece->ns += ns);
    }
  }
}

// What a kernel moves in its piece of a sample, by the nearest sample inside of it: rates at a kernel's ends differ
// from its mean, as the last blocks write what all have computed.
double Divider::Expected(const Piece& piece, size_t sample, size_t metric) const {
  const Inside& inside = inside_[piece.kernel];
  const size_t nearest = sample <= inside.first ? inside.first : sample >= inside.last ? inside.last : sample;
  return piece.ns * Rate(nearest, metric);
}

void Divider::GiveOut(const Sample& sample, size_t metric, double value, Joined* joined) const {
  double expected = 0, squares = 0, unknown_ns = 0, ns = 0;
  for (const Piece& piece : pieces_) {
    ns += piece.ns;
    if (!inside_[piece.kernel].alone()) {
      unknown_ns += piece.ns;
      continue;
    }
    const double one = Expected(piece, sample.index, metric);
    expected += one;
    squares += one * one;
  }
  const double rest = value - expected;
  for (const Piece& piece : pieces_) {
    const bool known = inside_[piece.kernel].alone();
    const double one = known ? Expected(piece, sample.index, metric) : 0;
    double share = one;
    if (unknown_ns > 0 && rest >= 0) {
      if (!known) share = rest * piece.ns / unknown_ns;
    } else if (squares > 0) {
      share += rest * one * one / squares;
    } else {
      share = value * piece.ns / ns;
    }
    joined->values[piece.kernel * metrics_ + metric] += share;
  }
}

void Divider::NoteShared(const Sample& sample, Joined* joined) const {
  Joined::Shared shared{static_cast<uint32_t>(joined->parts.size()), 0};
  for (const Piece& piece : pieces_) {
    if (inside_[piece.kernel].alone()) continue;
    const TimedKernel& kernel = kernels_[piece.kernel];
    joined->parts.push_back({piece.kernel, piece.ns / static_cast<double>(kernel.end_ns - kernel.start_ns)});
    ++shared.count;
  }
  if (shared.count == 0) return;
  joined->shared.push_back(shared);
  for (size_t m = 0; m < metrics_; ++m) {
    double rest = window_.values[sample.index * metrics_ + m];
    for (const Piece& piece : pieces_) {
      if (inside_[piece.kernel].alone()) rest -= Expected(piece, sample.index, m);
    }
    joined->rest.push_back(rest);
  }
}

}  // namespace

Joined JoinSamples(const SampleWindow& window, const std::vector<TimedKernel>& kernels, const JoinOptions& options) {
  Joined joined;
  joined.metrics = window.metrics;
  if (kernels.empty() || window.size() == 0 || window.metrics == 0) return joined;
  std::vector<double> fitted(window.size());
  for (size_t i = 0; i < window.size(); ++i) {
    for (size_t m = 0; m < std::min(options.fitted_metrics, window.metrics); ++m) {
      fitted[i] += window.values[i * window.metrics + m];
    }
  }
  const SampleTimeline timeline(window, kernels, options.first_sample_ns);
  const ClockFit fit = FitClock(timeline, kernels, fitted, options);
  joined.verdict = fit.verdict;
  joined.unexplained = fit.unexplained;
  joined.offset_ns = fit.clock.offset_ns;
  joined.ticks_per_ns = fit.clock.ticks_per_ns;
  if (!joined.fits()) return joined;
  joined.kernels.resize(kernels.size());
  joined.values.resize(kernels.size() * window.metrics);
  Divider(window, kernels, timeline, fit.clock).Divide(fitted, &joined);
  return joined;
}

}  // namespace rfinject::cupti
