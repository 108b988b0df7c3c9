#include "cli/report/keys/quantity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cli/profile/nearest.h"

namespace rfinject::cli {

FlopByPrecision Sums::ByPrecision(Quantity first) const {
  FlopByPrecision flop;
  for (size_t i = 0; i < kPrecisionCount; ++i) flop[i] = values_[static_cast<size_t>(first) + i];
  return flop;
}

double Sums::total_flop() const {
  const FlopByPrecision all = flop();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

double Sums::total_legacy_flop() const {
  const FlopByPrecision all = legacy_flop();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

namespace {

// Of several operators of a group, some take longer than expected and some less: with this part of what they may be
// off together, 79 % of 29 networks lay in intervals that were made without them (bench/step_intervals).
constexpr double kOfSeveral = 0.8;

}  // namespace

void Sums::SetEnds(size_t interval) {
  const Spread& spread = spreads_[interval];
  if (!(spread.expected > 0)) return;
  const double part = spread.parts > 1 ? kOfSeveral : 1;
  const auto together = [part](const std::array<double, kErrorGroups>& groups) {
    return part * std::sqrt(std::inner_product(groups.begin(), groups.end(), groups.begin(), 0.0));
  };
  (*this)[kIntervalQuantities[interval].low] = std::max(0.0, spread.expected - together(spread.below));
  (*this)[kIntervalQuantities[interval].high] = spread.expected + together(spread.above);
}

void Sums::AddExpected(Expectation interval, ErrorGroup group, double expected, double low, double high) {
  const auto index = static_cast<size_t>(interval);
  Spread& spread = spreads_[index];
  ++spread.parts;
  spread.expected += expected;
  spread.below[static_cast<size_t>(group)] += expected - low;
  spread.above[static_cast<size_t>(group)] += high - expected;
  (*this)[kIntervalQuantities[index].expected] += expected;
  SetEnds(index);
}

void Sums::ScaleExpected(Expectation interval, double factor) {
  const auto index = static_cast<size_t>(interval);
  Spread& spread = spreads_[index];
  spread.expected *= factor;
  for (double& one : spread.below) one *= factor;
  for (double& one : spread.above) one *= factor;
  (*this)[kIntervalQuantities[index].expected] *= factor;
  SetEnds(index);
}

void Sums::Add(const Sums& other) {
  launches += other.launches;
  for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
  for (size_t i = 0; i < kIntervals; ++i) {
    spreads_[i].parts += other.spreads_[i].parts;
    spreads_[i].expected += other.spreads_[i].expected;
    for (size_t g = 0; g < kErrorGroups; ++g) {
      spreads_[i].below[g] += other.spreads_[i].below[g];
      spreads_[i].above[g] += other.spreads_[i].above[g];
    }
    SetEnds(i);
  }
}

Sums Sums::OfOneStep(double steps) const {
  Sums step;
  step.launches = Nearest(static_cast<double>(launches) / steps);
  for (size_t i = 0; i < values_.size(); ++i) step.values_[i] = values_[i] / steps;
  step.spreads_ = spreads_;
  for (Spread& spread : step.spreads_) {
    spread.expected /= steps;
    for (double& one : spread.below) one /= steps;
    for (double& one : spread.above) one /= steps;
  }
  return step;
}

}  // namespace rfinject::cli
