// File: machine.h
//
// Finds the roofs of a GPU from what a trace says about it.
#ifndef RFINJECT_CLI_REPORT_MACHINE_H_
#define RFINJECT_CLI_REPORT_MACHINE_H_

#include <string_view>

#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// The datasheet roofs of a row of gpus.csv.
Machine MachineOf(const Gpu& gpu);

// The row for a device as the CUDA driver names it: "NVIDIA A100-SXM4-40GB", "Tesla V100-PCIE-16GB",
// "NVIDIA H100 80GB HBM3". Every word of the name must be accounted for, so that an A10G is not taken for an A10 or
// an RTX 3090 Ti for an RTX 3090; what the name leaves open (form, memory) is settled by `memory_bytes` (0: unknown).
// nullptr when no row fits, and for a MIG slice, whose roofs are not the GPU's.
const Gpu* MatchGpu(std::string_view device_name, uint64_t memory_bytes = 0);

// The roofs for a run: the GPU estimated on, or the device it ran on. The name is empty where none are known.
Machine MachineFor(const Run& run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_MACHINE_H_
