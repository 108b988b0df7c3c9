#include "collector/estimate/virtual_board.h"

namespace rfinject::estimate {

std::optional<rfinject_virtual_board> VirtualBoardOf(const Gpu& gpu) noexcept {
  if (gpu.memory_bytes == 0) return std::nullopt;
  // The names of the table are not terminated by a zero, which C wants; they live as long as the process.
  static char name[64];
  name[gpu.driver_name.copy(name, sizeof name - 1)] = '\0';
  rfinject_virtual_board board = {};
  board.name = name;
  board.devices = 1;
  board.cc_major = gpu.cc_major;
  board.cc_minor = gpu.cc_minor;
  board.sm_count = gpu.sm_count;
  board.memory_bytes = gpu.memory_bytes;
  board.l2_bytes = static_cast<uint64_t>(gpu.l2_bytes);
  board.sm_hz = gpu.boost_hz;
  board.dram_bytes_per_s = gpu.dram_bytes_per_s;
  board.pcie_bytes_per_s = gpu.pcie_bytes_per_s;
  return board;
}

}  // namespace rfinject::estimate
