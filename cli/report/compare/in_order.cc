#include "cli/report/compare/in_order.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/profile/time_order.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

double TimeOf(const LaunchStats& stats) {
  const auto time = stats.metrics.find(std::string(kMetricTime));
  return time == stats.metrics.end() ? 0 : static_cast<double>(time->second.sum);
}

// What is as uncertain as it is long: a bound, and no estimate.
Uncertainty AsLong(double ns) { return {.variance = ns * ns}; }

using Pieces = std::vector<std::pair<double, double>>;  // of both runs, ns

// The pieces of a key that are whole in both; none where they have not the same launches.
Pieces PiecesOf(const LaunchStats& before, const LaunchStats& after) {
  const std::string order(kMetricTimeOrder);
  const auto x = before.step_sums.find(order), y = after.step_sums.find(order);
  if (x == before.step_sums.end() || y == after.step_sums.end() || x->second.empty() ||
      x->second.size() != y->second.size() || LengthOfPieces(before.launches) != LengthOfPieces(after.launches)) {
    return {};
  }
  // The last piece may be shorter than the others, and in one run shorter than in the other.
  const size_t all = x->second.size(), whole = all == before.launches ? all : all - 1;
  Pieces pieces;
  for (size_t i = 0; i < whole; ++i) {
    pieces.emplace_back(static_cast<double>(x->second[i].sum), static_cast<double>(y->second[i].sum));
  }
  return pieces;
}

// By how much pieces scatter around the change that they have in common.
Uncertainty ScatterOf(const Pieces& pieces) {
  double before = 0, after = 0, squares = 0;
  for (const auto& [x, y] : pieces) before += x, after += y;
  const double ratio = before > 0 ? after / before : 1;
  for (const auto& [x, y] : pieces) squares += (y - ratio * x) * (y - ratio * x);
  const double n = static_cast<double>(pieces.size()), variance = squares * n / (n - 1);
  return {.variance = variance, .satterthwaite = variance * variance / (n - 1)};
}

// Fewer say nothing of how they scatter; and so many say it of a single key.
constexpr size_t kLeastPieces = 4, kPiecesOfAKey = 8;
// Times of NVIDIA's GPUs are multiples of this (all 3,587 of a published export of H100 are, within 1 ns).
constexpr double kTickNs = 32;

}  // namespace

void ChangesInOrder::Add(const LaunchStats& before, const LaunchStats& after) {
  const double longer = std::max(TimeOf(before), TimeOf(after));
  all_ns_ += longer;
  const Pieces pieces = PiecesOf(before, after);
  if (pieces.empty()) {
    apart_ns_ += longer;
  } else if (pieces.size() < kPiecesOfAKey) {
    few_.insert(few_.end(), pieces.begin(), pieces.end());
  } else {
    double sum = 0;
    for (const auto& [x, y] : pieces) sum += x;
    if (sum > 0) change_.AddDependent(ScatterOf(pieces).Times(std::sqrt(TimeOf(before) / sum)));
  }
  // What the clock's ticks round off, in each launch of both.
  change_.variance += static_cast<double>(before.launches) * kTickNs * kTickNs / 6;
}

Uncertainty ChangesInOrder::change() const {
  constexpr double kMostApart = 0.01;
  Uncertainty change = change_;
  if (few_.size() >= kLeastPieces) {
    change.AddDependent(ScatterOf(few_));
  } else {
    double difference = 0;
    for (const auto& [x, y] : few_) difference += std::fabs(y - x);
    change.AddDependent(AsLong(difference));
  }
  change.AddDependent(AsLong(apart_ns_));
  change.known = apart_ns_ <= kMostApart * all_ns_;
  return change;
}

}  // namespace rfinject::cli
