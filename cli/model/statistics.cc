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
  // As many degrees of freedom as the part that has fewer.
  const double share = std::max(satterthwaite / (variance * variance),
                                other.satterthwaite / (other.variance * other.variance));
  variance = std::pow(std::sqrt(variance) + std::sqrt(other.variance), 2);
  satterthwaite = share * variance * variance;
}

Uncertainty Uncertainty::Times(double scale) const {
  const double square = scale * scale;
  return {variance * square, satterthwaite * square * square, known};
}

double HalfWidth95(const Uncertainty& uncertainty) {
  if (!uncertainty.known) return std::numeric_limits<double>::infinity();
  if (!(uncertainty.variance > 0)) return 0;
  const double degrees = uncertainty.satterthwaite > 0
                             ? uncertainty.variance * uncertainty.variance / uncertainty.satterthwaite
                             : std::numeric_limits<double>::infinity();
  return Student95(degrees) * std::sqrt(uncertainty.variance);
}

}  // namespace rfinject::cli
