// Advice on a measured run whose operators were observed, beside that on an estimate of the same program.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/testing/as_measured.h"

namespace rfinject::cli {
namespace {

Report FoldFirst(const Profile& profile, const FoldOptions& options = {}) {
  const Run& run = profile.runs.begin()->second;
  return FoldRun(profile, run, MachineFor(run), options);
}

class MeasuredAdvice : public ::testing::TestWithParam<const char*> {};

// Times are those that the estimate expects, so what holds there holds here, and wins as much. What a clock says, an
// estimate on a CPU has none of.
TEST_P(MeasuredAdvice, IsThatOfTheEstimate) {
  const Profile estimate = testing::ReadGoldenTrace(GetParam());
  ASSERT_FALSE(estimate.runs.empty());
  const Report of_estimate = FoldFirst(estimate), of_measured = FoldFirst(testing::AsMeasured(estimate));
  std::map<std::string, const Advice*> measured;
  for (const Advice& advice : of_measured.advice.advice) measured[advice.rule->name] = &advice;
  size_t held = 0;
  for (const Advice& expected : of_estimate.advice.advice) {
    if (expected.state == Advice::State::kUnknown) continue;
    const Advice& found = *measured.at(expected.rule->name);
    if (expected.rule->name == "cudnn-benchmark" || expected.rule->name == "channels-last")
      continue;  // of measured runs alone
    EXPECT_EQ(static_cast<int>(found.state), static_cast<int>(expected.state)) << expected.rule->name;
    EXPECT_NEAR(found.gain_ns, expected.gain_ns, 0.02 * expected.gain_ns + 1) << expected.rule->name;
    held += expected.state == Advice::State::kHolds ? 1 : 0;
  }
  EXPECT_GT(held, 0u);
}
INSTANTIATE_TEST_SUITE_P(Golden, MeasuredAdvice, ::testing::Values("est-resnet18", "a100", "v100"));

// The run takes as long as is expected, so on another GPU it takes what is expected there.
TEST(OtherGpu, IsExpectedAsItIsHere) {
  const Profile estimate = testing::ReadGoldenTrace("v100");
  ASSERT_FALSE(estimate.runs.empty());
  const Profile measured = testing::AsMeasured(estimate);
  const Gpu* const other = FindGpu("A100-SXM4-80GB");
  const Report report = FoldFirst(measured, {.on = other});
  EXPECT_NEAR(report.device.other.over_usual, 1, 1e-3);
  EXPECT_NEAR(report.device.other.known_share, 1, 1e-3);
  EXPECT_LT(report.device.other.step_ns, report.clock.gpu_ns);
  EXPECT_LT(report.device.other.low_ns, report.device.other.step_ns);
  EXPECT_GT(report.device.other.high_ns, report.device.other.step_ns);
  double rows = 0;
  for (const Row& row : report.rows) rows += row.sums[Quantity::kOtherTime];
  EXPECT_NEAR(rows / report.steps.divisor(), report.device.other.step_ns, 1e-6 * report.device.other.step_ns);

  // On the same GPU, a run that takes half as long again is expected to do so there.
  Profile slow = measured;
  for (auto& [key, stats] : slow.runs.begin()->second.launches) {
    Stat& time = stats.metrics.at(std::string(kMetricTime));
    time = Stat::Same(time.min * 3 / 2, time.n);
  }
  const Report slower = FoldFirst(slow, {.on = other});
  EXPECT_NEAR(slower.device.other.step_ns / report.device.other.step_ns, 1.5, 1e-3);
}

// Without operators nothing is known of another GPU.
TEST(OtherGpu, IsNotKnownWithoutOperators) {
  Profile measured = testing::AsMeasured(testing::ReadGoldenTrace("v100"));
  for (auto& [key, stats] : measured.runs.begin()->second.launches) {
    stats.metrics.erase(std::string(kMetricCallPart));
    stats.metrics.erase(std::string(kMetricCompulsoryBytes));
  }
  const Report report = FoldFirst(measured, {.on = FindGpu("A100-SXM4-80GB")});
  EXPECT_EQ(report.device.other.step_ns, 0);
  EXPECT_NE(OtherGpuText(report.device.other).find("is not known"), std::string::npos);
}

}  // namespace
}  // namespace rfinject::cli
