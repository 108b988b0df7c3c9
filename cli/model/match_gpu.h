// File: match_gpu.h
//
// Finds the row of gpus.csv for a device by the name that its driver gives it.
#ifndef RFINJECT_CLI_MODEL_MATCH_GPU_H_
#define RFINJECT_CLI_MODEL_MATCH_GPU_H_

#include <cstdint>
#include <string_view>

#include "gpus/gpus.h"

namespace rfinject::cli {

// The row for a device as the CUDA driver names it: "NVIDIA A100-SXM4-40GB", "Tesla V100-PCIE-16GB",
// "NVIDIA H100 80GB HBM3". Every word of the name must be accounted for, so that an A10G is not taken for an A10 or
// an RTX 3090 Ti for an RTX 3090; what the name leaves open (form, memory) is settled by `memory_bytes` (0: unknown).
// nullptr when no row fits, and for a MIG slice, whose roofs are not the GPU's.
const Gpu* MatchGpu(std::string_view device_name, uint64_t memory_bytes = 0);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_MATCH_GPU_H_
