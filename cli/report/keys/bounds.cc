#include "cli/report/keys/bounds.h"

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

void AddBoundTime(bool waited_for, Sums& sums) {
  if (sums.least_ns() <= 0 || sums.time_ns() <= 0) return;
  const double link_ns = sums[Quantity::kLeastLink];
  const bool link = link_ns > std::max(sums.least_memory_ns(), sums.least_compute_ns());
  sums[waited_for                                          ? Quantity::kLaunchBoundTime
       : link && sums[Quantity::kNvlinkBytes] > 0          ? Quantity::kNvlinkBoundTime
       : link                                              ? Quantity::kPcieBoundTime
       : sums.least_memory_ns() >= sums.least_compute_ns() ? Quantity::kMemoryBoundTime
                                                           : Quantity::kComputeBoundTime] = sums.time_ns();
}

}  // namespace rfinject::cli
