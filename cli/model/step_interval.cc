#include "cli/model/step_interval.h"

#include <algorithm>
#include <cmath>

namespace rfinject::cli {
namespace {

constexpr double kMadToDeviation = 1.4826;  // of a normal distribution
constexpr size_t kLeastForP95 = 20;
constexpr size_t kLeastForDrift = 8;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double RobustDeviation(std::span<const double> values, double median) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::fabs(value - median));
  return kMadToDeviation * Median(std::move(distances));
}

struct Batch {
  double n = 0, sum = 0;
  double mean() const { return sum / n; }
};

std::vector<Batch> BatchesOf(std::span<const uint64_t> steps, std::span<const double> values, uint64_t length) {
  std::vector<Batch> batches;
  uint64_t first = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (batches.empty() || steps[i] >= first + length) {
      batches.emplace_back();
      first = steps[i];
    }
    batches.back().n += 1;
    batches.back().sum += values[i];
  }
  return batches;
}

size_t BatchCount(std::span<const uint64_t> steps, uint64_t length) {
  size_t count = 0;
  uint64_t first = 0;
  for (const uint64_t step : steps) {
    if (count > 0 && step < first + length) continue;
    ++count;
    first = step;
  }
  return count;
}

}  // namespace

std::string_view TrustName(Trust trust) {
  switch (trust) {
    case Trust::kByStep:
      return "by step";
    case Trust::kByLaunch:
      return "by launch";
    case Trust::kFewSteps:
      return "few steps";
    case Trust::kDrifting:
      return "drifting";
    case Trust::kTwoSpeeds:
      return "two speeds";
    case Trust::kNone:
      break;
  }
  return "";
}

namespace {

// The uncertainty of the mean of all samples, as the report has it, so that a batch weighs what it holds. `own`: how
// many of the batches say how it scatters.
Uncertainty UncertaintyOf(std::span<const Batch> batches, double mean, size_t own, double most_degrees) {
  double n = 0, squares = 0, variance = 0;
  for (const Batch& batch : batches) {
    n += batch.n;
    squares += batch.n * batch.n;
  }
  for (const Batch& batch : batches) {
    const double part = batch.n / n * (batch.mean() - mean);
    variance += part * part;
  }
  // Unbiased for independent samples: the expectation of the sum is (1 - the sum of squared weights) times the mean's
  // variance.
  variance /= 1 - squares / (n * n);
  const double degrees =
      std::min({static_cast<double>(std::min(own, batches.size())) - 1, n * n / squares - 1, most_degrees});
  return {.variance = variance, .satterthwaite = variance * variance / degrees};
}

// The same of steps in two or three places, from which the scatter between places is known badly: the larger of what
// the places say and of what the steps say as if they were independent, with the steps' degrees of freedom.
Uncertainty CloseUncertainty(const Uncertainty& of_batches, const Uncertainty& of_steps, double degrees) {
  const double variance = std::max(of_batches.variance, of_steps.variance);
  return {.variance = variance, .satterthwaite = variance * variance / degrees};
}

// Where a few steps are much longer than the others, Student's interval is too narrow: a sample with few of them has
// a small mean and a small deviation together. The factor makes up for the first term of its error, as Edgeworth's
// expansion of Student's t gives it (Hall, "The Bootstrap and Edgeworth Expansion", 1992, 2.6), at 95 %; the term of
// the kurtosis is a tenth of it, and left out.
double ForSkewness(std::span<const Batch> batches, double mean, double own) {
  double squares = 0, cubes = 0;
  for (const Batch& batch : batches) {
    const double distance = batch.mean() - mean;
    squares += distance * distance;
    cubes += distance * distance * distance;
  }
  if (!(squares > 0)) return 1;
  const double n = static_cast<double>(batches.size());
  const double skewness = cubes / n / std::pow(squares / n, 1.5);
  constexpr double kZ2 = 1.96 * 1.96;
  return 1 + skewness * skewness * (kZ2 * kZ2 + 2 * kZ2 - 3) / 18 / own;
}

}  // namespace

StepInterval IntervalOf(std::span<const uint64_t> steps, std::span<const double> values, double run_steps,
                        std::span<const uint64_t> own, double most_degrees) {
  StepInterval result;
  result.steps = values.size();
  if (values.empty()) return result;
  const double n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  result.spread = RobustDeviation(values, Median({values.begin(), values.end()}));
  if (values.size() >= kLeastForP95) {
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    result.p95 = sorted[static_cast<size_t>(std::ceil(0.95 * n)) - 1];
  }
  // Steps that are drawn from all steps of the run are as good as independent, whatever neighbours have in common.
  // Steps that lie much closer together than such a draw would put them count as one observation.
  const double closest = run_steps / (4 * n);
  const uint64_t length = closest < static_cast<double>(kBatchSteps) ? static_cast<uint64_t>(closest) : kBatchSteps;
  const std::vector<Batch> batches = BatchesOf(steps, values, std::max<uint64_t>(length, 1));
  if (own.empty()) own = steps;
  result.batches = BatchCount(own, std::max<uint64_t>(length, 1));
  constexpr size_t kLeastSteps = 3;
  const size_t own_steps = BatchCount(own, 1);
  result.close = result.batches < kLeastBatches && result.batches > 1 && own_steps >= kLeastCloseSteps;
  result.trust = result.batches >= kLeastBatches || result.close ? Trust::kByStep : Trust::kFewSteps;
  result.uncertainty.known = false;
  if (own_steps >= kLeastSteps)
    result.least = UncertaintyOf(BatchesOf(steps, values, 1), result.mean, own_steps, most_degrees);
  if (result.trust == Trust::kFewSteps) return result;
  // The steps of this run that were sampled are known exactly.
  const double rest = run_steps > n ? 1 - n / run_steps : 0;
  Uncertainty own_run = UncertaintyOf(batches, result.mean, result.batches, most_degrees);
  const auto degrees = std::min(static_cast<double>(own_steps) - 1, most_degrees);
  if (result.close) own_run = CloseUncertainty(own_run, result.least, degrees);
  result.half_width = HalfWidth95(own_run.Times(std::sqrt(rest)));
  if (!result.close) result.half_width *= ForSkewness(batches, result.mean, static_cast<double>(result.batches));
  // For another run, which has other steps, it matters what neighbours have in common.
  const std::vector<Batch> apart = BatchesOf(steps, values, kBatchSteps);
  const size_t own_apart = BatchCount(own, kBatchSteps);
  if (own_apart >= kLeastBatches) {
    result.uncertainty = UncertaintyOf(apart, result.mean, own_apart, most_degrees);
  } else if (result.close) {
    result.uncertainty = own_run;
  }
  return result;
}

namespace {

// Whether the values rise or fall with the step, by the t test of a regression's slope. One in a hundred is a false
// alarm.
bool HaveATrend(std::span<const uint64_t> steps, std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  double at = 0, mean = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    at += static_cast<double>(steps[i] - steps[0]) / n;
    mean += values[i] / n;
  }
  double along = 0, across = 0, both = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(steps[i] - steps[0]) - at, y = values[i] - mean;
    along += x * x;
    across += y * y;
    both += x * y;
  }
  if (!(along > 0) || !(across > 0)) return false;
  const double explained = both * both / along;
  const double rest = across - explained;
  if (!(rest > 0)) return true;
  return StudentTail(std::sqrt(explained / rest * (n - 2)), n - 2) < 0.01;
}

// Whether the values are of one level up to some step and of another from there on: a clock that rises, sinks or
// jumps. Each cut is Student's t test of the two sides, and the best of them is taken; that the cuts are many is made
// up for (Bonferroni). One in a hundred is a false alarm.
bool ChangesItsLevel(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value - values[0];
    squares += (value - values[0]) * (value - values[0]);
  }
  const double across = squares - sum * sum / n;
  if (!(across > 0)) return false;
  double left = 0, explained = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    left += values[i] - values[0];
    const double k = static_cast<double>(i + 1);
    const double distance = left / k - (sum - left) / (n - k);
    explained = std::max(explained, distance * distance * k * (n - k) / n);
  }
  const double rest = across - explained;
  if (!(rest > 0)) return true;
  return StudentTail(std::sqrt(explained / rest * (n - 2)), n - 2) * (n - 1) < 0.01;
}

}  // namespace

bool SamplesDrift(std::span<const uint64_t> steps, std::span<const double> values) {
  if (values.size() < kLeastForDrift) return false;
  const std::vector<Batch> batches = BatchesOf(steps, values, kBatchSteps);
  // A short window does not have eight batches. Its steps are drawn so that what neighbours have in common does not
  // matter (collector/arming/schedule.h); a trend does, and a level that only few steps have.
  if (batches.size() < kLeastForDrift) return HaveATrend(steps, values) || ChangesItsLevel(values);
  double mean = 0;
  for (const Batch& batch : batches) mean += batch.mean();
  const double k = static_cast<double>(batches.size());
  mean /= k;
  double differences = 0, squares = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    squares += (batches[i].mean() - mean) * (batches[i].mean() - mean);
    if (i > 0) differences += std::pow(batches[i].mean() - batches[i - 1].mean(), 2);
  }
  if (!(squares > 0)) return false;
  // Von Neumann's ratio has the mean 2 for independent values and about this deviation; 1.64 of them are one false
  // alarm in twenty. A drift that is overlooked costs more than an interval that is not printed.
  const double ratio = differences / squares;
  return ratio < 2 - 1.64 * 2 * std::sqrt((k - 2) / (k * k - 1));
}

std::vector<bool> SlowSteps(std::span<const double> values, double least, double most) {
  std::vector<bool> slow(values.size(), false);
  const double n = static_cast<double>(values.size());
  if (values.size() < 5) return slow;
  const double median = Median({values.begin(), values.end()});
  // The deviation of few values is itself uncertain, hence the second term.
  const double deviations = 5 + 20 / n;
  const double limit =
      median + std::max(deviations * RobustDeviation(values, median), std::max(0.05, least) * median);
  size_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    slow[i] = values[i] > limit;
    count += slow[i];
  }
  if (static_cast<double>(count) > most * n) slow.assign(values.size(), false);
  return slow;
}

}  // namespace rfinject::cli
