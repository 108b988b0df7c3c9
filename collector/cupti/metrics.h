// File: metrics.h
//
// Chooses the hardware metrics that answer our questions on a chip, with the CUPTI at hand. gpus/counters.h says what
// each counter counts, gpus/chips.h which of them make the FLOP of a chip; here this is matched against the names
// that the CUPTI at hand gives. Where that CUPTI does not have the tensor counters that the chip's formula names (an
// older one spells them differently), or the chip is in no table, they are chosen by the parts of their names. It is
// pure: no CUPTI, no I/O.
#ifndef RFINJECT_COLLECTOR_CUPTI_METRICS_H_
#define RFINJECT_COLLECTOR_CUPTI_METRICS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpus/counters.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cupti {

// A metric whose value times `flop` is executed FLOP of one precision and path.
struct FlopMetric {
  std::string name;  // with its roll-up: "….sum"
  Precision precision = Precision::kFp32;
  uint32_t flop = 1;  // FLOP per count
  friend bool operator==(const FlopMetric&, const FlopMetric&) = default;
};

struct ChipMetrics {
  std::vector<std::string> base;   // in falling order of importance
  std::vector<FlopMetric> scalar;  // SASS metrics: CUDA cores, by patching the kernel
  std::vector<FlopMetric> tensor;  // hardware counters of the dense path, the likeliest in training first
  std::vector<FlopMetric>
      sparse;  // hardware counters of the sparse path: any count but 0 means that `tensor` misses FLOP
  std::vector<std::string> clocks;  // counted only where they cost nothing
};

// Chooses from the base metric names (without roll-up) that CUPTI gives for `chip` ("GV100"; empty or unknown: by the
// names alone).
//
// CUPTI before 12.2 update 2 has no sm__ops_path_tensor_*. There instructions on the tensor pipe are all there is,
// and only where FlopPerTensorInstruction(chip) knows what one of them stands for they are `tensor`; elsewhere it
// stays empty.
ChipMetrics SelectMetrics(std::span<const std::string> names, std::string_view chip = {});

// SASS metrics are counted by code patched into the kernel. They share no pass with hardware counters, and a step
// with them has no times worth keeping.
bool IsSassMetric(std::string_view name);

// "dram__bytes_read.sum" is "dram__bytes_read".
std::string_view BaseName(std::string_view name);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_METRICS_H_
