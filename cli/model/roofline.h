// File: roofline.h
//
// Roofline maths, and nothing else: no I/O, no protobuf types, no allocation beyond the results. FLOP are executed
// FLOP, 2 per multiply-add; bytes are DRAM bytes; times are seconds; rates are per second.
//
// Sources: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009 (roof, ridge point, attainable);
// Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis", 2020, arXiv 2009.04598 (time view).
#ifndef RFINJECT_CLI_MODEL_ROOFLINE_H_
#define RFINJECT_CLI_MODEL_ROOFLINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// FLOP by precision and path.
using FlopByPrecision = std::array<double, kPrecisionCount>;

// Rates of a GPU; 0: unknown, or no such path.
struct Rates {
  FlopByPrecision peak{};  // FLOP/s
  double dram_bytes_per_s = 0;
  double l2_bytes_per_s = 0;
  double l1_bytes_per_s = 0;
};

struct Machine : Rates {  // the datasheet's
  std::string name, chip;
  // The legacy tensor path's peak as a part of `peak`; 1 for a chip with one path. Both share the tensor cores.
  double legacy_share = 1;
  double pcie_bytes_per_s = 0, nvlink_bytes_per_s = 0;  // of one direction; 0: unknown, or no such link
  FlopByPrecision peak_hz{};                            // the SM clock that each peak is at; 0: unknown
  Rates empirical;                                      // what benchmarks reached, where that is published
  std::string empirical_source;
};

// What a kernel (or a sum of kernels) did.
struct Work {
  FlopByPrecision flop{};
  double dram_bytes = 0;
  double pcie_bytes = 0, nvlink_bytes = 0;  // of one direction
  FlopByPrecision legacy_flop{};            // of flop, those over the legacy tensor path
};
double TotalFlop(const Work& work);

// The least time that the machine needs for this work: the longest of the slowest pipe's time, the memory's, and that
// of the links to the host and to other GPUs.
//   compute = max over precisions of flop/peak   (pipes overlap)      memory = bytes/bandwidth
//   link = max of PCIe's bytes/bandwidth and NVLink's
// where FLOP over the legacy tensor path are held against that path's peak: the two paths take turns on one unit.
// FLOP of a precision that the machine has no path for make `compute` infinite: an input error that R003 names.
struct MinimalTime {
  double compute_s = 0;
  double memory_s = 0;
  double link_s = 0;
  double total_s() const {
    const double on_board = compute_s > memory_s ? compute_s : memory_s;
    return on_board > link_s ? on_board : link_s;
  }
};
MinimalTime LeastTime(const Machine& machine, const Work& work);

// The effective roof of mixed precision: total FLOP over the least time. For a layer or a model the least time is the
// SUM of its kernels' least times (kernels run one after the other), so pass that sum, not LeastTime of the sum.
double Attainable(const Work& work, double least_time_s);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_ROOFLINE_H_
