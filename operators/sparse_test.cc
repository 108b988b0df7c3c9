#include <gtest/gtest.h>

#include <string_view>

#include "gpus/gpus.h"
#include "operators/cost.h"
#include "operators/signature.h"
#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

using ::rfinject::testing::OpText;

Cost Of(std::string_view text) {
  const OpText op(text);
  return EstimateCost(op.call(), *FindGpu("A100-SXM4-40GB"), PrecisionPolicy{});
}

// 6 numbers in a matrix of 4 x 5.
TEST(Sparse, ProductsCountTheNumbersThatAreThere) {
  EXPECT_EQ(Of("aten::mm ( f32[4,5]*6 f32[5,3] ) -> ( f32[4,3] )").model_flop, 2 * 6 * 3u);
  EXPECT_EQ(Of("aten::mm ( f32[7,4] f32[4,5]*6 ) -> ( f32[7,5] )").model_flop, 2 * 6 * 7u);
  EXPECT_EQ(Of("aten::addmm ( f32[4,3] f32[4,5]*6 f32[5,3] i1 i1 ) -> ( f32[4,3] )").model_flop, 2 * 6 * 3u);
  EXPECT_EQ(Of("aten::mv ( f32[4,5]*6 f32[5] ) -> ( f32[4] )").model_flop, 2 * 6u);
  EXPECT_EQ(Of("aten::addmv ( f32[4] f32[4,5]*6 f32[5] i1 i1 ) -> ( f32[4] )").model_flop, 2 * 6u);
  EXPECT_EQ(Of("aten::_sparse_sparse_matmul ( f32[4,5]*6 f32[5,3]*10 ) -> ( f32[4,3]*9 )").model_flop, 2 * 12u);
  EXPECT_EQ(Of("aten::sparse_sampled_addmm ( f32[4,5]*6 f32[4,8] f32[8,5] i0 i1 ) -> ( f32[4,5]*6 )").model_flop,
            2 * 6 * 8u);
  EXPECT_EQ(Of("aten::mul ( f32[4,5]*6 f32[] ) -> ( f32[4,5]*6 )").model_flop, 6u);
}

TEST(Sparse, ProductsRunOnTheCudaCores) {
  const auto fp32 = static_cast<size_t>(Precision::kFp32);
  EXPECT_EQ(Of("aten::mm ( f16[4,5]*6 f16[5,3] ) -> ( f16[4,3] )").executed_flop[fp32], 2 * 6 * 3u);
  EXPECT_EQ(Of("aten::mm ( f16[4,5] f16[5,3] ) -> ( f16[4,3] )").executed_flop[fp32], 0u);
}

TEST(Sparse, BytesAreThoseOfNumbersAndIndices) {
  const Cost cost = Of("aten::mm ( f32[4,5]*6 f32[5,3] ) -> ( f32[4,3] )");
  EXPECT_EQ(cost.dram_bytes, 6 * (4 + 2 * 8) + 5 * 3 * 4 + 4 * 3 * 4u);
}

TEST(Sparse, SignaturesSayHowManyNumbersThereAre) {
  char buffer[kMaxSignature];
  const OpText few("aten::mm ( f32[4,5]*6 f32[5,3] ) -> ( f32[4,3] )");
  const OpText more("aten::mm ( f32[4,5]*7 f32[5,3] ) -> ( f32[4,3] )");
  EXPECT_EQ(FormatSignature(few.call(), buffer), "f32[4,5]{6} f32[5,3]");
  EXPECT_NE(HashSignature(few.call()), HashSignature(more.call()));
}

}  // namespace
}  // namespace rfinject::estimate
