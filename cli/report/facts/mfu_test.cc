#include "cli/report/facts/mfu.h"

#include <gtest/gtest.h>

#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

// Of four steps with a batch of 8, from the FLOP of one sequence.
Row PhaseRow(Phase phase, double products, double hidden, double others) {
  constexpr double kSequences = 4 * 8;
  Row row;
  row.phase = phase;
  row.sums[Quantity::kModelFlop] = kSequences * (products + others);
  row.sums[Quantity::kProductFlop] = kSequences * products;
  row.sums[Quantity::kHiddenFlop] = kSequences * hidden;
  return row;
}

// GPT-2 small at 1024 tokens and a batch of 8: 8 * 874.9 GFLOP of forward and backward, over four steps of 64.9 ms. A
// layer's scores are 2 * 2 * 1024 * 1024 * 768 FLOP, of which the mask leaves (1024 + 1) / 2 of 1024.
constexpr double kScores = 12 * 4 * 1024.0 * 1024.0 * 768.0, kHidden = kScores * (1 - 1025.0 / 2048.0);
Report Gpt2() {
  Report report;
  report.steps.count = 4;
  report.machine.peak[static_cast<size_t>(Precision::kBf16Tensor)] = 989.4e12;
  report.machine.peak[static_cast<size_t>(Precision::kFp32)] = 66.9e12;
  report.phases = {PhaseRow(Phase::kForward, 291.648307200e9, kHidden, 1e9),
                   PhaseRow(Phase::kBackward, 583.2966144e9, 2 * kHidden, 1e9),
                   PhaseRow(Phase::kRecompute, 0, 0, 1e12), PhaseRow(Phase::kOptimizer, 0, 0, 1e12)};
  for (const Row& row : report.phases) report.total.sums.Add(row.sums);
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
  EXPECT_NEAR(mfu.useful_flop, 8 * (874'944'921'600.0 - 3 * kHidden), 1e6);
  EXPECT_NEAR(mfu.useful_share() / mfu.share(), mfu.useful_flop / mfu.flop, 1e-9);
  EXPECT_EQ(MfuText(report), "MFU 11 % (useful 10 %) of 989 TFLOP/s (BF16 tensor)");
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

TEST(Mfu, OfATraceThatDoesNotTellProductsApartIsOfAllModelFlop) {
  Report report = Gpt2();
  report.total.sums[Quantity::kProductFlop] = 0;
  for (Row& row : report.phases) row.sums[Quantity::kProductFlop] = row.sums[Quantity::kHiddenFlop] = 0;
  EXPECT_NEAR(MfuOf(report).flop, 8 * (874'944'921'600.0 + 2e9), 1e6);
  EXPECT_EQ(MfuText(report), "MFU 11 % of 989 TFLOP/s (BF16 tensor)");
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
