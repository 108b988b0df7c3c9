#include "cli/model/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace rfinject::cli {
namespace {

using boost::math::complement;
namespace policies = boost::math::policies;
// What has no value is no exception, but not a number or infinite.
using Policy =
    policies::policy<policies::promote_double<false>, policies::domain_error<policies::ignore_error>,
                     policies::pole_error<policies::ignore_error>, policies::overflow_error<policies::ignore_error>,
                     policies::evaluation_error<policies::ignore_error>>;
using Student = boost::math::students_t_distribution<double, Policy>;

}  // namespace

std::vector<double> Ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
    begin = end;
  }
  return ranks;
}

std::optional<double> SpearmanCorrelation(std::span<const double> a, std::span<const double> b) {
  std::vector<double> x, y;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    x.push_back(a[i]);
    y.push_back(b[i]);
  }
  if (x.size() < 3) return std::nullopt;
  // With ties the short formula of squared differences is wrong: it is Pearson's correlation of the ranks.
  const std::vector<double> rank_x = Ranks(x), rank_y = Ranks(y);
  const double mean = static_cast<double>(x.size() + 1) / 2;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = rank_x[i] - mean, dy = rank_y[i] - mean;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  if (xx <= 0 || yy <= 0) return std::nullopt;
  return std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
}

double StudentTail(double t, double degrees) {
  if (!(degrees >= 1) || !(t > 0)) return 1;
  return 2 * cdf(complement(Student(degrees), t));
}

double StudentQuantile(double tail, double degrees) {
  if (!(degrees >= 1)) return std::numeric_limits<double>::infinity();
  return quantile(complement(Student(degrees), std::max(tail, std::numeric_limits<double>::min()) / 2));
}

double Student95(double degrees) { return StudentQuantile(0.05, degrees); }

double IncompleteBeta(double a, double b, double x) {
  return x > 0 ? boost::math::ibeta(a, b, std::min(x, 1.0), Policy()) : 0;
}

double BetaQuantile(double a, double b, double probability) {
  return boost::math::ibeta_inv(a, b, probability, Policy());
}

double Digamma(double x) { return boost::math::digamma(x, Policy()); }
double Trigamma(double x) { return boost::math::trigamma(x, Policy()); }

void Uncertainty::Add(const Uncertainty& other) {
  variance += other.variance;
  satterthwaite += other.satterthwaite;
  known = known && other.known;
}

void Uncertainty::AddDependent(const Uncertainty& other) {
  known = known && other.known;
  if (!(other.variance > 0)) return;
  if (!(variance > 0)) {
    variance = other.variance;
    satterthwaite = other.satterthwaite;
    return;
  }
  // The deviations' own errors may add up as well; so each part's degrees of freedom count by its deviation.
  const double deviation = std::sqrt(variance), other_deviation = std::sqrt(other.variance);
  const double error = std::sqrt(satterthwaite) / deviation + std::sqrt(other.satterthwaite) / other_deviation;
  const double both = deviation + other_deviation;
  variance = both * both;
  satterthwaite = both * error * both * error;
}

Uncertainty Uncertainty::Times(double scale) const {
  const double square = scale * scale;
  return {variance * square, satterthwaite * square * square, known};
}

double DegreesOf(const Uncertainty& uncertainty) {
  return uncertainty.satterthwaite > 0 ? uncertainty.variance * uncertainty.variance / uncertainty.satterthwaite
                                       : std::numeric_limits<double>::infinity();
}

double HalfWidth95(const Uncertainty& uncertainty) {
  if (!uncertainty.known) return std::numeric_limits<double>::infinity();
  if (!(uncertainty.variance > 0)) return 0;
  return Student95(DegreesOf(uncertainty)) * std::sqrt(uncertainty.variance);
}

std::string_view CorrectionName(Correction correction) {
  switch (correction) {
    case Correction::kFalseDiscovery:
      return "false discovery rate";
    case Correction::kFamily:
      return "family-wise error";
    case Correction::kNone:
      break;
  }
  return "none";
}

double Threshold(Correction correction, std::vector<double> p) {
  constexpr double kLevel = 0.05;
  if (correction == Correction::kNone || p.empty()) return kLevel;
  std::sort(p.begin(), p.end());
  const double m = static_cast<double>(p.size());
  if (correction == Correction::kFamily) {
    // Step down: each that is real makes room for the next.
    size_t real = 0;
    while (real < p.size() && p[real] <= kLevel / (m - static_cast<double>(real))) ++real;
    return real > 0 ? p[real - 1] : kLevel / m;
  }
  size_t real = p.size();
  while (real > 0 && p[real - 1] > kLevel * static_cast<double>(real) / m) --real;
  return kLevel * static_cast<double>(std::max<size_t>(real, 1)) / m;
}

}  // namespace rfinject::cli
