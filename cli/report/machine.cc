#include "cli/report/machine.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

// A GPU's name taken apart: "NVIDIA A100-SXM4-40GB" is model A100, form SXM, 40 GB.
struct Parts {
  std::string model;  // words that say which GPU it is, joined: "A100", "RTX3090TI"
  std::string form;   // "SXM", "PCIE", "NVL", or empty
  unsigned gigabytes = 0;
  bool slice = false;  // MIG
};

bool IsNumber(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

Parts Split(std::string_view name) {
  const std::vector<std::string> words =
      absl::StrSplit(absl::AsciiStrToUpper(std::string(name)), absl::ByAnyChar(" -_"), absl::SkipEmpty());
  Parts parts;
  bool hbm3 = false;
  for (const std::string& word : words) {
    if (word == "NVIDIA" || word == "TESLA" || word == "GEFORCE" || word == "AMD" || word == "INSTINCT" ||
        word == "VF") {
      continue;  // VF: a virtual function, which is all of the GPU
    }
    if (word == "MIG") {
      parts.slice = true;
    } else if (word.starts_with("SXM") && (word.size() == 3 || IsNumber(word.substr(3)))) {
      parts.form = "SXM";
    } else if (word == "DGXS" || word == "OAM") {
      // The modules of a DGX Station have an SXM module's chip, clocks and memory. AMD's modules are OAM.
      parts.form = "SXM";
    } else if (word == "PCIE" || word == "NVL") {
      parts.form = word;
    } else if (word == "HBM3" || word == "HBM3E") {
      hbm3 = true;
    } else if (word.size() > 2 && word.size() < 7 && word.ends_with("GB") &&
               IsNumber(word.substr(0, word.size() - 2))) {
      parts.gigabytes = static_cast<unsigned>(std::stoul(word.substr(0, word.size() - 2)));
    } else {
      parts.model += word;
    }
  }
  if (parts.form.empty() && hbm3) parts.form = "SXM";  // the driver calls the SXM5 module "H100 80GB HBM3"
  return parts;
}

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

const Gpu* MatchGpu(std::string_view device_name, uint64_t memory_bytes) {
  if (const Gpu* exact = FindGpu(device_name)) return exact;
  const Parts wanted = Split(device_name);
  if (wanted.slice || wanted.model.empty()) return nullptr;
  const double gigabytes = wanted.gigabytes != 0 ? wanted.gigabytes : static_cast<double>(memory_bytes) / 1e9;
  const Gpu* best = nullptr;
  double best_distance = 0;
  for (const Gpu& gpu : AllGpus()) {
    const Parts row = Split(gpu.name);
    if (row.model != wanted.model) continue;
    // A name without a form is the module's ("NVIDIA H200"); cards say PCIe or NVL.
    const std::string form = wanted.form.empty() && !row.form.empty() ? "SXM" : wanted.form;
    if (!form.empty() && !row.form.empty() && row.form != form) continue;
    if (wanted.gigabytes != 0 && row.gigabytes != 0 && row.gigabytes != wanted.gigabytes) continue;
    // Devices report a little less, or in 2^30, than the name on the box.
    const double distance = gigabytes > 0 && row.gigabytes != 0 ? std::abs(std::log(gigabytes / row.gigabytes)) : 0;
    if (distance > 0.25) continue;
    if (best == nullptr || distance < best_distance) {
      best = &gpu;
      best_distance = distance;
    }
  }
  return best;
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
