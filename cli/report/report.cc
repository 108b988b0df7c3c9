#include "cli/report/report.h"

#include <algorithm>

namespace rfinject::cli {

namespace {

Bound BoundOf(const Sums& sums) {
  const double launch = sums[Quantity::kLaunchBoundTime], memory = sums[Quantity::kMemoryBoundTime],
               compute = sums[Quantity::kComputeBoundTime];
  if (launch + memory + compute + sums[Quantity::kPcieBoundTime] + sums[Quantity::kNvlinkBoundTime] <= 0) {
    return sums.least_memory_ns() >= sums.least_compute_ns() ? Bound::kMemory : Bound::kCompute;
  }
  const double pcie = sums[Quantity::kPcieBoundTime], nvlink = sums[Quantity::kNvlinkBoundTime];
  if (const double most = std::max({launch, memory, compute}); pcie > most || nvlink > most) {
    return nvlink > pcie ? Bound::kNvlink : Bound::kPcie;
  }
  if (launch > memory && launch > compute) return Bound::kLaunch;
  return memory >= compute ? Bound::kMemory : Bound::kCompute;
}

}  // namespace

std::string_view HostTimeName(HostTime of) {
  switch (of) {
    case HostTime::kUnknown:
      return "floor";
    case HostTime::kGiven:
      return "given";
    case HostTime::kByTheClock:
      return "clock";
    case HostTime::kThisMachine:
      return "this machine";
  }
  return "";
}

std::string_view BoundName(Bound bound) {
  switch (bound) {
    case Bound::kUnknown:
      break;
    case Bound::kLaunch:
      return "launch";
    case Bound::kMemory:
      return "memory";
    case Bound::kCompute:
      return "compute";
    case Bound::kPcie:
      return "PCIe";
    case Bound::kNvlink:
      return "NVLink";
  }
  return "";
}

Derived Derive(const Sums& sums) {
  Derived derived;
  const double flop = sums.total_flop();
  if (sums.dram_bytes() > 0) derived.oi_flop_per_byte = flop / sums.dram_bytes();
  if (sums.time_ns() > 0) {
    derived.performance_flop_per_s = flop / sums.time_ns() * 1e9;
    derived.bandwidth_bytes_per_s = sums.dram_bytes() / sums.time_ns() * 1e9;
    derived.attainable_share = sums.least_ns() / sums.time_ns();
    derived.slack_ns = sums.time_ns() - sums.least_ns();
  }
  if (sums.least_ns() > 0) {
    derived.attainable_flop_per_s = flop / sums.least_ns() * 1e9;
    derived.bound = BoundOf(sums);
  }
  if (sums.model_flop() > 0) derived.executed_over_model = flop / sums.model_flop();
  if (sums.l2_bytes() > 0) derived.oi_l2_flop_per_byte = flop / sums.l2_bytes();
  if (sums.l1_bytes() > 0) derived.oi_l1_flop_per_byte = flop / sums.l1_bytes();
  if (sums.compulsory_bytes() > 0) derived.dram_over_compulsory = sums.dram_bytes() / sums.compulsory_bytes();
  return derived;
}

}  // namespace rfinject::cli
