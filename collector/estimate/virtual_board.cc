#include "collector/estimate/virtual_board.h"

#include <string_view>

namespace rfinject::estimate {
namespace {

struct BoardFacts {
  std::string_view gpu;  // row of gpus.csv
  const char* name;      // cuDeviceGetName's
  double memory_gib;     // cudaDeviceProp::totalGlobalMem
};

// The memory is what PyTorch's OutOfMemoryError calls the total capacity: less than the box says, because error
// correction and the driver take their part. Sources: (i) means read in issues of public repositories: A100-SXM4-40GB
// TianheWu/CoSeR#10, A100-SXM4-80GB HiDream-ai/VAREdit#6, H100-SXM5-80GB vllm-project/vllm#27508, H100-NVL-94GB
// ali-vilab/VACE#56, V100-SXM2-32GB haotian-liu/LLaVA#812, A10 zai-org/CogVLM#236. (u) means from memory, not
// verified.
constexpr BoardFacts kBoards[] = {
    {"P100-SXM2-16GB", "Tesla P100-SXM2-16GB", 15.90},    // u
    {"P100-PCIe-16GB", "Tesla P100-PCIE-16GB", 15.90},    // u
    {"P100-PCIe-12GB", "Tesla P100-PCIE-12GB", 11.91},    // u
    {"V100-SXM2-16GB", "Tesla V100-SXM2-16GB", 15.77},    // u
    {"V100-SXM2-32GB", "Tesla V100-SXM2-32GB", 31.74},    // i
    {"V100-PCIe", "Tesla V100-PCIE-16GB", 15.77},         // u
    {"V100S-PCIe-32GB", "Tesla V100S-PCIE-32GB", 31.74},  // u
    {"T4", "Tesla T4", 14.58},                            // u
    {"A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 39.50},   // i
    {"A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", 79.25},   // i
    {"A100-PCIe-40GB", "NVIDIA A100-PCIE-40GB", 39.50},   // u
    {"A100-PCIe-80GB", "NVIDIA A100 80GB PCIe", 79.25},   // u
    {"A10", "NVIDIA A10", 21.99},                         // i
    {"RTX3090", "NVIDIA GeForce RTX 3090", 23.69},        // u
    {"L4", "NVIDIA L4", 22.03},                           // u
    {"RTX4090", "NVIDIA GeForce RTX 4090", 23.64},        // u
    {"H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", 79.11},   // i
    {"H100-PCIe-80GB", "NVIDIA H100 PCIe", 79.11},        // u
    {"H100-NVL-94GB", "NVIDIA H100 NVL", 93.00},          // i
    {"H200-SXM-141GB", "NVIDIA H200", 139.80},            // u
    {"H200-NVL-141GB", "NVIDIA H200 NVL", 139.80},        // u
    {"B200-SXM-180GB", "NVIDIA B200", 178.35},            // u
};

}  // namespace

std::optional<rfinject_virtual_board> VirtualBoardOf(const Gpu& gpu) noexcept {
  for (const BoardFacts& facts : kBoards) {
    if (facts.gpu != gpu.name) continue;
    rfinject_virtual_board board = {};
    board.name = facts.name;
    board.devices = 1;
    board.cc_major = gpu.cc_major;
    board.cc_minor = gpu.cc_minor;
    board.sm_count = gpu.sm_count;
    // A device has whole pages of 2 MiB.
    board.memory_bytes = static_cast<uint64_t>(facts.memory_gib * 512) * (2u << 20);
    board.l2_bytes = static_cast<uint64_t>(gpu.l2_bytes);
    board.sm_hz = gpu.boost_hz;
    board.dram_bytes_per_s = gpu.dram_bytes_per_s;
    board.pcie_bytes_per_s = gpu.pcie_bytes_per_s;
    return board;
  }
  return std::nullopt;
}

}  // namespace rfinject::estimate
