#include "collector/estimate/compiled_work.h"

#include <gtest/gtest.h>

#include <vector>

#include "collector/testing/fake_recorder.h"
#include "operators/cost.h"
#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

class CompiledWorkTest : public ::testing::Test {
 protected:
  uint32_t Define(const std::vector<const char*>& nodes, uint64_t bytes, const char* why_no_flop = "") {
    std::vector<rfinject::testing::OpText> texts;
    for (const char* node : nodes) texts.emplace_back(node);
    std::vector<OpCall> calls;
    for (const auto& text : texts) calls.push_back(text.call());
    return kernels_.Define(
        {.kernel = "triton_poi_0", .nodes = calls, .bytes_known = true, .bytes = bytes, .why_no_flop = why_no_flop},
        gpu_, PrecisionPolicy{}, unknown_);
  }

  rfinject::testing::FakeRecorder recorder_;
  const Gpu& gpu_ = *FindGpu("A100-SXM4-40GB");
  UnknownOperators unknown_{recorder_};
  CompiledKernels kernels_{recorder_};
  const uint32_t kernel_ = recorder_.Intern("triton_poi_0");
};

TEST_F(CompiledWorkTest, FlopAreTheSumOfItsOperators) {
  const uint32_t work = Define(
      {"aten::mul ( f32[1000] f32[1000] ) -> ( f32[1000] )", "aten::relu ( f32[1000] ) -> ( f32[1000] )",
       "aten::sum ( f32[1000] ) -> ( f32[1] )", "prims::convert_element_type ( f32[1000] ? ) -> ( f16[1000] )"},
      8'000'000);
  const CompiledCost cost = kernels_.Find(work, kernel_);
  EXPECT_TRUE(cost.flop_known && cost.bytes_known);
  EXPECT_EQ(cost.model_flop, 1000u + 999u);
  EXPECT_EQ(cost.executed_flop[static_cast<size_t>(Precision::kFp32)], 1999u);
  EXPECT_EQ(cost.bytes, 8'000'000u);
  EXPECT_EQ(cost.time_ns, EstimateTimeNs({}, 8'000'000, gpu_));
  unknown_.Report();
  EXPECT_TRUE(recorder_.diagnostics().empty());
}

TEST_F(CompiledWorkTest, OfAnAttentionThoseBlocksAreComputedThatItsMaskLeaves) {
  const rfinject::testing::OpText attention(
      "higher_order::flex_attention ( bf16[4,16,1024,64] bf16[4,16,1024,64] bf16[4,16,1024,64] ? ? d0.125 ) -> ( "
      "bf16[4,16,1024,64] )");
  const rfinject::testing::OpText scale("aten::mul ( bf16[1000] bf16[1000] ) -> ( bf16[1000] )");
  const std::vector<OpCall> nodes = {attention.call(), scale.call()};
  const MaskBlocks mask{.counts = {5, 7}, .rows = 8, .blocks = 64};
  const uint32_t work =
      kernels_.Define({.kernel = "triton_poi_0", .nodes = nodes, .bytes_known = true, .bytes = 4000, .mask = &mask},
                      gpu_, {}, unknown_);
  const CompiledCost all = kernels_.Find(work, kernel_);
  CompiledCost causal = all;
  causal.LeaveBlocks(36, gpu_);
  const auto tensor = static_cast<size_t>(Precision::kBf16Tensor), vector = static_cast<size_t>(Precision::kFp32);
  EXPECT_EQ(all.executed_flop[tensor], 17'179'869'184u);
  EXPECT_EQ(causal.executed_flop[tensor], 9'663'676'416u);
  EXPECT_EQ(all.executed_flop[vector] - causal.executed_flop[vector], uint64_t{4} * 4 * 16 * 1024 * 1024 * 28 / 64);
  EXPECT_EQ(causal.model_flop, all.model_flop);
  EXPECT_EQ(causal.product_flop, 17'179'869'184u);
  EXPECT_EQ(causal.hidden_flop, 17'179'869'184u - 9'663'676'416u);
  EXPECT_LT(causal.time_ns, all.time_ns);
}

TEST_F(CompiledWorkTest, WhatIsNotKnownIsNotInvented) {
  const uint32_t work = Define({"aten::mul ( f32[1000] f32[1000] ) -> ( f32[1000] )"}, 4000, "shapes that change");
  EXPECT_EQ(kernels_.Find(work, kernel_).model_flop, 0u);
  EXPECT_FALSE(kernels_.Find(work, kernel_).flop_known);
  // A line may launch other kernels than the one that stands there, as an autotuner does.
  EXPECT_FALSE(kernels_.Find(work, recorder_.Intern("another")).bytes_known);
  EXPECT_FALSE(kernels_.Find(0, kernel_).bytes_known);
  EXPECT_FALSE(kernels_.Find(work + 1, kernel_).bytes_known);
}

}  // namespace
}  // namespace rfinject::estimate
