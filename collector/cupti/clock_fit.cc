#include "collector/cupti/clock_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

namespace rfinject::cupti {
namespace {

using Sample = SampleTimeline::Sample;
using Segment = SampleTimeline::Segment;

constexpr size_t kLeastSamples = 50;
// So many samples tell about which offset is right; more would only cost time.
constexpr size_t kSearchedSamples = 2000;
// Rates whose standard deviation is below this share of their mean show no kernel's edge.
constexpr double kLevelRates = 0.05;
// A share of the variance. The recordings of h100/pm leave 0.14 and 0.15 unexplained; with their kernels in the
// reverse order, or shuffled, the best offset of all leaves 0.85 to 0.88.
constexpr double kMostUnexplained = 0.5;
constexpr double kNothing = 1;
constexpr double kFinestStepNs = 20;

// Variance about the mean without a second pass.
struct Spread {
  double count = 0, sum = 0, squares = 0;
  void Add(double x) {
    count += 1;
    sum += x;
    squares += x * x;
  }
  double mean() const { return sum / count; }
  double Scatter() const { return count > 0 ? std::max(0.0, squares - sum * sum / count) : 0; }
};

class Fitter {
 public:
  Fitter(const SampleTimeline& timeline, const std::vector<TimedKernel>& kernels, const std::vector<double>& fitted,
         const JoinOptions& options)
      : timeline_(timeline), kernels_(kernels), fitted_(fitted), options_(options) {
    std::unordered_map<uint32_t, uint32_t> number;
    for (const TimedKernel& kernel : kernels) {
      group_.push_back(number.try_emplace(kernel.group, static_cast<uint32_t>(number.size())).first->second);
    }
    groups_ = number.size();
  }

  ClockFit Fit();

 private:
  static ClockFit AsExpected(ClockFit fit);
  bool Search(SampleClock* best) const;
  void Refine(SampleClock* best) const;
  std::optional<double> Unexplained(const SampleClock& clock, size_t stride) const;
  double Error(const SampleClock& clock) const;

  const SampleTimeline& timeline_;
  const std::vector<TimedKernel>& kernels_;
  const std::vector<double>& fitted_;
  const JoinOptions& options_;
  std::vector<uint32_t> group_;  // of each kernel, counted from 0
  size_t groups_ = 0;
  double span_ns_ = 0;
  double interval_ns_ = 0;
};

ClockFit Fitter::Fit() {
  ClockFit fit;
  fit.clock.ticks_per_ns = options_.ticks_per_ns;
  if (fitted_.size() < kLeastSamples) return fit;
  span_ns_ = timeline_.End(fitted_.size() - 1, fit.clock) - timeline_.Begin(0, fit.clock);
  interval_ns_ = span_ns_ / static_cast<double>(fitted_.size());
  Spread all;
  for (size_t i = 0; i < fitted_.size(); ++i) {
    all.Add(fitted_[i] / (timeline_.End(i, fit.clock) - timeline_.Begin(i, fit.clock)));
  }
  if (all.Scatter() / all.count <= kLevelRates * kLevelRates * all.mean() * all.mean()) {
    return AsExpected(fit);
  }
  if (!Search(&fit.clock)) return AsExpected(fit);
  Refine(&fit.clock);
  size_t known = 0;
  timeline_.Walk(fit.clock, [&](const Sample& sample) { known += sample.whole ? 1 : 0; });
  if (known < kLeastSamples) return fit;
  fit.unexplained = Unexplained(fit.clock, 1).value_or(0);
  fit.verdict = fit.unexplained <= kMostUnexplained ? JoinVerdict::kFits : JoinVerdict::kDoesNotFit;
  return fit;
}

ClockFit Fitter::AsExpected(ClockFit fit) {
  fit.verdict = JoinVerdict::kAsExpected;
  fit.unexplained = 0;
  return fit;
}

// Looks for the offset in steps of one interval. Where the ratio of the clocks is not known either, it is looked for
// in steps that move the window's end by one interval. False where no offset can be told from another.
bool Fitter::Search(SampleClock* best) const {
  const size_t stride = 1 + fitted_.size() / kSearchedSamples;
  const double ratio_step = interval_ns_ / span_ns_;
  const auto ratios = static_cast<int>(std::ceil(options_.ticks_tolerance / ratio_step));
  const auto offsets = static_cast<int>(std::ceil(options_.offset_tolerance_ns / interval_ns_));
  double least = std::numeric_limits<double>::infinity();
  const SampleClock expected = *best;
  for (int r = -ratios; r <= ratios; ++r) {
    for (int o = -offsets; o <= offsets; ++o) {
      const SampleClock tried{o * interval_ns_, expected.ticks_per_ns * (1 + r * ratio_step)};
      const std::optional<double> score = Unexplained(tried, stride);
      if (!score.has_value() || *score >= least) continue;
      least = *score;
      *best = tried;
    }
  }
  return least < kNothing;
}

// Goes on from there in smaller and smaller steps of the first sample, the last one, or both.
void Fitter::Refine(SampleClock* best) const {
  struct Move {
    double first, last;
  };
  constexpr Move kMoves[] = {{-1, -1}, {1, 1}, {0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-0.5, 0.5}, {0.5, -0.5}};
  double least = Error(*best);
  for (double step = interval_ns_; step >= kFinestStepNs; step /= 2) {
    for (bool better = true; better;) {
      better = false;
      for (const auto& [first, last] : kMoves) {
        if (first != last && options_.ticks_tolerance == 0) continue;
        const SampleClock tried{best->offset_ns + first * step,
                                best->ticks_per_ns * (1 - (last - first) * step / span_ns_)};
        if (std::abs(tried.offset_ns) > options_.offset_tolerance_ns + interval_ns_) continue;
        const double error = Error(tried);
        if (error >= least) continue;
        least = error;
        *best = tried;
        better = true;
      }
    }
  }
}

// The variance of the rate within groups as a share of all variance, each by its degrees of freedom. A sample counts
// as what ran in its middle, and time without a kernel as a group. Every `stride`th sample is looked at. kNothing
// where less than half of the samples lie in the kernels' time, since a few fit anything; none where there are hardly
// more kernels than samples in them.
std::optional<double> Fitter::Unexplained(const SampleClock& clock, size_t stride) const {
  const std::vector<Segment>& segments = timeline_.segments();
  std::vector<Spread> within(groups_ + 1);
  Spread all;
  size_t at = 0, known = 0;
  for (size_t i = 0; i < fitted_.size(); i += stride) {
    const double begin = timeline_.Begin(i, clock), end = timeline_.End(i, clock), middle = (begin + end) / 2;
    while (at < segments.size() && segments[at].end <= middle) ++at;
    if (at == segments.size()) break;
    const Segment& segment = segments[at];
    if (middle < segment.begin) continue;
    ++known;
    if (segment.count > 1) continue;
    const double rate = fitted_[i] / (end - begin);
    within[segment.count == 0 ? groups_ : group_[timeline_.member(segment, 0)]].Add(rate);
    all.Add(rate);
  }
  double scatter = 0, freedom = all.count;
  for (const Spread& one : within) {
    if (one.count == 0) continue;
    scatter += one.Scatter();
    freedom -= 1;
  }
  if (known * stride * 2 < fitted_.size() || all.Scatter() <= 0) return kNothing;
  if (freedom < all.count / 10) return std::nullopt;
  return scatter / freedom / (all.Scatter() / (all.count - 1));
}

// How far all samples are from what the rates inside kernels say of them, as a mean square: also of those in which
// one kernel ends and another begins, which makes it continuous in the offset.
double Fitter::Error(const SampleClock& clock) const {
  std::vector<Spread> inside(kernels_.size());
  timeline_.Walk(clock, [&](const Sample& sample) {
    if (sample.parts != 1 || !sample.whole || sample.first->count != 1) return;
    inside[timeline_.member(*sample.first, 0)].Add(fitted_[sample.index] / sample.length());
  });
  Spread errors;
  timeline_.Walk(clock, [&](const Sample& sample) {
    if (!sample.whole) return;
    double expected = 0;
    for (size_t p = 0; p < sample.parts; ++p) {
      const Segment& segment = sample.first[p];
      for (uint32_t m = 0; m < segment.count; ++m) {
        const Spread& rate = inside[timeline_.member(segment, m)];
        if (rate.count == 0) return;
        expected += sample.Overlap(p) * rate.mean();
      }
    }
    errors.Add((fitted_[sample.index] - expected) / sample.length());
  });
  return errors.count < kLeastSamples ? std::numeric_limits<double>::infinity() : errors.squares / errors.count;
}

}  // namespace

ClockFit FitClock(const SampleTimeline& timeline, const std::vector<TimedKernel>& kernels,
                  const std::vector<double>& fitted, const JoinOptions& options) {
  return Fitter(timeline, kernels, fitted, options).Fit();
}

}  // namespace rfinject::cupti
