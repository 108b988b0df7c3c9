#include "cli/report/keys/quantity.h"

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

void Sums::Add(const Sums& other) {
  launches += other.launches;
  for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
}

Sums Sums::OfOneStep(double steps) const {
  Sums step;
  step.launches = Nearest(static_cast<double>(launches) / steps);
  for (size_t i = 0; i < values_.size(); ++i) step.values_[i] = values_[i] / steps;
  return step;
}

}  // namespace rfinject::cli
