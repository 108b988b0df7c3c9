#include "cli/profile/step_times.h"

#include <algorithm>
#include <cmath>

#include "proto/wire/spread_code.h"

namespace rfinject::cli {
namespace {

// Sums saturate rather than wrap.
template <typename Integer>
void SaturatingAdd(Integer& into, Integer value) {
  into = static_cast<Integer>(into + value) < into ? static_cast<Integer>(~Integer{0})
                                                   : static_cast<Integer>(into + value);
}

}  // namespace

void Spread::Add(uint64_t ns) {
  AddCounted(wire::SpreadCode(ns), 1);
  AddSum(ns);
}

void Spread::AddCounted(uint32_t code, uint64_t count) {
  if (count == 0) return;
  SaturatingAdd(counts_[std::min(code, wire::kMaxSpreadCode)], count);
  SaturatingAdd(n_, count);
}

void Spread::AddSum(unsigned __int128 ns) { SaturatingAdd(sum_, ns); }

void Spread::Merge(const Spread& other) {
  for (const auto& [code, count] : other.counts_) AddCounted(code, count);
  AddSum(other.sum_);
}

std::optional<double> Spread::mean_ns() const {
  if (n_ == 0) return std::nullopt;
  return static_cast<double>(sum_) / static_cast<double>(n_);
}

std::optional<double> Spread::Quantile(double share) const {
  if (n_ == 0) return std::nullopt;
  double rest = std::max(1.0, std::ceil(share * static_cast<double>(n_)));
  uint32_t code = 0;
  for (const auto& [at, count] : counts_) {
    code = at;
    rest -= static_cast<double>(count);
    if (rest <= 0) break;
  }
  return static_cast<double>(wire::DurationOf(code));
}

void StepTimes::Merge(const StepTimes& other) {
  wall_ns.Merge(other.wall_ns);
  data_wait_ns.Merge(other.data_wait_ns);
  gpu_wait_ns.Merge(other.gpu_wait_ns);
  gpu_busy_ns.Merge(other.gpu_busy_ns);
}

}  // namespace rfinject::cli
