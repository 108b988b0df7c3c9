#include "cli/model/transfer.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(TransferTest, ACopyTakesItsLatencyAndItsBytesOverTheRate) {
  const Gpu& gpu = *FindGpu("A100-SXM4-80GB");
  const ExpectedTime one = ExpectedTransfer({.pcie_bytes = 1e9}, gpu);
  const ExpectedTime two = ExpectedTransfer({.pcie_bytes = 2e9}, gpu);
  const double latency = 2 * one.expected_s - two.expected_s;
  EXPECT_NEAR(latency, 3e-6, 1e-9);
  EXPECT_NEAR(one.ideal_s, 1e9 / gpu.pcie_bytes_per_s, 1e-12);
  EXPECT_LT(one.ideal_s, one.low_s);
  EXPECT_LT(one.low_s, one.expected_s);
  EXPECT_LT(one.expected_s, one.high_s);
  // What was published: 12.36 GB/s over PCIe 3, 54.8 to 55.6 over PCIe 5.
  const double v100 = 1e9 / 12.36e9, h100 = 1e9 / 55.2e9;
  for (const auto& [name, seconds] : {std::pair{"V100-PCIe", v100}, std::pair{"H100-SXM5-80GB", h100}}) {
    const ExpectedTime time = ExpectedTransfer({.pcie_bytes = 1e9}, *FindGpu(name));
    EXPECT_LT(time.low_s, seconds) << name;
    EXPECT_GT(time.high_s, seconds) << name;
  }
}

TEST(TransferTest, CollectivesGoOverNvlinkWhereTheBoardHasIt) {
  const Gpu& gpu = *FindGpu("A100-SXM4-80GB");
  // 10 GiB among eight: 80.5 ms, 233 GB/s of bus bandwidth.
  const ExpectedTime large = ExpectedTransfer({.nvlink_bytes = 10737418240 * 2.0 * 7 / 8, .collective = true}, gpu);
  EXPECT_NEAR(large.expected_s, 80.5e-3, 1e-3);
  const ExpectedTime small = ExpectedTransfer({.nvlink_bytes = 14, .collective = true}, gpu);
  EXPECT_LT(small.low_s, 17e-6);
  EXPECT_GT(small.high_s, 32e-6);
  EXPECT_EQ(ExpectedTransfer({.nvlink_bytes = 1e9, .collective = true}, *FindGpu("T4")).expected_s, 0);
  EXPECT_GT(ExpectedTransfer({.pcie_bytes = 1e9, .collective = true}, *FindGpu("T4")).expected_s, 1 / 15.8);
}

TEST(TransferTest, NothingTakesNoTime) { EXPECT_EQ(ExpectedTransfer({}, *FindGpu("T4")).expected_s, 0); }

}  // namespace
}  // namespace rfinject::cli
