#include "cli/report/machine.h"

#include "cli/model/match_gpu.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

// The SM clock that each peak of the datasheet is at; 0 for a chip whose rates are not verified. Those of GH100's
// tensor cores are at another clock than the scalar ones (1830 and 1980 MHz on an H100 SXM), which follows from the
// chip's rate.
FlopByPrecision PeakClocks(const Gpu& gpu) {
  FlopByPrecision clocks{};
  const Chip* const chip = FindChip(gpu.chip);
  if (chip == nullptr || chip->flop_per_sm_and_cycle[static_cast<size_t>(Precision::kFp32)] == 0) return clocks;
  constexpr auto kFp16 = static_cast<size_t>(Precision::kFp16Tensor);
  const double tensor_hz =
      chip->tensor_clock ? gpu.peak[kFp16] / (chip->flop_per_sm_and_cycle[kFp16] * gpu.sm_count) : gpu.boost_hz;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    const bool tensor = static_cast<Precision>(i) >= Precision::kTf32Tensor;
    clocks[i] = tensor && static_cast<Precision>(i) != Precision::kFp64Tensor ? tensor_hz : gpu.boost_hz;
  }
  return clocks;
}

}  // namespace

Machine MachineOf(const Gpu& gpu) {
  Machine machine;
  machine.name = gpu.name;
  machine.chip = gpu.chip;
  machine.peak = gpu.peak;
  machine.dram_bytes_per_s = gpu.dram_bytes_per_s;
  machine.l1_bytes_per_s = gpu.l1_bytes_per_cycle * gpu.sm_count * gpu.boost_hz;
  machine.pcie_bytes_per_s = gpu.pcie_bytes_per_s;
  machine.nvlink_bytes_per_s = gpu.nvlink_bytes_per_s;
  if (const Chip* const chip = FindChip(gpu.chip)) machine.legacy_share = chip->legacy_share;
  machine.peak_hz = PeakClocks(gpu);
  machine.empirical = {.peak = gpu.empirical_peak,
                       .dram_bytes_per_s = gpu.empirical_dram_bytes_per_s,
                       .l2_bytes_per_s = gpu.empirical_l2_bytes_per_s,
                       .l1_bytes_per_s = gpu.empirical_l1_bytes_per_s};
  machine.empirical_source = gpu.empirical_source;
  return machine;
}

Machine MachineFor(const Run& run) {
  const Gpu* gpu = nullptr;
  if (!run.key.estimated_gpu.empty()) {
    gpu = FindGpu(run.key.estimated_gpu);
  } else if (!run.devices.empty()) {
    const DeviceInfo& device = run.devices.front();
    if (!device.mig) gpu = MatchGpu(device.name, device.memory_bytes);
  } else if (!run.key.gpu.empty()) {
    gpu = MatchGpu(run.key.gpu);
  }
  return gpu != nullptr ? MachineOf(*gpu) : Machine{};
}

}  // namespace rfinject::cli
