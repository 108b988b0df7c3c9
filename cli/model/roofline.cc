#include "cli/model/roofline.h"

#include <algorithm>
#include <limits>

namespace rfinject::cli {

double TotalFlop(const Work& work) {
  double total = 0;
  for (double flop : work.flop) total += flop;
  return total;
}

MinimalTime LeastTime(const Machine& machine, const Work& work) {
  MinimalTime least;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    if (work.flop[i] <= 0) continue;
    const double flop = work.flop[i] + work.legacy_flop[i] * (1 / machine.legacy_share - 1);
    const double seconds = machine.peak[i] > 0 ? flop / machine.peak[i] : std::numeric_limits<double>::infinity();
    least.compute_s = std::max(least.compute_s, seconds);
  }
  if (work.dram_bytes > 0) {
    least.memory_s = machine.dram_bytes_per_s > 0 ? work.dram_bytes / machine.dram_bytes_per_s
                                                  : std::numeric_limits<double>::infinity();
  }
  const auto over = [&least](double bytes, double bytes_per_s) {
    if (bytes > 0 && bytes_per_s > 0) least.link_s = std::max(least.link_s, bytes / bytes_per_s);
  };
  over(work.pcie_bytes, machine.pcie_bytes_per_s);
  over(work.nvlink_bytes, machine.nvlink_bytes_per_s);
  return least;
}

double Attainable(const Work& work, double least_time_s) {
  return least_time_s > 0 ? TotalFlop(work) / least_time_s : 0;
}

}  // namespace rfinject::cli
