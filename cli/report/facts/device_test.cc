#include "cli/report/facts/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A run on a GPU whose clock reaches 1,980 MHz, with the clock in windows of steps 10, 20, …; 0: not sampled.
Device SampledAt(std::initializer_list<uint32_t> mhz) {
  cli::Run run;
  run.devices = {{.index = 0, .sm_clock_khz = 1'980'000}};
  uint64_t step = 0;
  for (const uint32_t one : mhz) {
    run.kept.sampled_window.Add({.step = step += 10, .gpu_clock_khz = 1000 * one});
  }
  Device device;
  device.clock = SampledClockOf(run);
  return device;
}

TEST(SampledClock, AClockThatStandsBelowTheMostIsHeld) {
  const Device device = SampledAt({1200, 1201, 0, 1199, 1200});
  EXPECT_EQ(device.clock.windows, 4u);
  EXPECT_DOUBLE_EQ(device.clock.mean_hz, 1.2e9);
  EXPECT_TRUE(device.clock.held());
  EXPECT_THAT(ClockText(device), AllOf(HasSubstr("stood at 1.20 GHz, of 1.98 GHz"), HasSubstr("-rgc")));
}

TEST(SampledClock, OneThatMovesIsAtALimit) {
  const Device device = SampledAt({1700, 1650, 1760, 1620});
  EXPECT_FALSE(device.clock.held());
  EXPECT_THAT(ClockText(device), HasSubstr("ran at 1.62 GHz to 1.76 GHz, of 1.98 GHz"));
}

TEST(SampledClock, AtTheMostOrAfterFewWindowsNothingIsSaid) {
  EXPECT_EQ(ClockText(SampledAt({1980, 1980, 1975, 1980, 1700})), "");
  EXPECT_EQ(ClockText(SampledAt({1200, 1200, 1200})), "");
  EXPECT_EQ(ClockText(SampledAt({})), "");
  EXPECT_EQ(SampledAt({}).clock.low_hz, 0);
}

}  // namespace
}  // namespace rfinject::cli
