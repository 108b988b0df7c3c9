#include "bench/coverage_verdict.h"

#include <algorithm>

#include "cli/model/statistics.h"

namespace rfinject::bench {
Proportion ExactInterval(double share, double n, double level) {
  const double hits = share * n, misses = n - hits;
  Proportion interval;
  if (hits > 0) interval.low = cli::BetaQuantile(hits, misses + 1, level / 2);
  if (misses > 0) interval.high = cli::BetaQuantile(hits + 1, misses, 1 - level / 2);
  return interval;
}

void Coverage::AddRun(uint64_t intervals, uint64_t printed, uint64_t covering) {
  intervals_ += intervals;
  if (printed == 0) return;
  ++runs_;
  printed_ += printed;
  covering_ += covering;
  const auto p = static_cast<double>(printed), c = static_cast<double>(covering);
  printed_squared_ += p * p;
  covering_squared_ += c * c;
  product_ += p * c;
}

double Coverage::declined_share() const {
  return intervals_ == 0 ? 0 : 1 - static_cast<double>(printed_) / static_cast<double>(intervals_);
}

double Coverage::effective() const {
  const auto runs = static_cast<double>(runs_), printed = static_cast<double>(printed_);
  if (runs_ < 2) return std::min(runs, printed);
  // The variance of a ratio of two sums over runs (Cochran, Sampling Techniques, 6.4).
  const double share = static_cast<double>(covering_) / printed;
  const double squares = covering_squared_ - 2 * share * product_ + share * share * printed_squared_;
  const double variance = runs / (runs - 1) * squares / (printed * printed);
  // Where every run says the same, the scatter says nothing: a run then counts as one.
  if (share * (1 - share) <= 0 || !(variance > 0)) return std::min(runs, printed);
  return std::min(printed, share * (1 - share) / variance);
}

Verdict Coverage::Judge(double level) const {
  if (percent() >= kLeastCoverage && percent() <= kMostCoverage) return Verdict::kHolds;
  const Proportion interval = ExactInterval(percent() / 100, effective(), level);
  const bool outside = 100 * interval.high < kLeastCoverage || 100 * interval.low > kMostCoverage;
  return outside ? Verdict::kFails : Verdict::kDoubt;
}

}  // namespace rfinject::bench
