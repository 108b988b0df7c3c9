#include "cli/report/facts/mfu.h"

#include <gtest/gtest.h>

#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

Row PhaseRow(Phase phase, double model_flop) {
  Row row;
  row.phase = phase;
  row.sums[Quantity::kModelFlop] = model_flop;
  return row;
}

// GPT-2 small at 1024 tokens and a batch of 8: 8 * 874.9 GFLOP of forward and backward, over four steps of 64.9 ms.
Report Gpt2() {
  Report report;
  report.steps.count = 4;
  report.machine.peak[static_cast<size_t>(Precision::kBf16Tensor)] = 989.4e12;
  report.machine.peak[static_cast<size_t>(Precision::kFp32)] = 66.9e12;
  report.phases = {PhaseRow(Phase::kForward, 4 * 8 * 291.648307200e9),
                   PhaseRow(Phase::kBackward, 4 * 8 * 583.2966144e9), PhaseRow(Phase::kRecompute, 1e12),
                   PhaseRow(Phase::kOptimizer, 1e12)};
  report.total.sums[Quantity::kTime] = 4 * 64.9e6;
  report.total.sums[FlopIn(Precision::kBf16Tensor)] = 4 * 8 * 900e9;
  report.total.sums[FlopIn(Precision::kFp32)] = 4 * 8 * 10e9;
  return report;
}

TEST(Mfu, IsTheModelsForwardAndBackwardOverThePeakOfItsPrecision) {
  Report report = Gpt2();
  const Mfu mfu = MfuOf(report);
  EXPECT_EQ(mfu.precision, Precision::kBf16Tensor);
  EXPECT_NEAR(mfu.flop, 8 * 874'944'921'600.0, 1e6);
  EXPECT_NEAR(mfu.share(), 8 * 874'944'921'600.0 / (64.9e-3 * 989.4e12), 1e-9);
  EXPECT_EQ(MfuText(report), "MFU 11 % of 989 TFLOP/s (BF16 tensor)");
  // By the clock, where that is the GPU's; an estimate's host is another machine's.
  report.clock.wall_ns = 2 * 64.9e6;
  EXPECT_NEAR(MfuOf(report).share(), mfu.share() / 2, 1e-9);
  report.clock.wall_ns = 64.9e6 / 2;  // kernels overlap
  report.clock.measured = true;
  EXPECT_NEAR(MfuOf(report).share(), 2 * mfu.share(), 1e-9);
  report.clock = {.wall_ns = 2 * 64.9e6};
  report.run.source = SourceKind::kEstimated;
  EXPECT_NEAR(MfuOf(report).share(), mfu.share(), 1e-9);
}

TEST(Mfu, IsNotKnownWithoutAPeakOrTheModelsFlop) {
  Report report = Gpt2();
  report.machine = {};
  EXPECT_EQ(MfuText(report), "");
  report = Gpt2();
  report.phases.clear();
  EXPECT_EQ(MfuText(report), "");
}

}  // namespace
}  // namespace rfinject::cli
