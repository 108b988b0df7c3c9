#include "cli/report/compare/in_order.h"

#include <algorithm>
#include <cstddef>
#include <string>
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

}  // namespace

Uncertainty ChangeInOrder(const LaunchStats& before, const LaunchStats& after) {
  const std::string order(kMetricTimeOrder);
  const auto x = before.step_sums.find(order), y = after.step_sums.find(order);
  if (x == before.step_sums.end() || y == after.step_sums.end() || x->second.empty() ||
      x->second.size() != y->second.size() || LengthOfPieces(before.launches) != LengthOfPieces(after.launches)) {
    return {.known = false};
  }
  const double all = TimeOf(before);
  // The last piece may be shorter than the others, and in one run shorter than in the other.
  const size_t pieces = x->second.size(), whole = pieces == before.launches ? pieces : pieces - 1;
  double sum = 0, difference = 0;
  for (size_t i = 0; i < whole; ++i) {
    sum += static_cast<double>(x->second[i].sum);
    difference += static_cast<double>(y->second[i].sum) - static_cast<double>(x->second[i].sum);
  }
  // Of so few launches the difference itself says how far it may be from the truth.
  constexpr size_t kLeastPieces = 4;
  if (whole < kLeastPieces || !(sum > 0)) return AsLong(TimeOf(after) - all);
  const double n = static_cast<double>(whole), mean = difference / n;
  double squares = 0;
  for (size_t i = 0; i < whole; ++i) {
    const double of_piece = static_cast<double>(y->second[i].sum) - static_cast<double>(x->second[i].sum) - mean;
    squares += of_piece * of_piece;
  }
  // Times are whole numbers, which errs by a twelfth of a squared ns in each launch of both.
  const double rounding = static_cast<double>(before.launches) / 6;
  const double variance = squares / (n - 1) * n * (all / sum) + rounding;
  return {.variance = variance, .satterthwaite = variance * variance / (n - 1)};
}

void ChangesInOrder::Add(const LaunchStats& before, const LaunchStats& after) {
  const double longer = std::max(TimeOf(before), TimeOf(after));
  all_ns_ += longer;
  const Uncertainty change = ChangeInOrder(before, after);
  if (change.known) {
    change_.AddDependent(change);
  } else {
    apart_ns_ += longer;
  }
}

Uncertainty ChangesInOrder::change() const {
  constexpr double kMostApart = 0.01;
  Uncertainty change = change_;
  change.AddDependent(AsLong(apart_ns_));
  change.known = apart_ns_ <= kMostApart * all_ns_;
  return change;
}

}  // namespace rfinject::cli
