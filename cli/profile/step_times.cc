#include "cli/profile/step_times.h"

#include <algorithm>
#include <cmath>

#include "proto/wire/spread_code.h"
#include "proto/wire/step_parts.h"

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
  own_ns.Merge(other.own_ns);
  launch_gap_ns.Merge(other.launch_gap_ns);
}

void StepTimes::Add(const Step& step) {
  wall_ns.Add(step.wall_ns);
  if (step.gpu_wait_ns) gpu_wait_ns.Add(*step.gpu_wait_ns);
  if (step.gpu_busy_ns) gpu_busy_ns.Add(*step.gpu_busy_ns);
  if (!step.data_wait_ns) return;
  data_wait_ns.Add(*step.data_wait_ns);
  if (step.gpu_wait_ns) own_ns.Add(wire::OwnNs(step.wall_ns, *step.data_wait_ns, *step.gpu_wait_ns));
  if (!step.gpu_busy_ns) return;
  launch_gap_ns.Add(
      step.launch_gap_ns.value_or(wire::LaunchGapNs(step.wall_ns, *step.data_wait_ns, *step.gpu_busy_ns)));
}

size_t StepTimes::places() const {
  size_t sum = 0;
  for (const Spread* spread : {&wall_ns, &data_wait_ns, &gpu_wait_ns, &gpu_busy_ns, &own_ns, &launch_gap_ns}) {
    sum += spread->counts().size();
  }
  return sum;
}

}  // namespace rfinject::cli
