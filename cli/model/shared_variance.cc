#include "cli/model/shared_variance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cli/model/statistics.h"

namespace rfinject::cli {
namespace {

// The degrees of freedom whose logarithm of a variance scatters as much, at most `most`.
double DegreesThatScatter(double variance_of_log, double most) {
  if (!(variance_of_log > Trigamma(most / 2))) return most;
  double low = 1e-3, high = most;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (Trigamma(middle / 2) > variance_of_log ? low : high) = middle;
  }
  return high;
}

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double MeanLogOfVariance(double degrees) { return Digamma(degrees / 2) - std::log(degrees / 2); }

std::vector<SharedVariance> ShareVariances(std::span<const double> sizes, std::span<const double> variances,
                                           double degrees) {
  std::vector<double> logs;
  for (size_t i = 0; i < sizes.size(); ++i) {
    logs.push_back(std::log(variances[i] * sizes[i]) - MeanLogOfVariance(degrees));
  }
  if (logs.empty()) return {};
  // Medians, which the few samples that are unlike the others do not move.
  const double usual = MedianOf(logs);
  std::vector<double> distances;
  for (const double one : logs) distances.push_back(std::fabs(one - usual));
  constexpr double kDeviationOfMedian = 1.4826;
  const double scatter = kDeviationOfMedian * MedianOf(distances);
  // What is made of n samples is worth no more than n degrees.
  const double count = static_cast<double>(sizes.size());
  const double of_others = DegreesThatScatter(scatter * scatter - Trigamma(degrees / 2), count);
  std::vector<SharedVariance> shared;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double expected = std::exp(usual) / sizes[i];
    // The chance that a sample like the others scatters as much (the tail of Fisher's F).
    const double ratio = variances[i] / expected;
    const double chance = IncompleteBeta(of_others / 2, degrees / 2, of_others / (of_others + degrees * ratio));
    const double lent = chance * count < 0.5 ? 0 : of_others;
    shared.push_back({(lent * expected + degrees * variances[i]) / (lent + degrees), lent + degrees});
  }
  return shared;
}

}  // namespace rfinject::cli
