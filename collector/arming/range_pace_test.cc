#include "collector/arming/range_pace.h"

#include <gtest/gtest.h>

namespace rfinject::arming {
namespace {

constexpr uint64_t kStepNs = 20'000'000;

TEST(RangePace, AStepIsLongerByAQuarterAtMost) {
  const RangePace pace;
  EXPECT_NEAR(static_cast<double>(pace.OfStep(kStepNs, 0, 0)), 5e6, 1);
  // The first range of a step is always allowed, so that something is counted.
  EXPECT_EQ(pace.OfStep(0, 0, 0), 1u);
}

// Steps in which every ns that is expected costs `cost`: how long the last of many is.
double Longer(double cost, double free_ns) {
  RangePace pace;
  double expected = 7e6, longer = 1e6, of_step = 0;
  pace.Begin(expected, longer);
  for (int step = 0; step < 400; ++step) {
    const auto allowed = static_cast<double>(pace.OfStep(kStepNs, expected, longer));
    of_step = std::max(0.0, allowed * cost - free_ns);
    expected += allowed;
    longer += of_step;
  }
  return of_step;
}

TEST(RangePace, LearnsWhatARangeCosts) {
  // On a machine where they cost half, or three times what is expected, and where the host has time to spare.
  EXPECT_NEAR(Longer(0.5, 0), 5e6, 5e5);
  EXPECT_NEAR(Longer(3, 0), 5e6, 5e5);
  EXPECT_LE(Longer(1, 4e6), 5.1e6);
  EXPECT_GE(Longer(1, 4e6), 3e6);
  // Where nothing is felt there is a limit all the same.
  EXPECT_EQ(Longer(0, 0), 0);
}

TEST(RangePace, AnotherGroupBeginsAnew) {
  RangePace pace;
  const uint64_t before = pace.OfStep(kStepNs, 1e9, 1e8);
  EXPECT_GT(before, 10'000'000u);
  pace.Begin(1e9, 1e8);
  EXPECT_NEAR(static_cast<double>(pace.OfStep(kStepNs, 1e9, 1e8)), 5e6, 1);
}

}  // namespace
}  // namespace rfinject::arming
