#include "cli/model/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace rfinject::cli {
namespace {

constexpr size_t kFp32 = static_cast<size_t>(Precision::kFp32);
constexpr size_t kTf32 = static_cast<size_t>(Precision::kTf32Tensor);

Machine A100() {
  Machine machine{.name = "A100-SXM4-40GB"};
  machine.peak[kFp32] = 19.5e12;
  machine.peak[kTf32] = 156e12;
  machine.dram_bytes_per_s = 1555e9;
  return machine;
}

TEST(Roofline, PipesOverlapAndTheSlowestCounts) {
  Work work;
  work.flop[kFp32] = 19.5e12;     // 1 s
  work.flop[kTf32] = 2 * 156e12;  // 2 s
  work.dram_bytes = 1.5 * 1555e9;
  const MinimalTime least = LeastTime(A100(), work);
  EXPECT_DOUBLE_EQ(least.compute_s, 2);
  EXPECT_DOUBLE_EQ(least.memory_s, 1.5);
  EXPECT_DOUBLE_EQ(least.total_s(), 2);
  EXPECT_DOUBLE_EQ(Attainable(work, least.total_s()), (19.5e12 + 2 * 156e12) / 2);
}

TEST(Roofline, BytesThatLeaveTheGpuTakeTheirLink) {
  Machine machine = A100();
  machine.pcie_bytes_per_s = 30e9;
  machine.nvlink_bytes_per_s = 300e9;
  const Work copy{.dram_bytes = 30e9, .pcie_bytes = 30e9};
  EXPECT_DOUBLE_EQ(LeastTime(machine, copy).link_s, 1);
  EXPECT_DOUBLE_EQ(LeastTime(machine, copy).total_s(), 1);
  EXPECT_DOUBLE_EQ(LeastTime(machine, Work{.pcie_bytes = 30e9, .nvlink_bytes = 600e9}).total_s(), 2);
  EXPECT_DOUBLE_EQ(LeastTime(A100(), copy).total_s(), 30e9 / 1555e9) << "a link that is not known is no roof";
}

TEST(Roofline, FlopOnAPathThatTheMachineLacksNeverEnd) {
  Work work;
  work.flop[static_cast<size_t>(Precision::kFp8Tensor)] = 1;
  EXPECT_TRUE(std::isinf(LeastTime(A100(), work).compute_s));
  EXPECT_EQ(Attainable(work, LeastTime(A100(), work).total_s()), 0);
}

TEST(Roofline, NoWorkTakesNoTime) {
  EXPECT_EQ(LeastTime(A100(), Work{}).total_s(), 0);
  EXPECT_EQ(Attainable(Work{}, 0), 0);
}

// For work of one precision, the effective roof must be the classic one.
TEST(Roofline, OnePrecisionGivesTheClassicRoof) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(3, 14);
  for (int i = 0; i < 1000; ++i) {
    Work work;
    work.flop[kTf32] = std::pow(10, exponent(random));
    work.dram_bytes = std::pow(10, exponent(random));
    const double attainable = Attainable(work, LeastTime(A100(), work).total_s());
    const double roof = std::min(156e12, 1555e9 * work.flop[kTf32] / work.dram_bytes);
    ASSERT_NEAR(attainable / roof, 1, 1e-12);
  }
}

}  // namespace
}  // namespace rfinject::cli
