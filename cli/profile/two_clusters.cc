#include "cli/profile/two_clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rfinject::cli {
namespace {

// The distance of two halves' means over their spread. A normal distribution that is cut at its mean has 2.65.
constexpr double kApart = 4;

}  // namespace

std::optional<TwoClusters> FindTwoClusters(std::span<const double> values, size_t least) {
  if (values.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  double cut = (*low + *high) / 2;
  double apart = 0;
  TwoClusters found;
  for (int i = 0; i < 20; ++i) {
    double n[2] = {}, sum[2] = {}, squares[2] = {};
    for (const double value : values) {
      const size_t side = value > cut ? 1 : 0;
      n[side] += 1;
      sum[side] += value - *low;
      squares[side] += (value - *low) * (value - *low);
    }
    if (n[0] == 0 || n[1] == 0) return std::nullopt;
    const double mean0 = sum[0] / n[0], mean1 = sum[1] / n[1];
    const double variance =
        (std::max(0.0, squares[0] / n[0] - mean0 * mean0) + std::max(0.0, squares[1] / n[1] - mean1 * mean1)) / 2;
    apart = variance > 0 ? (mean1 - mean0) / std::sqrt(variance) : std::numeric_limits<double>::infinity();
    found = {.cut = *low + (mean0 + mean1) / 2,
             .upper = static_cast<size_t>(n[1]),
             .fewer = static_cast<size_t>(std::min(n[0], n[1])),
             .apart = mean1 - mean0};
    cut = found.cut;
  }
  if (!(apart > kApart) || found.fewer < least) return std::nullopt;
  return found;
}

}  // namespace rfinject::cli
