#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_join.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct CountedKernel {
  const char* name;
  uint64_t fp32 = 0, fp16 = 0, bf16_tensor = 0;
  std::optional<uint64_t> fma = {};  // of fp16
};

Report ReportOf(const std::vector<CountedKernel>& kernels, SourceKind source = SourceKind::kMeasured,
                const std::string& autocast = {}) {
  Profile profile = testing::OneKey({}, {});
  cli::Run& run = profile.runs.begin()->second;
  run.launches.clear();
  run.key.source = source;
  run.key.policy.autocast_dtype = autocast;
  for (const CountedKernel& kernel : kernels) {
    LaunchStats& stats = run.launches[{.layer = {.model = "Net", .path = "a"}, .kernel = kernel.name}];
    stats.launches = 1;
    stats.metrics["rf.time"].Add(1'000'000);
    stats.metrics["rf.flop.fp32"].Add(kernel.fp32);
    stats.metrics["rf.flop.fp16"].Add(kernel.fp16);
    stats.metrics["rf.flop.bf16_tc"].Add(kernel.bf16_tensor);
    if (kernel.fma) stats.metrics["rf.flop.fp16.fma"].Add(*kernel.fma);
  }
  return FoldRun(profile, run, testing::SampleA100(), {});
}

double Half(const Report& report) { return report.total.sums.flop()[static_cast<size_t>(Precision::kFp16)]; }

// As runs on an H100 had them: FP32 training with 0.6 % of its FLOP in FP16.
TEST(ConstantMoves, AreNoFlopOfAKernelWithoutAHalfOperand) {
  const Report report = ReportOf({{"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_…_ffma_…", 980'000, 1'000},
                                  {"void flip_filter<float, float>(float*, …)", 0, 5'000},
                                  {"void cudnn::cnn::kern_precompute_indices<false>(int*, …)", 0, 500}});
  EXPECT_EQ(Half(report), 0);
  EXPECT_EQ(report.total.sums.total_flop(), 980'000);
  EXPECT_EQ(report.attribution.constant_moves, 6'500);
  const std::string words = absl::StrJoin(HeadlineText(report), "\n");
  EXPECT_THAT(words,
              HasSubstr("100 % of FLOP in FP32; instructions of half precision that only move constants, 0.7 %"));
  EXPECT_THAT(words, Not(HasSubstr("in FP16")));
}

TEST(ConstantMoves, ArithmeticOfHalfOperandsCounts) {
  const CountedKernel half{"void at::native::elementwise_kernel<…CUDAFunctor_add<c10::Half>…>(…)", 10, 1'000};
  const CountedKernel full{"void at::native::elementwise_kernel<…CUDAFunctor_add<float>…>(…)", 10, 70};
  const CountedKernel unnamed{"my_fused_kernel(void*, int)", 10, 500};
  EXPECT_EQ(Half(ReportOf({half, full})), 1'000);
  // A kernel whose name has no type may compute in half precision where the run does.
  EXPECT_EQ(Half(ReportOf({unnamed})), 0);
  EXPECT_EQ(Half(ReportOf({unnamed, half})), 1'500);
  EXPECT_EQ(Half(ReportOf({unnamed, {"product", 0, 0, 1'000}})), 500);
  EXPECT_EQ(Half(ReportOf({unnamed}, SourceKind::kMeasured, "float16")), 500);
  EXPECT_EQ(Half(ReportOf({full}, SourceKind::kMeasured, "float16")), 0);
}

// HADD2 and HMUL2 move no constants.
TEST(ConstantMoves, WhatIsNoMultiplyAddIsArithmetic) {
  const CountedKernel moves{"my_fused_kernel(void*, int)", 10, 500, 0, 500};
  const CountedKernel adds{"my_other_kernel(void*, int)", 10, 500, 0, 400};
  const CountedKernel product{"product", 0, 0, 1'000};
  EXPECT_EQ(Half(ReportOf({moves, product})), 0) << "also where the run has half precision elsewhere";
  EXPECT_EQ(Half(ReportOf({moves}, SourceKind::kMeasured, "float16")), 0);
  EXPECT_EQ(Half(ReportOf({adds})), 500) << "also where it has none";
  const CountedKernel full{"void flip_filter<float, float>(…)", 10, 500, 0, 400};
  EXPECT_EQ(Half(ReportOf({full})), 0);
}

// What others say they counted, and what follows from shapes, stays as it is.
TEST(ConstantMoves, AreOfMeasuredRunsOnly) {
  const CountedKernel full{"void flip_filter<float, float>(…)", 10, 70};
  EXPECT_EQ(Half(ReportOf({full}, SourceKind::kImported)), 70);
  EXPECT_EQ(Half(ReportOf({full}, SourceKind::kEstimated)), 70);
}

}  // namespace
}  // namespace rfinject::cli
