#include "collector/arming/window_coverage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace rfinject::arming {
namespace {

TEST(WindowCoverage, OfNeighboursKnowsThatTheyAreWorthLittle) {
  const WindowCoverage coverage(100);
  // Eight steps in a row say how alike neighbours are, not how far the window's mean is.
  EXPECT_GT(coverage.WorstError({40, 41, 42, 43, 44, 45, 46, 47}), 0.3);
}

TEST(WindowCoverage, OfAnEvenSpreadKnowsThatTheIntervalIsTooWide) {
  const WindowCoverage coverage(100);
  // The mean of evenly spaced steps errs less than that of a random sample, and the interval knows nothing of that.
  EXPECT_NEAR(coverage.WorstError({6, 18, 31, 43, 56, 68, 81, 93}), 0.05, 0.01);
}

TEST(WindowCoverage, IsTheSameEachTimeAndStopsEarlyOnlyWhenItIsEnough) {
  const std::vector<uint64_t> steps = {3, 11, 12, 30, 47, 52, 77, 90};
  const double error = WindowCoverage(100).WorstError(steps);
  EXPECT_EQ(WindowCoverage(100).WorstError(steps), error);
  EXPECT_EQ(WindowCoverage(100).WorstError(steps, 2 * error), error);
  EXPECT_GE(WindowCoverage(100).WorstError(steps, error / 2), error / 2);
}

}  // namespace
}  // namespace rfinject::arming
