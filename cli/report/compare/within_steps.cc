#include "cli/report/compare/within_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <optional>

#include "cli/model/shared_variance.h"
#include "cli/model/statistics.h"

namespace rfinject::cli {
namespace {

// The variance of a row's time relative to the rest of its step, as a logarithm, from step to step: a clock that all
// kernels of a step have in common is not in it. Nothing where it cannot be told.
std::optional<double> VarianceInSteps(std::span<const double> row, std::span<const double> total) {
  if (row.size() != total.size() || row.size() < kLeastBatches) return std::nullopt;
  std::vector<double> logs;
  double mean = 0, squares = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const double rest = total[i] - row[i];
    if (!(row[i] > 0) || !(rest > 0)) return std::nullopt;
    logs.push_back(std::log(row[i] / rest));
    mean += logs.back() / static_cast<double>(row.size());
  }
  for (const double one : logs) squares += (one - mean) * (one - mean);
  return squares / static_cast<double>(row.size() - 1);
}

// A row's change, as logarithms.
struct RowChange {
  DiffRow* row = nullptr;
  double change = 0, time = 0;
  double before = 0, after = 0;  // variances of a step
  double variance = 0, degrees = 0;
  double most_between = 0;
  double FromLevel(double level) const { return std::fabs(change - level); }
};

// Two runs of one program differ by more than their steps say: memory lies elsewhere, and a layer of 150 us takes 149
// in every step of the other run. By how much at most, as a variance of a row's logarithm, is what ResNet-50 twice on
// one H100 shows (0.3 % of long rows, 0.25 us a launch of short ones).
double MostBetweenRuns(const DiffRow& row) {
  constexpr double kOfTime = 0.003, kNsOfALaunch = 250;
  const Change& time = row[Compared::kTime];
  const double launches = static_cast<double>(std::max(row.before.launches, row.after.launches));
  const double of_launches = kNsOfALaunch * launches / std::max(time.before, time.after);
  return kOfTime * kOfTime + of_launches * of_launches;
}

// In a program that did not change a row scatters alike in both runs, but for what one run scatters more in all of
// its rows, and as other rows of its length do. So few steps tell much of each: of the row in both runs, and of all
// rows.
void KnowVariances(size_t steps_before, size_t steps_after, std::span<RowChange> rows) {
  const double before = static_cast<double>(steps_before) - 1, after = static_cast<double>(steps_after) - 1;
  double logs = 0, both = 0;
  for (const RowChange& row : rows) {
    if (!(row.before > 0) || !(row.after > 0)) continue;
    logs += std::log(row.after / row.before);
    ++both;
  }
  const double louder = both > 0 ? std::exp(logs / both - MeanLogOfVariance(after) + MeanLogOfVariance(before)) : 1;
  std::vector<double> times, variances;
  for (const RowChange& row : rows) {
    times.push_back(row.time);
    variances.push_back((before * row.before + after * row.after / louder) / (before + after));
  }
  const std::vector<SharedVariance> shared = ShareVariances(times, variances, before + after);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].variance = shared[i].variance * (1 / (before + 1) + louder / (after + 1));
    rows[i].degrees = shared[i].degrees;
  }
}

// Of few rows the median is one of those that changed.
constexpr size_t kLeastRows = 8;

// By how much all rows of the second run changed, as another clock does it.
struct Level {
  double change = 0, variance = 0;
};

// The median of the rows' changes, weighted by time, so that a layer that changed does not move it. `part`: of what
// two runs of one program differ by (PartBetweenRuns).
Level MedianLevel(std::span<const RowChange> rows, double part) {
  double all = 0, weights = 0, passed = 0;
  for (const RowChange& one : rows) all += one.time;
  // A row that has half of the time would be the median alone, and all others have changed where it has.
  const auto weight = [&](const RowChange& row) { return std::min(row.time, all / kLeastRows); };
  std::vector<const RowChange*> order;
  for (const RowChange& one : rows) order.push_back(&one), weights += weight(one);
  std::ranges::stable_sort(order, std::less{}, [](const RowChange* one) { return one->change; });
  Level level;
  for (const RowChange* one : order) {
    passed += weight(*one);
    level.change = one->change;
    if (2 * passed >= weights) break;
  }
  // The variance of a weighted median of normal values is a quarter of the squared weights over the squared density
  // there, to which rows that scatter much add little.
  double squares = 0, density = 0;
  for (const RowChange& one : rows) {
    const double share = weight(one) / weights;
    squares += share * share;
    density += share / std::sqrt(one.variance + part * one.most_between);
  }
  level.variance = std::numbers::pi / 2 * squares / (density * density);
  return level;
}

double DeviationOf(const RowChange& row, const Level& level, double part) {
  return std::sqrt(row.variance + level.variance + part * row.most_between);
}

// A single pair shows what part of MostBetweenRuns() there is, if most of its rows did not change: the variance that
// the rows' changes have beyond what their steps explain, by the median, which a few changed rows do not move (an
// empirical null: Efron, "Large-Scale Simultaneous Hypothesis Testing", 2004). Where most rows did change, it is all
// of it.
double PartBetweenRuns(std::span<const RowChange> rows, const Level& level) {
  constexpr double kMedianOfNormal = 0.6745;
  const auto median_z = [&](double part) {
    std::vector<double> z;
    for (const RowChange& row : rows) z.push_back(row.FromLevel(level.change) / DeviationOf(row, level, part));
    const auto middle = z.begin() + static_cast<std::ptrdiff_t>(z.size() / 2);
    std::nth_element(z.begin(), middle, z.end());
    return *middle;
  };
  double low = 0, high = 1;
  if (median_z(low) <= kMedianOfNormal) return low;
  if (median_z(high) >= kMedianOfNormal) return high;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (median_z(middle) > kMedianOfNormal ? low : high) = middle;
  }
  return high;
}

// Where most rows have the level, it is what they have in common. Else most of them were changed, and what a clock
// did beside that cannot be told: no row's change is then surer than the clocks of two runs are alike.
bool MostHaveIt(std::span<const RowChange> rows, const Level& level, double part) {
  const auto have = std::ranges::count_if(
      rows, [&](const RowChange& row) { return row.FromLevel(level.change) < 2 * DeviationOf(row, level, part); });
  return 2 * static_cast<size_t>(have) >= rows.size();
}
constexpr double kClocksDiffer = 0.05;

// A row is tested twice, by its time alone and within its steps. The second is the sharper one wherever clocks
// differ, so that it has most of the chance to be wrong (weighted Bonferroni).
constexpr double kWithin = 0.9;

// From which difference on a test finds one chance in a thousand.
double Reach(double standard, double degrees, double weight) {
  constexpr double kRare = 0.001;
  return standard * StudentQuantile(kRare * weight, degrees);
}

void Judge(const RowChange& row, const Level& level, double part) {
  Change& time = row.row->changes[static_cast<size_t>(Compared::kTime)];
  if (time.verdict == Verdict::kSame) return;
  const double mean = (time.before + time.after) / 2, between_runs = std::sqrt(part * row.most_between) * mean;
  const double deviation = DeviationOf(row, level, part), standard = deviation * mean;
  const double p = StudentTail(row.FromLevel(level.change) / deviation, row.degrees);
  if (!(time.standard > 0)) {
    time.p = p;
  } else {
    if (between_runs > 0) {
      time.standard = std::hypot(time.standard, between_runs);
      time.p = StudentTail(std::fabs(time.difference()) / time.standard, time.degrees);
    }
    time.p = std::min({1.0, time.p / (1 - kWithin), p / kWithin});
    if (Reach(time.standard, time.degrees, 1 - kWithin) < Reach(standard, row.degrees, kWithin)) return;
  }
  time.standard = standard;
  time.degrees = row.degrees;
  // What all rows changed by is no part of what is tested, and is in the interval.
  const double half_width = Student95(row.degrees) * standard + std::fabs(level.change) * mean;
  time.half_width = std::min(time.half_width, half_width);
}

RowChange ChangeOf(DiffRow* row) {
  const Change& time = (*row)[Compared::kTime];
  return {.row = row,
          .change = std::log(time.ratio),
          .time = time.before + time.after,
          .most_between = MostBetweenRuns(*row)};
}

void CompareWithOthers(std::span<const RowChange> changes) {
  double part = PartBetweenRuns(changes, MedianLevel(changes, 0));
  Level level = MedianLevel(changes, part);
  if (!MostHaveIt(changes, level, part)) {
    level = {.variance = kClocksDiffer * kClocksDiffer};
    part = 1;
  }
  for (const RowChange& one : changes) Judge(one, level, part);
}

}  // namespace

bool CompareWithinSteps(std::span<const double> before_total, std::span<const double> after_total,
                        std::span<const RowInSteps> rows) {
  std::vector<RowChange> changes;
  for (const RowInSteps& one : rows) {
    const auto before = VarianceInSteps(one.before, before_total), after = VarianceInSteps(one.after, after_total);
    if (!before || !after || !(*before + *after > 0)) continue;
    changes.push_back(ChangeOf(one.row));
    changes.back().before = *before;
    changes.back().after = *after;
  }
  if (changes.size() < kLeastRows) return false;
  KnowVariances(before_total.size(), after_total.size(), changes);
  CompareWithOthers(changes);
  return true;
}

bool CompareInOrder(std::span<const RowInOrder> rows) {
  std::vector<RowChange> changes;
  for (const RowInOrder& one : rows) {
    changes.push_back(ChangeOf(one.row));
    const double mean = changes.back().time / 2;
    changes.back().variance = one.change.variance / (mean * mean);
    changes.back().degrees = DegreesOf(one.change);
  }
  if (changes.size() < kLeastRows) return false;
  CompareWithOthers(changes);
  return true;
}

}  // namespace rfinject::cli
