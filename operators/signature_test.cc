#include "operators/signature.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

using rfinject::testing::OpText;

std::string Format(const std::string& text) {
  std::array<char, kMaxSignature> buffer;
  const OpText op(text);
  return std::string(FormatSignature(op.call(), buffer));
}

uint64_t HashOf(const std::string& text) { return HashSignature(OpText(text).call()); }

TEST(SignatureTest, TypesAndShapes) {
  EXPECT_EQ(Format("aten::convolution ( f32[8,3,224,224] f32[64,3,7,7] _ I2,2 i1 ) -> ( f32[8,64,112,112] )"),
            "f32[8,3,224,224] f32[64,3,7,7]");
  EXPECT_EQ(Format("aten::x ( bf16[2] f16[] i64[3] bool[1] c64[4] f8[5] ) -> ( )"),
            "bf16[2] f16[] i64[3] bool[1] c64[4] ?[5]");
  EXPECT_EQ(Format("aten::x ( i3 ) -> ( f32[2] )"), "");
}

TEST(SignatureTest, AMemoryFormatThatIsNotTheUsualOneIsSaid) {
  EXPECT_EQ(Format("aten::convolution ( f32:nchw[8,3,9,9] f32:nchw[4,3,7,7] ) -> ( )"), "f32[8,3,9,9] f32[4,3,7,7]");
  EXPECT_EQ(Format("aten::convolution ( f32:nchw[8,3,9,9] f32:nhwc[4,3,7,7] ) -> ( )"),
            "f32:nhwc[8,3,9,9] f32[4,3,7,7]");
  EXPECT_EQ(Format("aten::convolution ( f32:nhwc[8,3,9,9] f32:nhwc[4,3,7,7] ) -> ( )"),
            "f32:nhwc[8,3,9,9] f32[4,3,7,7]");
  EXPECT_EQ(Format("aten::native_batch_norm ( f16:nchw[8,3,9,9] f16[3] ) -> ( )"), "f16:nchw[8,3,9,9] f16[3]");
  EXPECT_EQ(Format("aten::convolution_backward ( bf16:nchw[8,3,9,9] bf16:nhwc[8,3,9,9] bf16[3,3,1,1] ) -> ( )"),
            "bf16[8,3,9,9] bf16[8,3,9,9] bf16[3,3,1,1]");
  EXPECT_EQ(Format("aten::relu ( f32:nhwc[8,3,9,9] ) -> ( )"), "f32[8,3,9,9]");
  EXPECT_NE(HashOf("aten::convolution ( f32:nhwc[8,3,9,9] ) -> ( )"),
            HashOf("aten::convolution ( f32:nchw[8,3,9,9] ) -> ( )"));
}

TEST(SignatureTest, ACausalAttentionBearsAMark) {
  const std::string flash =
      "aten::_scaled_dot_product_flash_attention ( f16[8,12,64,64] f16[8,12,64,64] f16[8,12,64,64] d0.0 ";
  EXPECT_TRUE(Format(flash + "b1 b0 ) -> ( )").starts_with("f16:causal[8,12,64,64] f16[8"));
  EXPECT_TRUE(Format(flash + "b0 b1 ) -> ( )").starts_with("f16[8,12,64,64]"));
  EXPECT_NE(HashOf(flash + "b1 b0 ) -> ( )"), HashOf(flash + "b0 b0 ) -> ( )"));
  // compute_log_sumexp stands before it.
  const std::string efficient =
      "aten::_scaled_dot_product_efficient_attention ( f32[2,3,9,8] f32[2,3,9,8] f32[2,3,9,8] _ ";
  EXPECT_TRUE(Format(efficient + "b1 d0.0 b0 ) -> ( )").starts_with("f32[2"));
  EXPECT_TRUE(Format(efficient + "b0 d0.0 b1 ) -> ( )").starts_with("f32:causal[2"));
}

TEST(SignatureTest, ListsAreSummed) {
  EXPECT_EQ(Format("aten::_foreach_add_ ( { f32[10,10] f32[5] } { f32[105] } i1 ) -> ( )"), "2*f32{105} 1*f32{105}");
}

TEST(SignatureTest, LongOnesAreCut) {
  std::string text = "aten::x ( ";
  for (int i = 0; i < 100; ++i) text += "f32[1000000,1000000] ";
  const std::string signature = Format(text + ") -> ( )");
  EXPECT_LE(signature.size(), kMaxSignature);
  EXPECT_GT(signature.size(), kMaxSignature - 30);
  EXPECT_TRUE(signature.ends_with("…"));
}

TEST(SignatureTest, HashesTellSignaturesApart) {
  const uint64_t hash = HashOf("aten::mm ( f32[3,5] f32[5,7] ) -> ( f32[3,7] )");
  EXPECT_EQ(hash, HashOf("aten::mm ( f32[3,5]@1 f32[5,7]@2 ) -> ( f32[3,7] )"));
  EXPECT_NE(hash, HashOf("aten::mv ( f32[3,5] f32[5,7] ) -> ( f32[3,7] )"));
  EXPECT_NE(hash, HashOf("aten::mm ( f16[3,5] f32[5,7] ) -> ( f32[3,7] )"));
  EXPECT_NE(hash, HashOf("aten::mm ( f32[5,3] f32[5,7] ) -> ( f32[3,7] )"));
  EXPECT_NE(hash, HashOf("aten::mm ( f32[3,5] f32[5] f32[7] ) -> ( f32[3,7] )"));
  EXPECT_NE(HashOf("aten::x ( { f32[8] f32[2] } ) -> ( )"), HashOf("aten::x ( { f32[10] } ) -> ( )"));
}

}  // namespace
}  // namespace rfinject::estimate
