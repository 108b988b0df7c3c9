#include "cli/report/bounds.h"

#include <algorithm>

namespace rfinject::cli {

void AddLeastTimes(const Machine& machine, Sums& sums) {
  if (machine.name.empty()) return;
  Work work{.flop = sums.flop(),
            .dram_bytes = sums.dram_bytes(),
            .pcie_bytes = sums[Quantity::kPcieBytes],
            .nvlink_bytes = sums[Quantity::kNvlinkBytes],
            .legacy_flop = sums.legacy_flop()};
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    if (machine.peak[i] <= 0) work.flop[i] = 0;
  }
  const MinimalTime least = LeastTime(machine, work);
  sums[Quantity::kLeastCompute] = least.compute_s * 1e9;
  sums[Quantity::kLeastMemory] = least.memory_s * 1e9;
  sums[Quantity::kLeastLink] = least.link_s * 1e9;
  sums[Quantity::kLeast] = least.total_s() * 1e9;
}

void AddBoundTime(double launch_floor_ns, Sums& sums) {
  // A kernel of a few blocks takes some times the floor for latencies of its own; beyond, it is slow work.
  constexpr double kLittleLonger = 3;
  if (sums.least_ns() <= 0 || sums.time_ns() <= 0) return;
  const double floor_ns = launch_floor_ns * static_cast<double>(sums.launches);
  const bool launch = sums.least_ns() < floor_ns && sums.time_ns() < kLittleLonger * floor_ns;
  const double link_ns = sums[Quantity::kLeastLink];
  const bool link = link_ns > std::max(sums.least_memory_ns(), sums.least_compute_ns());
  sums[launch                                              ? Quantity::kLaunchBoundTime
       : link && sums[Quantity::kNvlinkBytes] > 0          ? Quantity::kNvlinkBoundTime
       : link                                              ? Quantity::kPcieBoundTime
       : sums.least_memory_ns() >= sums.least_compute_ns() ? Quantity::kMemoryBoundTime
                                                           : Quantity::kComputeBoundTime] = sums.time_ns();
}

}  // namespace rfinject::cli
