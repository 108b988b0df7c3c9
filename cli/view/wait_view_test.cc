#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

WaitTable TableOf(double wall_ns, double busy_ns, double gpu_wait_ns) {
  WaitTable table;
  table.virtual_gpu = true;
  table.all.steps = 5;
  table.all.wall.mean_ns = wall_ns;
  table.all.gpu_busy.mean_ns = busy_ns;
  table.all.gpu_wait.mean_ns = gpu_wait_ns;
  return table;
}

TEST(StepText, AProgramThatNeverWaitsRunsAhead) {
  EXPECT_THAT(StepText(TableOf(2e6, 13e6, 0)), HasSubstr("does not wait for it, and runs ahead"));
}

// loss.item() in each of five steps, after the optimizer: the last wait is in no step, so that the clock has four
// fifths of what the GPU was busy, and yet the host waits all the time.
TEST(StepText, AProgramThatWaitsInEachStepDoesNotRunAhead) {
  const std::string text = StepText(TableOf(10.6e6, 13.2e6, 10.4e6));
  EXPECT_THAT(text, Not(HasSubstr("does not wait")));
  EXPECT_THAT(text, HasSubstr("13.2 ms that the GPU is busy"));
  EXPECT_THAT(text, HasSubstr("waited for in the next"));
}

TEST(StepText, WhatAStepTakesByTheClockIsSaidWhereTheGpuTakesNoLonger) {
  EXPECT_THAT(StepText(TableOf(20e6, 10e6, 5e6)), HasSubstr("busy for 50 %"));
}

}  // namespace
}  // namespace rfinject::cli
