#include "operators/attention.h"

#include <gtest/gtest.h>

#include <string>

#include "operators/op_table.h"
#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

using rfinject::testing::OpText;

FlopCount CountOf(const std::string& text) {
  const OpText op(text);
  const auto rule = FindOp(op.name());
  return rule ? CountFlop(*rule, op.call()) : FlopCount{};
}

bool IsCausal(const std::string& text) {
  const OpText op(text);
  return IsCausalAttention(op.call());
}

std::string Sdpa(const std::string& name, const std::string& q, const std::string& k, const std::string& flags) {
  return "aten::_scaled_dot_product_" + name + " ( " + q + " " + k + " " + k + " " + flags + " ) -> ( " + q + " )";
}

// 16 heads, 16384 tokens of 128: query i sees i keys, 16384 * 16385 / 2 = 134,225,920 of 268,435,456 pairs.
TEST(AttentionTest, CausalMasksLeaveTheTriangle) {
  const std::string q = "bf16[1,16,16384,128]";
  const FlopCount full = CountOf(Sdpa("flash_attention", q, q, "d0 b0 b0 _"));
  EXPECT_EQ(full.matrix, 2'199'023'255'552u);
  EXPECT_EQ(full.vector, uint64_t{64} * 268'435'456);
  EXPECT_EQ(full.model, full.matrix + full.vector);
  const FlopCount causal = CountOf(Sdpa("flash_attention", q, q, "d0 b1 b0 _"));
  EXPECT_EQ(causal.matrix, 1'099'578'736'640u);
  EXPECT_EQ(causal.vector, uint64_t{64} * 134'225'920);
  EXPECT_EQ(causal.model, full.model) << "the convention counts all scores";
  EXPECT_EQ(full.products, full.matrix);
  EXPECT_EQ(full.hidden, 0u);
  EXPECT_EQ(causal.products, full.matrix);
  EXPECT_EQ(causal.hidden, full.matrix - causal.matrix);
  // Where is_causal stands: behind compute_log_sumexp in efficient attention and in cuDNN's.
  for (const char* name : {"efficient_attention", "cudnn_attention"}) {
    EXPECT_EQ(CountOf(Sdpa(name, q, q, "_ b1 d0 b0 _")).matrix, full.matrix) << name;
    EXPECT_EQ(CountOf(Sdpa(name, q, q, "_ b0 d0 b1 _")).matrix, causal.matrix) << name;
  }
}

TEST(AttentionTest, BackwardOfACausalMask) {
  const std::string q = "bf16[2,3,4,8] ";
  const std::string call =
      "aten::_scaled_dot_product_flash_attention_backward ( " + q + q + q + q + q + "f32[2,3,4] _ _ i4 i4 d0 ";
  const std::string results = " i64[] i64[] _ ) -> ( " + q + q + q + ")";
  // 2*3 heads, 10 of 16 pairs, 8 elements: five products of 2 * 8 for each pair; 5 more on CUDA cores.
  const FlopCount causal = CountOf(call + "b1" + results);
  EXPECT_EQ(causal.matrix, 6u * 10 * 5 * 2 * 8);
  EXPECT_EQ(causal.vector, 6u * 10 * 5);
  EXPECT_EQ(causal.model, 6u * 16 * (4 * 2 * 8 + 5));
  EXPECT_EQ(CountOf(call + "b0" + results).matrix, 6u * 16 * 5 * 2 * 8);
}

// PyTorch's is_causal counts from the first query and key, FlashAttention's own operator from the last.
TEST(AttentionTest, CausalWithMoreKeysThanQueries) {
  // Of 2 queries and 5 keys: 1 + 2 pairs, or 4 + 5.
  EXPECT_EQ(CountOf(Sdpa("efficient_attention", "f16[1,1,2,8]", "f16[1,1,5,8]", "_ b0 d0 b1 _")).matrix, 3u * 4 * 8);
  EXPECT_EQ(CountOf("aten::_flash_attention_forward ( f16[1,2,1,8] f16[1,5,1,8] f16[1,5,1,8] _ _ i2 i5 d0 b1 b0 _ _ "
                    "_ _ _ ) -> ( f16[1,2,1,8] )")
                .matrix,
            9u * 4 * 8);
  // Of 5 queries and 2 keys: 1 + 2 + 2 + 2 + 2, or 1 + 2.
  EXPECT_EQ(CountOf(Sdpa("efficient_attention", "f16[1,1,5,8]", "f16[1,1,2,8]", "_ b0 d0 b1 _")).matrix, 9u * 4 * 8);
  EXPECT_EQ(CountOf("aten::_flash_attention_forward ( f16[1,5,1,8] f16[1,2,1,8] f16[1,2,1,8] _ _ i5 i2 d0 b1 b0 _ _ "
                    "_ _ _ ) -> ( f16[1,5,1,8] )")
                .matrix,
            3u * 4 * 8);
}

// Sequences of 128, 512 and 1024 tokens, 8 heads of 64: 4 * 8 * 64 * (128² + 512² + 1024²).
TEST(AttentionTest, SequencesOfSeveralLengths) {
  constexpr uint64_t kProducts = 2'717'908'992;
  const std::string q = "bf16[1664,8,64] ", one = "bf16[1,1664,8,64] ";
  const std::string ends = "i32[4]=0,128,640,1664 ";
  const FlopCount flash = CountOf("aten::_flash_attention_forward ( " + q + q + q + ends + ends +
                                  "i1024 i1024 d0 b0 b0 d0.125 _ _ _ _ _ _ ) -> ( " + q + ")");
  EXPECT_EQ(flash.matrix, kProducts);
  EXPECT_EQ(flash.vector, kProducts / 64);
  const FlopCount backward =
      CountOf("aten::_flash_attention_backward ( " + q + q + q + q + q + "f32[8,1664] " + ends + ends +
              "i1024 i1024 d0 b0 i64[2] i64[] d0.125 _ _ ) -> ( " + q + q + q + ")");
  EXPECT_EQ(backward.model - backward.vector, 2 * kProducts);
  EXPECT_EQ(backward.matrix, kProducts / 2 * 5);
  const FlopCount efficient = CountOf("aten::_efficient_attention_forward ( " + one + one + one + "_ " + ends + ends +
                                      "i1024 i1024 d0 i0 b1 _ _ _ ) -> ( " + one + ")");
  EXPECT_EQ(efficient.matrix, kProducts);
  const FlopCount causal = CountOf("aten::_efficient_attention_forward ( " + one + one + one + "_ " + ends + ends +
                                   "i1024 i1024 d0 i1 b1 _ _ _ ) -> ( " + one + ")");
  EXPECT_EQ(causal.matrix, 4u * 8 * 64 * (128 * 129 + 512 * 513 + 1024 * 1025) / 2);
  EXPECT_EQ(causal.model, efficient.model);
  const FlopCount efficient_backward =
      CountOf("aten::_efficient_attention_backward ( " + one + one + one + one + "_ " + one + ends + ends +
              "i1024 i1024 f32[3,8,1024] d0 i64[] i64[] i0 b0 _ _ _ b0 ) -> ( " + one + one + one + "_ )");
  EXPECT_EQ(efficient_backward.matrix, kProducts / 2 * 5);
}

TEST(AttentionTest, LengthsThatAreNotKnownAreAlike) {
  const std::string q = "bf16[10,1,8] ", rest = "i4 i4 d0 b0 b0 _ _ _ _ _ _ ) -> ( bf16[10,1,8] )";
  // 10 tokens in 3 sequences: 4, 3 and 3.
  EXPECT_EQ(CountOf("aten::_flash_attention_forward ( " + q + q + q + "i32[4] i32[4] " + rest).matrix,
            4u * 8 * (16 + 9 + 9));
  // 10 queries and 11 keys: 4 by 4, 3 by 4, 3 by 3.
  EXPECT_EQ(
      CountOf("aten::_flash_attention_forward ( " + q + "bf16[11,1,8] bf16[11,1,8] i32[4] i32[4] " + rest).matrix,
      4u * 8 * (16 + 12 + 9));
  // Numbers that are no ends of sequences make none longer than all tokens.
  EXPECT_LE(
      CountOf("aten::_flash_attention_forward ( " + q + q + q + "i32[2]=0,99999999 i32[2]=0,99999999 " + rest).matrix,
      4u * 8 * 100);
}

// torch pads heads of 4 and 100 to 8 and 104, and says the scale of what was asked.
TEST(AttentionTest, PaddedHeadsCountAsTheyWereAsked) {
  const std::string small = "bf16[2,5,9,8]", large = "bf16[1,8,1024,104]";
  EXPECT_EQ(CountOf(Sdpa("flash_attention", small, small, "d0 b0 b0 d0.5")).matrix, 12'960u);
  EXPECT_EQ(CountOf(Sdpa("flash_attention", small, small, "d0 b0 b0 d0.5")).vector, 3'240u);
  EXPECT_EQ(CountOf(Sdpa("flash_attention", large, large, "d0 b0 b0 d0.1")).matrix, 3'355'443'200u);
  // No scale, the scale of the head as it is, one of the program's own, and a dropout that looks like one.
  for (const char* flags : {"d0 b0 b0 _", "d0 b0 b0 d0.09805806756909202", "d0 b0 b0 d0.3", "d0.1 b0 b0 _"}) {
    EXPECT_EQ(CountOf(Sdpa("flash_attention", large, large, flags)).matrix, 4u * 8 * 1024 * 1024 * 104) << flags;
  }
  EXPECT_EQ(CountOf(Sdpa("efficient_attention", large, large, "_ b0 d0.1 b0 _")).matrix, 4u * 8 * 1024 * 1024 * 104);
}

// Of compiled code, whose block mask is an argument that is no tensor.
TEST(AttentionTest, FlexAttentionCountsAllScores) {
  const std::string q = "bf16[4,16,1024,64] ";
  EXPECT_EQ(CountOf("higher_order::flex_attention ( " + q + q + q + "? ? d0.125 ? I I ) -> ( )").matrix,
            17'179'869'184u);
  EXPECT_EQ(CountOf("higher_order::flex_attention_backward ( " + q + q + q + q + "f32[4,16,1024] " + q +
                    "f32[4,16,1024] ? ? ? d0.125 ? I I ) -> ( )")
                .matrix,
            17'179'869'184u / 2 * 5);
}

TEST(AttentionTest, TellsWhichAreCausal) {
  EXPECT_TRUE(
      IsCausal("aten::scaled_dot_product_attention ( f16[1,1,2,8] f16[1,1,2,8] f16[1,1,2,8] _ d0 b1 ) -> ( )"));
  EXPECT_TRUE(
      IsCausal("aten::_flash_attention_forward ( f16[2,1,8] f16[2,1,8] f16[2,1,8] _ _ i2 i2 d0 b1 b0 ) -> ( )"));
  EXPECT_FALSE(
      IsCausal("aten::_efficient_attention_forward ( f16[1,2,1,8] f16[1,2,1,8] f16[1,2,1,8] _ _ _ i2 i2 d0 "
               "i0 b1 ) -> ( )"));
  EXPECT_FALSE(IsCausal("aten::convolution ( f16[1,2,1,8] b1 ) -> ( )"));
  EXPECT_FALSE(IsCausal("aten::_efficient_attention_forward ( ) -> ( )"));
}

}  // namespace
}  // namespace rfinject::estimate
