#include "collector/memory_peak.h"

#include <gtest/gtest.h>

namespace rfinject {
namespace {

constexpr Site kWeights{};
constexpr Site kForward{.layer = 2, .phase = Phase::kForward};
constexpr Site kBackward{.layer = 2, .phase = Phase::kBackward};

uint64_t BytesOf(const MemoryPeak& peak, const Site& site) {
  for (const MemoryPart& part : peak.parts) {
    if (part.layer == site.layer && part.phase == site.phase) return part.bytes;
  }
  return 0;
}

TEST(MemoryWatch, ThePeakIsWhatLayThereWhenMostDid) {
  MemoryWatch watch;
  watch.OnMemory(0, 100, 1000, 4096, kWeights, 0);
  watch.OnMemory(0, 200, 500, 4096, kForward, 0);
  watch.OnMemory(0, 300, 700, 8192, kForward, 1);
  watch.OnMemory(0, 200, -500, 8192, kBackward, 1);
  watch.OnMemory(0, 400, 400, 9000, kBackward, 1);  // in all 2100, less than before
  MemoryPeak peak;
  ASSERT_TRUE(watch.TakePeak(&peak));
  EXPECT_EQ(peak.allocated_bytes, 2200u);
  EXPECT_EQ(peak.reserved_bytes, 8192u);
  EXPECT_EQ(peak.step, 1u);
  EXPECT_EQ(BytesOf(peak, kWeights), 1000u);
  EXPECT_EQ(BytesOf(peak, kForward), 1200u);
  EXPECT_EQ(BytesOf(peak, kBackward), 0u);
  // It is taken once, until there is a higher one.
  EXPECT_FALSE(watch.TakePeak(&peak));
  watch.OnMemory(0, 500, 101, 9000, kBackward, 2);
  ASSERT_TRUE(watch.TakePeak(&peak));
  EXPECT_EQ(peak.allocated_bytes, 2201u);
  EXPECT_EQ(BytesOf(peak, kForward), 700u);
  EXPECT_EQ(BytesOf(peak, kBackward), 501u);
}

TEST(MemoryWatch, EachDeviceHasItsOwnAndTheHighestCounts) {
  MemoryWatch watch;
  watch.OnMemory(0, 100, 1000, 1000, kForward, 0);
  watch.OnMemory(1, 100, 1500, 1500, kForward, 0);
  watch.OnMemory(0, 100, -1000, 1000, kForward, 0);
  MemoryPeak peak;
  ASSERT_TRUE(watch.TakePeak(&peak));
  EXPECT_EQ(peak.device, 1u);
  EXPECT_EQ(peak.allocated_bytes, 1500u);
}

TEST(MemoryWatch, WhatItDidNotSeeGivenOutIsNotTakenBack) {
  MemoryWatch watch;
  MemoryPeak peak;
  EXPECT_FALSE(watch.TakePeak(&peak));
  watch.OnMemory(0, 100, -1000, 0, kForward, 0);
  watch.OnMemory(0, 200, 10, 0, kForward, 0);
  watch.OnMemory(0, 200, 20, 0, kForward, 0);  // again, without having come back
  ASSERT_TRUE(watch.TakePeak(&peak));
  EXPECT_EQ(peak.allocated_bytes, 20u);
}

TEST(MemoryWatch, AnAddressWithinAPieceHasTheRestOfIt) {
  MemoryWatch watch;
  watch.OnMemory(0, 0x1000, 512, 2048, {}, 0);
  watch.OnMemory(0, 0x1200, 512, 2048, {}, 0);
  EXPECT_EQ(watch.BytesAt(0, 0xfff), 0u);
  EXPECT_EQ(watch.BytesAt(0, 0x1000), 512u);
  EXPECT_EQ(watch.BytesAt(0, 0x11ff), 1u);
  EXPECT_EQ(watch.BytesAt(0, 0x1300), 256u);
  EXPECT_EQ(watch.BytesAt(0, 0x1400), 0u);
  EXPECT_EQ(watch.BytesAt(1, 0x1000), 0u);
  watch.OnMemory(0, 0x1000, -512, 2048, {}, 0);
  EXPECT_EQ(watch.BytesAt(0, 0x1000), 0u);
}

TEST(MemoryWatch, WhatTheDeviceRefusedIsSaidOnceMore) {
  MemoryWatch watch;
  const Site site{.layer = 3, .phase = Phase::kForward};
  watch.OnRefused(0, 5, site);  // of a device that was not seen
  watch.OnMemory(0, 0x10, 1000, 2048, {}, 0);
  watch.OnMemory(1, 0x20, 3000, 4096, {}, 0);
  MemoryPeak peak;
  ASSERT_TRUE(watch.TakePeak(&peak));
  EXPECT_EQ(peak.device, 1u);
  EXPECT_EQ(peak.refused_bytes, 0u);
  watch.OnRefused(0, 700, site);
  watch.OnRefused(0, 600, {});
  ASSERT_TRUE(watch.TakePeak(&peak));
  EXPECT_EQ(peak.device, 0u);
  EXPECT_EQ(peak.allocated_bytes, 1000u);
  EXPECT_EQ(peak.refused_bytes, 700u);
  EXPECT_EQ(peak.refused_layer, 3u);
  EXPECT_FALSE(watch.TakePeak(&peak));
}

}  // namespace
}  // namespace rfinject
