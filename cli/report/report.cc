#include "cli/report/report.h"

namespace rfinject::cli {

double Sums::total_flop() const {
  double total = 0;
  for (double one : flop) total += one;
  return total;
}

double Sums::total_legacy_flop() const {
  double total = 0;
  for (double one : legacy_flop) total += one;
  return total;
}

void Sums::Add(const Sums& other) {
  launches += other.launches;
  time_ns += other.time_ns;
  model_flop += other.model_flop;
  for (size_t i = 0; i < flop.size(); ++i) flop[i] += other.flop[i];
  for (size_t i = 0; i < flop.size(); ++i) legacy_flop[i] += other.legacy_flop[i];
  dram_bytes += other.dram_bytes;
  compulsory_bytes += other.compulsory_bytes;
  l2_bytes += other.l2_bytes;
  l1_bytes += other.l1_bytes;
  least_compute_ns += other.least_compute_ns;
  least_memory_ns += other.least_memory_ns;
  least_ns += other.least_ns;
  time_with_counters_ns += other.time_with_counters_ns;
  ideal_ns += other.ideal_ns;
  low_ns += other.low_ns;
  high_ns += other.high_ns;
  winograd_ns += other.winograd_ns;
  uncalibrated_ns += other.uncalibrated_ns;
}

Derived Derive(const Sums& sums) {
  Derived derived;
  const double flop = sums.total_flop();
  if (sums.dram_bytes > 0) derived.oi_flop_per_byte = flop / sums.dram_bytes;
  if (sums.time_ns > 0) {
    derived.performance_flop_per_s = flop / sums.time_ns * 1e9;
    derived.bandwidth_bytes_per_s = sums.dram_bytes / sums.time_ns * 1e9;
    derived.attainable_share = sums.least_ns / sums.time_ns;
    derived.slack_ns = sums.time_ns - sums.least_ns;
  }
  if (sums.least_ns > 0) {
    derived.attainable_flop_per_s = flop / sums.least_ns * 1e9;
    derived.memory_bound = sums.least_memory_ns >= sums.least_compute_ns;
  }
  if (sums.model_flop > 0) derived.executed_over_model = flop / sums.model_flop;
  return derived;
}

}  // namespace rfinject::cli
