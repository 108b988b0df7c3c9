#include "collector/cupti/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "collector/cupti/metric_host.h"
#include "collector/cupti/real_cupti.h"
#include "gpus/chips.h"

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

TEST(SelectMetrics, PathsWithoutAPrecisionAreNotCounted) {
  std::vector<std::string> names = {"sm__ops_path_tensor_src_int8", "sm__ops_path_tensor_src_fp4_dst_fp32"};
  ChipMetrics metrics = SelectMetrics(names);
  EXPECT_THAT(metrics.tensor, IsEmpty());
  EXPECT_THAT(metrics.sparse, IsEmpty());
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

// A CUPTI that spells a tensor counter in another way than the chip's formula: the parts of the names decide for all.
TEST(SelectMetrics, TheFormulaOnlyWhereThisCuptiHasIt) {
  std::vector<std::string> names;
  for (const FlopTerm& term : FlopFormula("GA100")) names.emplace_back(BaseName(term.metric));
  EXPECT_EQ(SelectMetrics(names, "GA100").tensor.size(), 5u);
  EXPECT_EQ(SelectMetrics(names, "GA100").sparse.size(), 4u);
  std::erase(names, "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off");
  names.emplace_back("sm__ops_path_tensor_src_tf32_dst_fp32");
  EXPECT_THAT(NamesOf(SelectMetrics(names, "GA100").tensor), Contains("sm__ops_path_tensor_src_tf32_dst_fp32.sum"));
  EXPECT_EQ(SelectMetrics(names, "GA100").tensor.size(), 5u);
}

// What gpus/chips.csv claims of a chip, asked of CUPTI's host library, which needs no GPU.
class RealChip : public ::testing::TestWithParam<Chip> {};

TEST_P(RealChip, HasEveryCounterThatTheTableClaims) {
  if (RealCupti() == nullptr) GTEST_SKIP() << "note: no libcupti.so.13 on this machine";
  const Chip& chip = GetParam();
  int result = 0;
  const std::unique_ptr<MetricHost> host =
      MakeProfilerHost(*RealCupti(), std::string(chip.name), HostKind::kRangeProfiler, {}, &result);
  if (host == nullptr && result == CUPTI_ERROR_INVALID_CHIP_NAME)
    GTEST_SKIP() << "note: this CUPTI does not know the chip";
  ASSERT_NE(host, nullptr) << result;
  const std::vector<std::string> names = host->BaseMetrics();
  const std::set<std::string_view> known(names.begin(), names.end());
  for (const FlopTerm& term : chip.flop) {
    EXPECT_TRUE(known.contains(BaseName(term.metric))) << term.metric;
    EXPECT_EQ(host->Passes(std::vector{std::string(term.metric)}), 1u) << term.metric;
  }
  std::set<BaseQuantity> quantities;
  for (const BaseMetric& metric : kBaseMetrics) {
    if (known.contains(BaseName(metric.name))) quantities.insert(metric.quantity);
  }
  EXPECT_EQ(quantities.size(), 6u);
  for (const std::string_view clock : kClockMetrics) EXPECT_TRUE(known.contains(BaseName(clock))) << clock;
  EXPECT_TRUE(known.contains(BaseName(kDramTotalMetric)));

  // The table is complete: choosing by the names alone finds no counter of FLOP that the formula lacks.
  const ChipMetrics by_formula = SelectMetrics(names, chip.name), by_name = SelectMetrics(names);
  EXPECT_EQ(by_formula.tensor, by_name.tensor);
  EXPECT_EQ(by_formula.sparse, by_name.sparse);
  EXPECT_EQ(by_formula.scalar.size() + by_formula.tensor.size() + by_formula.sparse.size(), chip.flop.size());
}

std::vector<Chip> ChipsWithCounters() {
  std::vector<Chip> chips(AllChips().begin(), AllChips().end());
  std::erase_if(chips, [](const Chip& chip) { return chip.flop.empty(); });
  return chips;
}
INSTANTIATE_TEST_SUITE_P(Chips, RealChip, ::testing::ValuesIn(ChipsWithCounters()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(IsSassMetric, ByName) {
  EXPECT_TRUE(IsSassMetric("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"));
  EXPECT_FALSE(IsSassMetric("dram__bytes_read.sum"));
}

}  // namespace
}  // namespace rfinject::cupti
