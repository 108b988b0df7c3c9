// File: gpus.h
//
// The table of GPUs and their datasheet roofs, gpus.csv, compiled in. Peaks are dense (without 2:4 sparsity). Rows
// are by SKU and not by chip: the same chip is sold with different clocks, memories and firmware limits.
//
//   const Gpu* gpu = FindGpu("A100-SXM4-40GB");
//   gpu->peak[size_t(Precision::kTf32Tensor)]   // 156e12 FLOP/s
#ifndef RFINJECT_GPUS_GPUS_H_
#define RFINJECT_GPUS_GPUS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject {

struct Gpu {
  std::string_view name;  // "A100-SXM4-40GB"
  std::string_view chip;  // "GA100"
  int cc_major;
  int cc_minor;
  int sm_count;
  double boost_hz;
  std::array<double, kPrecisionCount> peak;  // FLOP/s by Precision; 0: the chip has no such path
  double dram_bytes_per_s;
  double l2_bytes;            // capacity
  double l1_bytes_per_cycle;  // of one SM, from L1; 0: not verified
  // Of one direction: to and from the host, and to the other GPUs of a machine over all NVLinks; 0: no NVLink, GPUs
  // reach one another over PCIe.
  double pcie_bytes_per_s, nvlink_bytes_per_s;
  std::string_view link_source;  // gpus.csv, column link_source
  // What published benchmarks reached (column emp_source); 0: none known. Peaks by Precision.
  std::array<double, kPrecisionCount> empirical_peak;
  double empirical_dram_bytes_per_s, empirical_l2_bytes_per_s, empirical_l1_bytes_per_s;
  std::string_view empirical_source;
  std::string_view driver_name;    // as cuDeviceGetName says it
  uint64_t memory_bytes;           // cudaDeviceProp::totalGlobalMem; 0: not known, because no source was found
  std::string_view memory_source;  // gpus.csv, column memory_source
  std::string_view check;          // gpus.csv, column chk
  std::string_view source;         // gpus.csv, column source
  std::string_view note;
};

// Every row of the table, in its order.
std::span<const Gpu> AllGpus() noexcept;

// Whether operators are costed on this board's roofs. AMD's boards are in the table for recordings only.
bool HasEstimates(const Gpu& gpu) noexcept;

// The row of that name, without regard to case; nullptr when there is none.
const Gpu* FindGpu(std::string_view name) noexcept;

// Returns the board that `name` means: the row of that name, or the first row whose name begins with it, up to a '-'
// ("a100", "H100-PCIe"); the table has the commonest board of each kind first. Returns nullptr when there is none.
const Gpu* FindBoard(std::string_view name) noexcept;

// The row names nearest to `name` by edit distance without regard to case, nearest first, as many as `out` holds, for
// the message about an unknown name. Rows that `name` is a part of count as nearest; a row that differs in more than
// half of the longer name's letters is not near.
std::span<const Gpu* const> NearestGpus(std::string_view name, std::span<const Gpu*> out) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_GPUS_GPUS_H_
