#include "collector/estimate/virtual_board.h"

#include <gtest/gtest.h>

#include "gpus/gpus.h"

namespace rfinject::estimate {
namespace {

// --estimate takes the name of any row of the table. One whose memory has no source gets no virtual GPU.
TEST(VirtualBoard, EveryGpuOfTheTableWhoseMemoryIsKnownHasOne) {
  for (const Gpu& gpu : AllGpus()) {
    const auto board = VirtualBoardOf(gpu);
    ASSERT_EQ(board.has_value(), gpu.memory_bytes > 0) << gpu.name;
    if (!board.has_value()) continue;
    EXPECT_EQ(board->sm_count, gpu.sm_count) << gpu.name;
    EXPECT_GT(board->memory_bytes, uint64_t{8} << 30) << gpu.name;
    EXPECT_EQ(board->memory_bytes % (2 << 20), 0u) << gpu.name;
  }
}

TEST(VirtualBoard, ABoardWhoseMemoryIsNotKnownHasNone) {
  Gpu gpu = AllGpus()[0];
  gpu.memory_bytes = 0;
  EXPECT_FALSE(VirtualBoardOf(gpu).has_value());
}

TEST(VirtualBoard, HasTheDriversNameAndMemory) {
  const auto board = VirtualBoardOf(*FindGpu("H100-PCIe-80GB"));
  ASSERT_TRUE(board.has_value());
  EXPECT_STREQ(board->name, "NVIDIA H100 PCIe");
  EXPECT_EQ(board->memory_bytes, uint64_t{81008} << 20);
}

}  // namespace
}  // namespace rfinject::estimate
