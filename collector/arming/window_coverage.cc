#include "collector/arming/window_coverage.h"

#include <algorithm>
#include <cmath>

#include "collector/arming/split_mix.h"

namespace rfinject::arming {
namespace {

// How much of its deviation a step passes on to the next: processes with a memory of three hundred steps, for which
// most draws are wrong, of fourteen and of three.
constexpr float kKeeps[] = {0.997F, 0.93F, 0.7F};
// How many steps are simulated; this takes a millisecond or two.
constexpr uint64_t kStepsSimulated = 1 << 17;
constexpr uint64_t kFewestWindows = 256, kMostWindows = 2048;
// A choice that is far off shows in a few windows already. The limit is three standard errors of a coverage of 0.95.
constexpr size_t kFirstLook = 128;
constexpr double kFirstLookError = 0.058;

// Returns a nearly normal number of variance 1: the sum of eight uniform ones.
float NextNormal(uint64_t* state) {
  uint64_t sum = 0;
  for (int word = 0; word < 2; ++word) {
    const uint64_t bits = SplitMix64(state);
    sum += (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
  }
  constexpr float kMean = 8 * 65535 / 2.0F, kDeviation = 53510.0F;  // 65536 sqrt(8 / 12)
  return (static_cast<float>(sum) - kMean) / kDeviation;
}

// Returns the square of Student's two-sided 95 % quantile (Abramowitz and Stegun 26.7.5).
double SquaredStudent95(double degrees) {
  constexpr double kNormal = 1.959964;
  constexpr double k3 = kNormal * kNormal * kNormal, k5 = k3 * kNormal * kNormal, k7 = k5 * kNormal * kNormal;
  const double t = kNormal + (k3 + kNormal) / (4 * degrees) +
                   (5 * k5 + 16 * k3 + 3 * kNormal) / (96 * degrees * degrees) +
                   (3 * k7 + 19 * k5 + 17 * k3 - 15 * kNormal) / (384 * degrees * degrees * degrees);
  return t * t;
}

double Error(size_t covered, size_t of) {
  return std::abs(static_cast<double>(covered) / static_cast<double>(of) - 0.95);
}

}  // namespace

WindowCoverage::WindowCoverage(uint64_t span)
    : span_(span), count_(std::clamp(kStepsSimulated / std::max<uint64_t>(span, 1), kFewestWindows, kMostWindows)) {
  uint64_t random = span;
  for (size_t memory = 0; memory < windows_.size(); ++memory) {
    const float keeps = kKeeps[memory], adds = std::sqrt(1 - keeps * keeps);
    Windows& windows = windows_[memory];
    windows.steps.reserve(count_ * span);
    for (size_t i = 0; i < count_; ++i) {
      float value = NextNormal(&random), sum = 0;
      for (uint64_t step = 0; step < span; ++step) {
        windows.steps.push_back(value);
        sum += value;
        value = keeps * value + adds * NextNormal(&random);
      }
      windows.means.push_back(sum / static_cast<float>(span));
    }
  }
}

double WindowCoverage::WorstError(const std::vector<uint64_t>& steps, double enough) const {
  const auto n = static_cast<float>(steps.size());
  const float rest = 1 - n / static_cast<float>(span_);
  // The square of the interval's half-width is this factor times the samples' sum of squared distances from their
  // mean.
  const float width = static_cast<float>(SquaredStudent95(n - 1)) * rest / (n * (n - 1));
  double worst = 0;
  for (const Windows& windows : windows_) {
    size_t covered = 0;
    for (size_t i = 0; i < count_; ++i) {
      const float* const values = windows.steps.data() + i * span_;
      float sum = 0, squares = 0;
      for (const uint64_t step : steps) {
        sum += values[step];
        squares += values[step] * values[step];
      }
      const float mean = sum / n, error = mean - windows.means[i];
      covered += error * error <= width * (squares - sum * mean);
      if (i + 1 == kFirstLook && Error(covered, kFirstLook) - kFirstLookError >= enough) return enough;
    }
    worst = std::max(worst, Error(covered, count_));
    if (worst >= enough) return worst;
  }
  return worst;
}

}  // namespace rfinject::arming
