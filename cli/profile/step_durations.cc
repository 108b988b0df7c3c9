#include "cli/profile/step_durations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "cli/profile/nearest.h"
#include "cli/profile/two_clusters.h"

namespace rfinject::cli {
namespace {

constexpr size_t kLeastSteps = 16;
// A slow step: this many robust standard deviations above the median, and this share of it.
constexpr double kSlowDeviations = 6, kSlowShare = 0.05;
// Correlation of steps as far apart as the sampled ones that does no harm: the variance of a mean of many such grows
// by 2 r / (1 - r), a tenth.
constexpr double kHarmless = 0.05;
// What one step may do to the mean of all without being looked at.
constexpr double kHarmlessBias = 0.0005;
constexpr double kMadToDeviation = 1.4826;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Whether the run goes from one kind of step to the other less than half as often as independent steps would.
bool ChangeSeldom(std::span<const double> values, const TwoClusters& kinds) {
  const double share = static_cast<double>(kinds.fewer) / static_cast<double>(values.size());
  size_t changes = 0;
  for (size_t i = 1; i < values.size(); ++i) changes += (values[i] > kinds.cut) != (values[i - 1] > kinds.cut);
  return static_cast<double>(changes) < share * (1 - share) * static_cast<double>(values.size() - 1);
}

// Whether the first or the last step alone is unlike the others: it may be an accident or the only step that is seen
// at another speed, and one cannot tell which. In a long run it does not matter.
// Where there are `accidents`, slow steps each by itself, one more is one of them.
bool MayChangeAtAnEnd(std::span<const double> values, double median, double unlike, uint64_t accidents) {
  const double harmless = kHarmlessBias * median * static_cast<double>(values.size());
  const auto changes = [&](double value) {
    const double distance = std::fabs(value - median);
    return distance > unlike && distance > harmless && (value < median || accidents < 2);
  };
  return changes(values.front()) || changes(values.back());
}

// The share of the longer steps in the shortest period with which the kinds repeat; nothing where there is none.
std::optional<double> ShareInRhythm(std::span<const StepDuration> steps, const TwoClusters& kinds) {
  constexpr uint64_t kLongestPeriod = 32;
  constexpr double kKeptTo = 0.98;  // of the pairs of steps a period apart that are not both of the usual kind
  const auto is_longer = [&](const StepDuration& one) { return static_cast<double>(one.ns) > kinds.cut; };
  const bool longer_are_rarer = kinds.upper == kinds.fewer;
  for (uint64_t period = 2; period <= kLongestPeriod; ++period) {
    double alike = 0, pairs = 0;
    size_t k = 0;
    for (const StepDuration& one : steps) {
      while (k < steps.size() && steps[k].step < one.step + period) ++k;
      if (k == steps.size()) break;
      if (steps[k].step != one.step + period) continue;
      if (is_longer(one) != longer_are_rarer && is_longer(steps[k]) != longer_are_rarer) continue;
      pairs += 1;
      alike += is_longer(one) == is_longer(steps[k]) ? 1 : 0;
    }
    if (pairs < static_cast<double>(kLeastSteps) || alike < kKeptTo * pairs) continue;
    std::array<std::array<uint64_t, 2>, kLongestPeriod> places{};
    for (const StepDuration& one : steps) ++places[one.step % period][is_longer(one) ? 1 : 0];
    const auto longer = std::count_if(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(period),
                                      [](const auto& place) { return place[1] > place[0]; });
    return static_cast<double>(longer) / static_cast<double>(period);
  }
  return std::nullopt;
}

}  // namespace

DurationFindings ExamineDurations(std::span<const StepDuration> durations, uint64_t first, uint64_t distance) {
  DurationFindings found;
  std::vector<StepDuration> steps;
  for (const StepDuration& one : durations) {
    if (one.step >= first && (steps.empty() || one.step > steps.back().step)) steps.push_back(one);
  }
  if (steps.size() < kLeastSteps) return found;
  std::vector<double> values;
  for (const StepDuration& one : steps) values.push_back(static_cast<double>(one.ns));
  const double median = Median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::fabs(value - median));
  const double deviation = kMadToDeviation * Median(distances);
  const double limit = median + std::max(kSlowDeviations * deviation, kSlowShare * median);
  // Two slow steps in a row are a state of the machine, not an accident.
  uint64_t slow = 0, in_a_row = 0;
  double extra = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] <= limit) continue;
    ++slow;
    extra += values[i] - median;
    in_a_row += i > 0 && values[i - 1] > limit;
  }
  const bool seldom = 10 * slow < values.size() && 2 * in_a_row <= slow;
  if (seldom) {
    found.slow = slow;
    found.slow_extra_ns = Nearest(std::floor(extra));
  }
  if (distance == 0) return found;
  const bool at_an_end = MayChangeAtAnEnd(values, median, limit - median, in_a_row == 0 ? slow : 0);
  // Slow steps would hide what the others do.
  std::vector<double> ordinary;
  double sum = 0;
  for (double& value : values) {
    if (seldom) value = std::min(value, limit);
    sum += value;
    ordinary.push_back(value);
  }
  const double mean = sum / static_cast<double>(values.size());
  double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean);
  variance /= static_cast<double>(values.size());
  if (!(variance > 0)) return found;
  const std::optional<TwoClusters> kinds = FindTwoClusters(ordinary);
  if ((kinds && ChangeSeldom(ordinary, *kinds)) || at_an_end) {
    found.drifting = found.two_speeds = true;
    return found;
  }
  // Closer ones are no kinds of the program's: what is done at the end of single steps moves them by as much.
  constexpr double kLeastApart = 0.01;
  if (kinds && (slow == 0 || !seldom) && kinds->apart >= kLeastApart * mean) {
    found.of_kinds = ordinary.size();
    found.rarer_kind = kinds->fewer;
    if (const std::optional<double> share = ShareInRhythm(steps, *kinds)) {
      found.in_rhythm = found.of_kinds;
      found.rarer_kind = Nearest(std::min(*share, 1 - *share) * static_cast<double>(found.of_kinds));
    }
  }
  // The mean over neighbouring lags is as good as one lag of a longer run, and leaves nothing of a rhythm, such as
  // that of every second or fourth step, which is no memory. Half the distance: what is left there is seen earlier,
  // and what is gone there does no harm at the whole distance.
  constexpr uint64_t lags = 20;
  distance = std::max<uint64_t>(distance / 2, 8);
  double products = 0, pairs = 0;
  for (uint64_t lag = distance; lag < distance + lags; ++lag) {
    size_t k = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      while (k < steps.size() && steps[k].step < steps[i].step + lag) ++k;
      if (k == steps.size()) break;
      if (steps[k].step != steps[i].step + lag) continue;
      products += (values[i] - mean) * (values[k] - mean);
      pairs += 1;
    }
  }
  if (pairs < static_cast<double>(kLeastSteps)) return found;
  const double correlation = products / pairs / variance;
  // Twice what independent steps would scatter by, because those that remember their neighbours scatter more.
  found.drifting = correlation > kHarmless + 2 * 2 / std::sqrt(pairs);
  return found;
}

}  // namespace rfinject::cli
