#include "cli/report/rows/row.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rfinject::cli {

namespace {

// Of equal times the first stands.
constexpr std::array<std::pair<Bound, Quantity>, 5> kBoundTimes = {{{Bound::kMemory, Quantity::kMemoryBoundTime},
                                                                    {Bound::kCompute, Quantity::kComputeBoundTime},
                                                                    {Bound::kLaunch, Quantity::kLaunchBoundTime},
                                                                    {Bound::kPcie, Quantity::kPcieBoundTime},
                                                                    {Bound::kNvlink, Quantity::kNvlinkBoundTime}}};

Bound BoundOf(const Sums& sums) {
  const auto longest = std::ranges::max_element(kBoundTimes, {}, [&](const auto& one) { return sums[one.second]; });
  if (sums[longest->second] > 0) return longest->first;
  return sums.least_memory_ns() >= sums.least_compute_ns() ? Bound::kMemory : Bound::kCompute;
}

// Whether most of the time is of kernels of which nobody knows what they are bound by: what a few copies among them
// need is nothing to hold it against.
bool MostIsUnknown(const Sums& sums) {
  const double known = BoundTime(sums);
  return known > 0 && 2 * known < sums.time_ns();
}

}  // namespace

std::string_view BoundName(Bound bound) {
  constexpr std::array<std::string_view, 6> kNames = {"", "launch", "memory", "compute", "PCIe", "NVLink"};
  return kNames[static_cast<size_t>(bound)];
}

double BoundTime(const Sums& sums) {
  double ns = 0;
  for (const auto& [bound, quantity] : kBoundTimes) ns += sums[quantity];
  return ns;
}

Derived Derive(const Sums& sums) {
  Derived derived;
  const double least_ns = MostIsUnknown(sums) ? 0 : sums.least_ns();
  const double flop = sums.total_flop();
  if (sums.dram_bytes() > 0) derived.oi_flop_per_byte = flop / sums.dram_bytes();
  if (sums.time_ns() > 0) {
    derived.performance_flop_per_s = flop / sums.time_ns() * 1e9;
    derived.bandwidth_bytes_per_s = sums.dram_bytes() / sums.time_ns() * 1e9;
    derived.attainable_share = least_ns / sums.time_ns();
    derived.slack_ns = sums.time_ns() - least_ns;
  }
  if (least_ns > 0) {
    derived.attainable_flop_per_s = flop / least_ns * 1e9;
    derived.bound = BoundOf(sums);
  }
  if (sums.model_flop() > 0) derived.executed_over_model = flop / sums.model_flop();
  if (sums.l2_bytes() > 0) derived.oi_l2_flop_per_byte = flop / sums.l2_bytes();
  if (sums.l1_bytes() > 0) derived.oi_l1_flop_per_byte = flop / sums.l1_bytes();
  if (sums.compulsory_bytes() > 0) derived.dram_over_compulsory = sums.dram_bytes() / sums.compulsory_bytes();
  return derived;
}

}  // namespace rfinject::cli
