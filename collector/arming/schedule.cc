#include "collector/arming/schedule.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "collector/arming/split_mix.h"
#include "collector/arming/window_coverage.h"

namespace rfinject::arming {
namespace {

// The distance grows with the run so that a doubling of it has as many windows.
constexpr uint64_t kWindowsOfDoubling = 32;
// How many steps there are for a window that is drawn, and the most of them.
constexpr uint64_t kStepsForAWindow = 5, kMostDrawn = 40;
// How many draws are looked at, at most, and the error of its coverage (window_coverage.h) with which a draw is good
// enough. Judging one takes a fraction of a millisecond, and all are judged once in a process. A draw that leaves an
// end of the run out is taken only where no other was found.
constexpr uint64_t kDraws = 1024;
constexpr double kGoodEnough = 0.005;
// What is drawn, each from numbers of its own.
constexpr uint64_t kOfDistances = 1, kOfRuns = 2;

// Whether the windows begin and end as near to the ends of the run as half of their mean distance. A change before
// the first of them or after the last, such as one of the clock, is not seen.
bool ReachesTheEnds(const std::vector<uint64_t>& windows, uint64_t steps) {
  const uint64_t near = steps / (2 * windows.size());
  return windows.front() <= near && steps - Schedule::kStepsOfWindow - windows.back() <= near;
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options) : options_(options), next_(options.warm_up_steps) {
  if (options.run_steps > options.warm_up_steps) Draw(options.run_steps - options.warm_up_steps);
}

void Schedule::Draw(uint64_t steps) {
  const size_t windows = std::min(steps / kStepsForAWindow, kMostDrawn);
  if (windows == 0) return;
  const WindowCoverage coverage(steps);
  std::vector<uint64_t> best;
  double least = 1;
  bool best_reaches = false;
  for (uint64_t draw = 1; draw <= kDraws && (!best_reaches || least > kGoodEnough); ++draw) {
    std::vector<uint64_t> starts = DrawOnce(RandomAt(options_.seed, draw, kOfRuns), steps, windows);
    const bool reaches = ReachesTheEnds(starts, steps);
    if (best_reaches && !reaches) continue;
    if (reaches && !best_reaches) least = 1;
    std::vector<uint64_t> sampled;
    for (const uint64_t start : starts) {
      for (uint64_t i = 0; i < kStepsOfWindow; ++i) sampled.push_back(start + i);
    }
    // No interval is printed of fewer than four samples.
    const double worst = sampled.size() < 4 ? 0 : coverage.WorstError(sampled, best.empty() ? 1 : least);
    if (!best.empty() && reaches == best_reaches && worst >= least) continue;
    least = worst;
    best = std::move(starts);
    best_reaches = reaches;
  }
  drawn_ = std::move(best);
  for (uint64_t& start : drawn_) start += options_.warm_up_steps;
}

// Draws windows with a step between any two, so that each such choice is as likely as any other: Floyd's sample
// without replacement, of the places that are left once what windows take is taken out.
std::vector<uint64_t> Schedule::DrawOnce(uint64_t seed, uint64_t steps, size_t windows) const {
  const uint64_t taken = windows * kStepsOfWindow, places = steps - taken + 1;
  std::vector<uint64_t> starts;
  for (uint64_t last = places - windows; last < places; ++last) {
    const uint64_t place = SplitMix64(&seed) % (last + 1);
    starts.push_back(std::find(starts.begin(), starts.end(), place) == starts.end() ? place : last);
  }
  std::sort(starts.begin(), starts.end());
  for (size_t i = 0; i < starts.size(); ++i) starts[i] += i * kStepsOfWindow;
  return starts;
}

bool Schedule::Begins(uint64_t step) noexcept {
  if (!drawn_.empty()) return std::binary_search(drawn_.begin(), drawn_.end(), step);
  if (options_.run_steps != 0 || step < next_) return false;
  const bool begins = step == next_;
  next_ = step + DistanceAfter(step);
  return begins;
}

uint64_t Schedule::DistanceAfter(uint64_t step) noexcept {
  const uint64_t mean = std::max(kFirstDistance, step / kWindowsOfDoubling);
  // Between a window and the next there is a step at least.
  const uint64_t least = kStepsOfWindow + 1, most = 2 * mean - least;
  return least + RandomAt(options_.seed, ++draws_, kOfDistances) % (most - least + 1);
}

}  // namespace rfinject::arming
