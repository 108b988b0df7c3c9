#include "operators/bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "operators/op_table.h"
#include "operators/testing/op_text.h"

namespace rfinject::estimate {

bool operator==(const Traffic& a, const Traffic& b) { return a.read == b.read && a.write == b.write; }
std::ostream& operator<<(std::ostream& out, const Traffic& traffic) {
  return out << "{read " << traffic.read << ", write " << traffic.write << "}";
}

namespace {

using rfinject::testing::OpText;

// In units of one f32, so that the expectations are elements.
Traffic Floats(const std::string& text) {
  const OpText op(text);
  const auto rule = FindOp(op.name());
  const Traffic traffic = CountBytes(rule.value_or(OpRule{}), op.call());
  EXPECT_EQ(traffic.read % 4, 0u);
  EXPECT_EQ(traffic.write % 4, 0u);
  return {traffic.read / 4, traffic.write / 4};
}

Traffic InBytes(const std::string& text) {
  const OpText op(text);
  return CountBytes(FindOp(op.name()).value_or(OpRule{}), op.call());
}

TEST(BytesTest, OperandsOnceAndResultsOnce) {
  EXPECT_EQ(Floats("aten::add ( f32[10] f32[10] i1 ) -> ( f32[10] )"), (Traffic{20, 10}));
  EXPECT_EQ(InBytes("aten::mm ( f16[3,5] f16[5,7] ) -> ( f16[3,7] )"), (Traffic{2 * 50, 2 * 21}));
  EXPECT_EQ(InBytes("aten::max_pool2d_with_indices ( f32[1,1,4,4] I2 I2 I0 I1 b0 ) -> ( f32[1,1,2,2] i64[1,1,2,2] )"),
            (Traffic{64, 16 + 32}));
  EXPECT_EQ(Floats("aten::cat ( { f32[10] f32[20] } i0 ) -> ( f32[30] )"), (Traffic{30, 30}));
  // An operator without a row in the table: the same.
  EXPECT_EQ(Floats("mine::op ( f32[10] _ i3 f32[5] ) -> ( f32[7] _ )"), (Traffic{15, 7}));
}

TEST(BytesTest, BroadcastOperandsCountWhatLiesInMemory) {
  EXPECT_EQ(Floats("aten::add ( f32[8,10] f32[10] i1 ) -> ( f32[8,10] )"), (Traffic{90, 80}));
  EXPECT_EQ(Floats("aten::add ( f32[8,10] f32[8,10]/10 i1 ) -> ( f32[8,10] )"), (Traffic{90, 80}));
  EXPECT_EQ(Floats("aten::mul ( f32[8,10] f32[8,10]/1 ) -> ( f32[8,10] )"), (Traffic{81, 80}));
}

// `num_batches_tracked.add_(1)`: the 1 is no memory of the GPU's.
TEST(BytesTest, ANumberIsNotRead) {
  EXPECT_EQ(InBytes("aten::add_ ( i64[]@1 i64[] i1 ) -> ( i64[]@1 )"), (Traffic{8, 8}));
  EXPECT_EQ(InBytes("aten::mul ( f32[10] f64[] ) -> ( f32[10] )"), (Traffic{40, 40}));
  // A tensor that the program computed: a loss scale, an average.
  EXPECT_EQ(InBytes("aten::mul ( f32[10] f32[] ) -> ( f32[10] )"), (Traffic{44, 40}));
  EXPECT_EQ(InBytes("aten::add_ ( i64[]@1 i64[4] i1 ) -> ( i64[]@1 )"), (Traffic{40, 8}));
}

TEST(BytesTest, InPlaceReadsOnceAndWritesOnce) {
  EXPECT_EQ(Floats("aten::add_ ( f32[10]@1 f32[10] i1 ) -> ( f32[10]@1 )"), (Traffic{20, 10}));
  EXPECT_EQ(Floats("aten::relu_ ( f32[10]@1 ) -> ( f32[10]@1 )"), (Traffic{10, 10}));
  EXPECT_EQ(Floats("aten::_foreach_add_ ( { f32[10] f32[20] } { f32[10] f32[20] } i1 ) -> ( )"), (Traffic{60, 30}));
}

TEST(BytesTest, OutArgumentsAreWrittenOnly) {
  EXPECT_EQ(Floats("aten::add ( f32[10]@1 f32[10]@2 i1 f32[10]@3 ) -> ( f32[10]@3 )"), (Traffic{20, 10}));
  EXPECT_EQ(Floats("aten::mm ( f32[3,5]@1 f32[5,7]@2 f32[3,7]@3 ) -> ( f32[3,7]@3 )"), (Traffic{50, 21}));
  EXPECT_EQ(Floats("aten::add ( f32[10]@1+? f32[10]@2+? i1 f32[10]@3+? ) -> ( f32[10]@3+? )"), (Traffic{20, 10}));
  // … unless they are an operand as well.
  EXPECT_EQ(Floats("aten::add ( f32[10]@1 f32[10]@2 i1 f32[10]@1 ) -> ( f32[10]@1 )"), (Traffic{20, 10}));
  EXPECT_EQ(Floats("aten::var_mean ( f32[8,10]@1 f32[8]@2 f32[8]@3 ) -> ( f32[8]@2 f32[8]@3 )"), (Traffic{80, 16}));
}

TEST(BytesTest, TheSameTensorIsReadOnce) {
  EXPECT_EQ(Floats("aten::mul ( f32[10]@1 f32[10]@1 ) -> ( f32[10] )"), (Traffic{10, 10}));
  // Query and key are different parts of one projection.
  EXPECT_EQ(Floats("aten::mul ( f32[10]@1 f32[10]@1+10 ) -> ( f32[10] )"), (Traffic{20, 10}));
  EXPECT_EQ(Floats("aten::mul ( f32[10]@1+? f32[10]@1+? ) -> ( f32[10] )"), (Traffic{20, 10}));
  // Unknown storages are never equal.
  EXPECT_EQ(Floats("aten::mul ( f32[10]@0 f32[10]@0 ) -> ( f32[10] )"), (Traffic{20, 10}));
}

TEST(BytesTest, FillingReadsNothing) {
  EXPECT_EQ(Floats("aten::zero_ ( f32[10]@1 ) -> ( f32[10]@1 )"), (Traffic{0, 10}));
  EXPECT_EQ(Floats("aten::fill_ ( f32[10]@1 d1 ) -> ( f32[10]@1 )"), (Traffic{0, 10}));
  EXPECT_EQ(Floats("aten::normal_ ( f32[10]@1 d0 d1 _ ) -> ( f32[10]@1 )"), (Traffic{0, 10}));
  EXPECT_EQ(Floats("aten::_foreach_zero_ ( { f32[10] f32[20] } ) -> ( )"), (Traffic{0, 30}));
}

TEST(BytesTest, FourierTransformsReadAndWriteTheirOperands) {
  EXPECT_EQ(InBytes("aten::_fft_r2c ( f32[1,768,16,16] I2,3 i0 b1 ) -> ( c64[1,768,16,9] )"),
            (Traffic{786'432, 884'736}));
}

TEST(BytesTest, CopiesReadTheSourceAndWriteTheDestination) {
  EXPECT_EQ(InBytes("aten::copy_ ( f16[10]@1 f32[10]@2 b0 ) -> ( f16[10]@1 )"), (Traffic{40, 20}));
  EXPECT_EQ(Floats("aten::copy_ ( f32[10]@1 f32[10]@2/1 b0 ) -> ( f32[10]@1 )"), (Traffic{1, 10}));
  EXPECT_EQ(Floats("aten::_foreach_copy_ ( { f32[10] f32[20] } { f32[10] f32[20] } b0 ) -> ( )"), (Traffic{30, 30}));
}

TEST(BytesTest, LookupsReadTheRowsThatTheyPick) {
  EXPECT_EQ(InBytes("aten::index_select ( f32[50000,8] i0 i64[3] ) -> ( f32[3,8] )"), (Traffic{3 * 32 + 24, 96}));
  EXPECT_EQ(InBytes("aten::embedding ( f32[50000,8] i64[3] i-1 b0 b0 ) -> ( f32[3,8] )"), (Traffic{96 + 24, 96}));
  EXPECT_EQ(InBytes("aten::nll_loss_forward ( f32[8,1000] i64[8] _ i1 i-100 ) -> ( f32[] f32[] )"),
            (Traffic{8 * 4 + 64, 8}));
}

TEST(BytesTest, EmbeddingBagsReadEachRowThatTheyLookUp) {
  EXPECT_EQ(InBytes("aten::_embedding_bag ( f32[1000000,128] i64[163840] i64[2048] b0 i0 b0 _ b0 i-1 ) -> ( "
                    "f32[2048,128] i64[163840] i64[2048] i64[0] )"),
            (Traffic{163840u * 128 * 4 + 163840 * 8 + 2048 * 8, 2048 * 128 * 4}));
  // A small table is read once.
  EXPECT_EQ(InBytes("aten::_embedding_bag ( f32[10,2] i64[100] i64[5] b0 i0 b0 _ b0 i-1 ) -> ( f32[5,2] )"),
            (Traffic{80 + 800 + 40, 40}));
  EXPECT_EQ(
      InBytes("aten::_embedding_bag_per_sample_weights_backward ( f32[5,2] f32[1000,2] i64[100] i64[5] i64[100] "
              "i0 i-1 ) -> ( f32[100] )"),
      (Traffic{40 + 100 * 2 * 4 + 800 + 40 + 800, 400}));
}

TEST(BytesTest, ScatteringTouchesWhatItAddresses) {
  EXPECT_EQ(InBytes("aten::_index_put_impl_ ( f32[100]@1 { i64[4] } f32[4] b0 b0 ) -> ( f32[100]@1 )"),
            (Traffic{32 + 16, 16}));
  EXPECT_EQ(InBytes("aten::_index_put_impl_ ( f32[100]@1 { i64[4] } f32[4] b1 b0 ) -> ( f32[100]@1 )"),
            (Traffic{32 + 16 + 16, 16}));
  // A value that is true is no flag, and here is written over what was there.
  EXPECT_EQ(InBytes("aten::index_fill_ ( bool[100]@1 i0 i64[4] b1 ) -> ( bool[100]@1 )"), (Traffic{32, 4}));
  EXPECT_EQ(InBytes("aten::put_ ( f32[100]@1 i64[4] f32[4] b0 ) -> ( f32[100]@1 )"), (Traffic{32 + 16, 16}));
  EXPECT_EQ(InBytes("aten::put_ ( f32[100]@1 i64[4] f32[4] b1 ) -> ( f32[100]@1 )"), (Traffic{32 + 16 + 16, 16}));
  EXPECT_EQ(InBytes("aten::scatter_add_ ( f32[100]@1 i0 i64[4] f32[4] ) -> ( f32[100]@1 )"),
            (Traffic{32 + 16 + 16, 16}));
}

TEST(BytesTest, ConvolutionBackwardReadsWhatItsGradientsNeed) {
  const std::string operands =
      "aten::convolution_backward ( f32[2,8,4,4] f32[2,3,5,5] f32[8,3,2,2] I8 I1,1 I0,0 I1,1 b0 I0,0 i1 I1,1,1 ) -> ";
  const uint64_t grad = 256, input = 150, weight = 96;
  EXPECT_EQ(Floats(operands + "( f32[2,3,5,5] f32[8,3,2,2] f32[8] )"),
            (Traffic{grad + input + weight, input + weight + 8}));
  EXPECT_EQ(Floats(operands + "( _ f32[8,3,2,2] _ )"), (Traffic{grad + input, weight}));
  EXPECT_EQ(Floats(operands + "( f32[2,3,5,5] _ _ )"), (Traffic{grad + weight, input}));
  EXPECT_EQ(Floats(operands + "( _ _ f32[8] )"), (Traffic{grad, 8}));
}

TEST(BytesTest, BatchNormUpdatesItsStatistics) {
  const std::string operands = "aten::native_batch_norm ( f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] ";
  EXPECT_EQ(Floats(operands + "b1 d0.1 d1e-5 ) -> ( f32[2,3,4,4] f32[3] f32[3] )"), (Traffic{96 + 12, 96 + 6 + 6}));
  EXPECT_EQ(Floats(operands + "b0 d0.1 d1e-5 ) -> ( f32[2,3,4,4] f32[0] f32[0] )"), (Traffic{96 + 12, 96}));
}

TEST(BytesTest, OperandsThatGiveOnlyTheirShapeAreNotRead) {
  EXPECT_EQ(Floats("aten::avg_pool2d_backward ( f32[1,1,2,2] f32[1,1,4,4] I2 I2 I0 b0 b1 _ ) -> ( f32[1,1,4,4] )"),
            (Traffic{4, 16}));
}

TEST(BytesTest, FusedOptimizersWriteAllButTheGradients) {
  EXPECT_EQ(Floats("aten::_fused_sgd_ ( { f32[10] f32[20] } { f32[10] f32[20] } { f32[10] f32[20] } ) -> ( )"),
            (Traffic{90, 60}));
  // SGD with momentum and weight decay: 5 values of 4 bytes a parameter, as by hand.
  EXPECT_EQ(Floats("aten::_fused_sgd_ ( { f32[100] } { f32[100] } { f32[100] } ) -> ( )"), (Traffic{300, 200}));
}

TEST(BytesTest, ViewsAndQueries) {
  const auto view = [](const std::string& text) { return IsViewOrQuery(OpText(text).call()); };
  EXPECT_TRUE(view("mine::view ( f32[10]@1 I2,5 ) -> ( f32[2,5]@1 )"));
  EXPECT_TRUE(view("mine::halves ( f32[10]@1 ) -> ( { f32[5]@1 f32[5]@1+5 } )"));
  EXPECT_TRUE(view("mine::is_good ( f32[10]@1 ) -> ( b1 )"));
  EXPECT_TRUE(view("mine::nothing ( ) -> ( )"));
  EXPECT_FALSE(view("mine::work ( f32[10]@1 ) -> ( f32[10]@2 )"));
  EXPECT_FALSE(view("mine::work_ ( f32[10]@1 ) -> ( f32[10]@1 )"));
  EXPECT_FALSE(view("mine::work ( f32[10]@1 f32[10]@2 ) -> ( f32[10]@2 )")) << "an out argument";
  EXPECT_FALSE(view("mine::both ( f32[10]@1 ) -> ( f32[10]@1 f32[10]@2 )"));
  EXPECT_FALSE(view("mine::make ( I10 ) -> ( f32[10]@1 )"));
  EXPECT_FALSE(view("mine::unknown ( f32[10]@0 ) -> ( f32[10]@0 )"));
}

}  // namespace
}  // namespace rfinject::estimate
