#include "collector/pm_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace rfinject {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PmWindow, SumsAndTheShareOfTheTensorPipes) {
  PmWindow window;
  ASSERT_TRUE(
      FoldPmSamples({{1000, 1100, 10, 1, 0}, {1100, 1200, 20, 2, 100}, {1200, 1300, 30, 3, 50}}, true, &window));
  EXPECT_EQ(window.start_unix_ns, 1000);
  EXPECT_EQ(window.duration_ns, 300u);
  EXPECT_EQ(window.samples, 3u);
  EXPECT_EQ(window.dram_read_bytes, 60u);
  EXPECT_EQ(window.dram_write_bytes, 6u);
  EXPECT_EQ(window.tensor_active_ns, 150u);
  EXPECT_EQ(window.bin_ns, 100u);
  EXPECT_THAT(window.bin_dram_bytes, ElementsAre(11, 22, 33));
  EXPECT_THAT(window.bin_tensor_permille, ElementsAre(0, 1000, 500));
}

TEST(PmWindow, ManySamplesFitIntoFewBinsAndNoByteIsLost) {
  std::vector<PmSample> samples;
  for (uint64_t i = 0; i < 1000; ++i) samples.push_back({i * 10, i * 10 + 10, 3, 4, 25});
  PmWindow window;
  ASSERT_TRUE(FoldPmSamples(samples, true, &window));
  EXPECT_EQ(window.bin_dram_bytes.size(), kMaxPmBins);
  EXPECT_EQ(std::accumulate(window.bin_dram_bytes.begin(), window.bin_dram_bytes.end(), uint64_t{0}), 7000u);
  for (uint32_t permille : window.bin_tensor_permille) EXPECT_EQ(permille, 250u);
}

TEST(PmWindow, WhatCannotBeIsLeftOut) {
  PmWindow window;
  EXPECT_FALSE(FoldPmSamples({}, false, &window));
  EXPECT_FALSE(FoldPmSamples({{5, 5, 1, 1, 0}, {9, 7, 1, 1, 0}, {10, 20, NAN, 0, 0}, {10, 20, 0, INFINITY, 0}}, false,
                             &window));
  ASSERT_TRUE(FoldPmSamples({{100, 200, 1, 1, NAN}, {50, 60, 9, 9, 0}, {200, 300, 2, 2, NAN}}, false, &window));
  EXPECT_EQ(window.samples, 2u);
  EXPECT_EQ(window.dram_read_bytes, 3u);
  EXPECT_FALSE(window.has_tensor);
  EXPECT_THAT(window.bin_tensor_permille, IsEmpty());
  EXPECT_FALSE(FoldPmSamples({{100, 200, 1, 1, NAN}}, true, &window));
}

}  // namespace
}  // namespace rfinject
