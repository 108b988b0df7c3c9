#include "cli/model/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace rfinject::cli {
namespace {

// For 1 to 30 degrees of freedom (Abramowitz and Stegun, table 26.10).
constexpr std::array<double, 30> kStudent95 = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                               2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

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

double Student95(double degrees) {
  if (!(degrees >= 1)) return std::numeric_limits<double>::infinity();
  const auto whole = static_cast<size_t>(std::min(degrees, 31.0));
  if (whole < kStudent95.size()) {
    // Between two whole numbers the quantile is close to linear in 1 / degrees.
    const double low = kStudent95[whole - 1], high = kStudent95[whole];
    const double n = static_cast<double>(whole);
    const double share = (1 / n - 1 / degrees) / (1 / n - 1 / (n + 1));
    return low + (high - low) * share;
  }
  constexpr double kZ = 1.959963984540054, kZ3 = kZ * kZ * kZ, kZ5 = kZ3 * kZ * kZ;
  return kZ + (kZ3 + kZ) / (4 * degrees) + (5 * kZ5 + 16 * kZ3 + 3 * kZ) / (96 * degrees * degrees);
}

namespace {

// The continued fraction of the regularized incomplete beta function, by Lentz's evaluation.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), result = d;
  for (int i = 1; i <= 500; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    result *= d * c;
    if (std::fabs(d * c - 1) < 1e-14) break;
  }
  return result;
}

}  // namespace

double IncompleteBeta(double a, double b, double x) {
  if (!(x > 0)) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on this side of the mean only.
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

double StudentTail(double t, double degrees) {
  if (!(degrees >= 1) || !(t > 0)) return 1;
  if (degrees > 1e6) return std::erfc(t / std::sqrt(2.0));
  return IncompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double StudentQuantile(double tail, double degrees) {
  double low = 0, high = 1;
  while (StudentTail(high, degrees) > tail && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, degrees) > tail ? low : high) = middle;
  }
  return high;
}

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
