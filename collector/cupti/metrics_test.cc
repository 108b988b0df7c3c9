// File: metrics_test.cc
#include "collector/cupti/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rfinject::cupti {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> NamesOf(const std::vector<FlopMetric>& metrics) {
  std::vector<std::string> names;
  for (const FlopMetric& metric : metrics) names.push_back(metric.name);
  return names;
}

TEST(SelectMetrics, TakesTheDenseHalfOfATensorMetric) {
  std::vector<std::string> names = {
      "sm__ops_path_tensor_src_bf16_dst_fp32", "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off",
      "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on", "sm__ops_path_tensor_src_fp64"};
  ChipMetrics metrics = SelectMetrics(names);
  EXPECT_THAT(metrics.tensor, ElementsAre(FlopMetric{"sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum",
                                                     Precision::kBf16Tensor, 1},
                                          FlopMetric{"sm__ops_path_tensor_src_fp64.sum", Precision::kFp64Tensor, 1}));
  EXPECT_THAT(NamesOf(metrics.sparse), ElementsAre("sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on.sum"));
}

// GH100: the sum over the families has no dense half, the families have; and within a family the metric without a
// destination is the sum of those with one. Counting any of them twice would double FLOP.
TEST(SelectMetrics, CountsNothingTwiceWhereFamiliesExist) {
  std::vector<std::string> names = {"sm__ops_path_tensor_src_fp16",
                                    "sm__ops_path_tensor_op_hgmma_src_fp16",
                                    "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off",
                                    "sm__ops_path_tensor_op_hmma_src_fp16",
                                    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16",
                                    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off",
                                    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32",
                                    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off",
                                    "sm__ops_path_tensor_src_fp8",
                                    "sm__ops_path_tensor_src_fp8_sparsity_off"};
  EXPECT_THAT(NamesOf(SelectMetrics(names).tensor),
              UnorderedElementsAre("sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum",
                                   "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum",
                                   "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
                                   "sm__ops_path_tensor_src_fp8_sparsity_off.sum"));
}

// CUPTI 12.8's GB100 has no dense halves at all.
TEST(SelectMetrics, TakesTheTotalWhereThereIsNoDenseHalf) {
  std::vector<std::string> names = {"sm__ops_path_tensor_src_bf16_dst_fp32",
                                    "sm__ops_path_tensor_src_bf16_dst_fp32_realtime"};
  ChipMetrics metrics = SelectMetrics(names);
  EXPECT_THAT(NamesOf(metrics.tensor), ElementsAre("sm__ops_path_tensor_src_bf16_dst_fp32.sum"));
  EXPECT_THAT(metrics.sparse, IsEmpty());
}

// CUPTI before 12.2 update 2 counts instructions only, and those mean FLOP on GV100 alone.
TEST(SelectMetrics, InstructionsStandForTensorFlopOnlyOnGv100) {
  std::vector<std::string> names = {"sm__inst_executed_pipe_tensor", "sm__inst_executed_pipe_tensor_op_hmma"};
  EXPECT_THAT(SelectMetrics(names, "GV100").tensor,
              ElementsAre(FlopMetric{"sm__inst_executed_pipe_tensor.sum", Precision::kFp16Tensor, 512}));
  EXPECT_THAT(SelectMetrics(names, "GA100").tensor, IsEmpty());
  names.push_back("sm__ops_path_tensor_src_fp16_dst_fp32");
  EXPECT_THAT(NamesOf(SelectMetrics(names, "GV100").tensor),
              ElementsAre("sm__ops_path_tensor_src_fp16_dst_fp32.sum"));
}

TEST(SelectMetrics, PathsWithoutAPrecisionAreNamedNotCounted) {
  std::vector<std::string> names = {"sm__ops_path_tensor_src_int8", "sm__ops_path_tensor_src_fp4_dst_fp32"};
  ChipMetrics metrics = SelectMetrics(names);
  EXPECT_THAT(metrics.tensor, IsEmpty());
  EXPECT_THAT(metrics.uncounted,
              UnorderedElementsAre("sm__ops_path_tensor_src_int8", "sm__ops_path_tensor_src_fp4_dst_fp32"));
}

TEST(SelectMetrics, ScalarHalfCountsTwoLanes) {
  std::vector<std::string> names = {
      "smsp__sass_thread_inst_executed_op_hfma_pred_on", "smsp__sass_thread_inst_executed_op_ffma_pred_on",
      "smsp__sass_thread_inst_executed_op_dadd_pred_on", "smsp__sass_thread_inst_executed_op_ffma2_pred_on"};
  EXPECT_THAT(
      SelectMetrics(names).scalar,
      UnorderedElementsAre(FlopMetric{"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", Precision::kFp16, 4},
                           FlopMetric{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", Precision::kFp32, 2},
                           FlopMetric{"smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum", Precision::kFp32, 4},
                           FlopMetric{"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", Precision::kFp64, 1}));
}

TEST(SelectMetrics, BaseHasEachQuantityOnce) {
  std::vector<std::string> names = {"dram__bytes_op_read", "dram__bytes_op_write", "dram__bytes_read",
                                    "gpu__time_duration"};
  EXPECT_THAT(SelectMetrics(names).base,
              ElementsAre("dram__bytes_read.sum", "dram__bytes_op_write.sum", "gpu__time_duration.sum"));
}

TEST(IsSassMetric, ByName) {
  EXPECT_TRUE(IsSassMetric("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"));
  EXPECT_FALSE(IsSassMetric("dram__bytes_read.sum"));
}

}  // namespace
}  // namespace rfinject::cupti
