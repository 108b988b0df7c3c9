#include "operators/flop.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators/op_table.h"
#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

using rfinject::testing::OpText;

FlopCount Count(const std::string& text) {
  const OpText op(text);
  const auto rule = FindOp(op.name());
  return rule ? CountFlop(*rule, op.call()) : FlopCount{};
}

uint64_t Model(const std::string& text) { return Count(text).model; }

std::string Tensor(const std::vector<uint64_t>& shape) {
  std::string text = "f32[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

// A convolution or linear layer of a network, by what torchvision's source says.
struct Layer {
  uint64_t in, out, kernel, stride, side;  // side: of the square input; 0: a linear layer
  uint64_t groups = 1;
};

uint64_t OutSide(const Layer& layer) { return (layer.side + layer.stride - 1) / layer.stride; }

std::string Forward(const Layer& layer, uint64_t batch) {
  if (layer.side == 0) {
    return "aten::addmm ( " + Tensor({layer.out}) + " " + Tensor({batch, layer.in}) + " " +
           Tensor({layer.in, layer.out}) + " i1 i1 ) -> ( " + Tensor({batch, layer.out}) + " )";
  }
  return "aten::convolution ( " + Tensor({batch, layer.in, layer.side, layer.side}) + " " +
         Tensor({layer.out, layer.in / layer.groups, layer.kernel, layer.kernel}) +
         " _ I1,1 I1,1 I1,1 b0 I0,0 i1 ) -> ( " + Tensor({batch, layer.out, OutSide(layer), OutSide(layer)}) + " )";
}

std::vector<std::string> Backward(const Layer& layer, uint64_t batch, bool input_gradient) {
  if (layer.side == 0) {
    std::vector<std::string> products = {"aten::mm ( " + Tensor({layer.out, batch}) + " " +
                                         Tensor({batch, layer.in}) + " ) -> ( " + Tensor({layer.out, layer.in}) +
                                         " )"};
    if (input_gradient) {
      products.push_back("aten::mm ( " + Tensor({batch, layer.out}) + " " + Tensor({layer.out, layer.in}) +
                         " ) -> ( " + Tensor({batch, layer.in}) + " )");
    }
    return products;
  }
  const std::string input = Tensor({batch, layer.in, layer.side, layer.side});
  const std::string weight = Tensor({layer.out, layer.in / layer.groups, layer.kernel, layer.kernel});
  return {"aten::convolution_backward ( " + Tensor({batch, layer.out, OutSide(layer), OutSide(layer)}) + " " + input +
          " " + weight + " I0 I1,1 I1,1 I1,1 b0 I0,0 i1 I" + (input_gradient ? "1" : "0") + ",1,0 ) -> ( " +
          (input_gradient ? input : "_") + " " + weight + " _ )"};
}

struct Sums {
  uint64_t forward = 0, backward = 0;
};

// FLOP per image of the network's convolutions and linear layers; the first has no gradient for its input.
Sums PerImage(const std::vector<Layer>& layers, uint64_t batch) {
  Sums sums;
  bool first = true;
  for (const Layer& layer : layers) {
    sums.forward += Model(Forward(layer, batch));
    for (const std::string& op : Backward(layer, batch, !first)) sums.backward += Model(op);
    first = false;
  }
  EXPECT_EQ(sums.forward % batch, 0u);
  return {sums.forward / batch, sums.backward / batch};
}

std::vector<Layer> ResNet18() {
  std::vector<Layer> layers = {{3, 64, 7, 2, 224}};
  uint64_t in = 64, side = 56;
  for (uint64_t out : {64, 128, 256, 512}) {
    const uint64_t stride = out == 64 ? 1 : 2;
    layers.push_back({in, out, 3, stride, side});
    layers.push_back({out, out, 3, 1, side / stride});
    if (stride == 2) layers.push_back({in, out, 1, 2, side});
    layers.push_back({out, out, 3, 1, side / stride});
    layers.push_back({out, out, 3, 1, side / stride});
    in = out;
    side /= stride;
  }
  layers.push_back({512, 1000, 0, 0, 0});
  return layers;
}

std::vector<Layer> Vgg11() {
  return {{3, 64, 3, 1, 224},     {64, 128, 3, 1, 112},  {128, 256, 3, 1, 56}, {256, 256, 3, 1, 56},
          {256, 512, 3, 1, 28},   {512, 512, 3, 1, 28},  {512, 512, 3, 1, 14}, {512, 512, 3, 1, 14},
          {25088, 4096, 0, 0, 0}, {4096, 4096, 0, 0, 0}, {4096, 1000, 0, 0, 0}};
}

std::vector<Layer> MobileNetV2() {
  struct Stage {
    uint64_t expansion, channels, blocks, stride;
  };
  std::vector<Layer> layers = {{3, 32, 3, 2, 224}};
  uint64_t in = 32, side = 112;
  for (const Stage& stage : {Stage{1, 16, 1, 1},
                             {6, 24, 2, 2},
                             {6, 32, 3, 2},
                             {6, 64, 4, 2},
                             {6, 96, 3, 1},
                             {6, 160, 3, 2},
                             {6, 320, 1, 1}}) {
    for (uint64_t block = 0; block < stage.blocks; ++block) {
      const uint64_t stride = block == 0 ? stage.stride : 1;
      const uint64_t hidden = in * stage.expansion;
      if (stage.expansion != 1) layers.push_back({in, hidden, 1, 1, side});
      layers.push_back({hidden, hidden, 3, stride, side, hidden});
      side /= stride;
      layers.push_back({hidden, stage.channels, 1, 1, side});
      in = stage.channels;
    }
  }
  layers.push_back({in, 1280, 1, 1, side});
  layers.push_back({1280, 1000, 0, 0, 0});
  return layers;
}

TEST(FlopTest, ResNet18IsExact) {
  for (uint64_t batch : {1, 8, 256}) {
    const Sums sums = PerImage(ResNet18(), batch);
    EXPECT_EQ(sums.forward, 3628146688u);
    EXPECT_EQ(sums.backward, 7020265472u);
  }
}

TEST(FlopTest, Vgg11IsExact) {
  const Sums sums = PerImage(Vgg11(), 4);
  EXPECT_EQ(sums.forward, 15218180096u);
  EXPECT_EQ(sums.backward, 30262951936u);
}

TEST(FlopTest, DepthwiseConvolutionsAreNotCountedByGroups) {
  const Sums sums = PerImage(MobileNetV2(), 2);
  EXPECT_EQ(sums.forward, 601548544u);
  EXPECT_EQ(sums.backward, 1181421056u);
  // 32 channels, 9 weights each, 2 per multiply-add, 32x32 outputs; two gradients of the same size.
  const Layer depthwise = {32, 32, 3, 1, 32, 32};
  EXPECT_EQ(Model(Forward(depthwise, 1)), 2u * 32 * 9 * 32 * 32);
  EXPECT_EQ(Model(Backward(depthwise, 1, true)[0]), 2u * 2 * 32 * 9 * 32 * 32);
}

TEST(FlopTest, BackwardCountsTheGradientsThatAreComputed) {
  const std::string operands =
      "aten::convolution_backward ( f32[2,8,4,4] f32[2,3,4,4] f32[8,3,3,3] I8 I1,1 I1,1 I1,1 "
      "b0 I0,0 i1 I1,1,1 ) -> ";
  const uint64_t one = 2u * 2 * 8 * 4 * 4 * 3 * 9;
  EXPECT_EQ(Model(operands + "( f32[2,3,4,4] f32[8,3,3,3] f32[8] )"), 2 * one);
  EXPECT_EQ(Model(operands + "( _ f32[8,3,3,3] f32[8] )"), one);
  EXPECT_EQ(Model(operands + "( f32[2,3,4,4] _ f32[8] )"), one);
  // The bias's gradient is a sum: additions, which the convention leaves out.
  EXPECT_EQ(Model(operands + "( _ _ f32[8] )"), 0u);
}

TEST(FlopTest, TransposedConvolutionCountsByItsInput) {
  // Each of the 16 channels of 5x5 inputs meets (8/2 output channels per group) * 3 * 3 weights.
  EXPECT_EQ(Model("aten::convolution ( f32[2,16,5,5] f32[16,4,3,3] _ I2,2 I0,0 I1,1 b1 I0,0 i2 ) -> "
                  "( f32[2,8,11,11] )"),
            2u * 2 * 16 * 25 * 4 * 9);
  EXPECT_EQ(Model("aten::convolution_backward ( f32[2,8,11,11] f32[2,16,5,5] f32[16,4,3,3] I8 I2,2 I0,0 I1,1 b1 I0,0 "
                  "i2 I1,1,0 ) -> ( f32[2,16,5,5] f32[16,4,3,3] _ )"),
            2u * 2 * 2 * 16 * 25 * 4 * 9);
  EXPECT_EQ(Model("aten::cudnn_convolution_transpose ( f32[2,16,5,5] f32[16,4,3,3] I0,0 I0,0 I2,2 I1,1 i2 b0 b0 b1 ) "
                  "-> ( f32[2,8,11,11] )"),
            2u * 2 * 16 * 25 * 4 * 9);
  // cuDNN's first boolean is `benchmark`, not `transposed`.
  EXPECT_EQ(Model("aten::cudnn_convolution ( f32[1,2,4,4] f32[6,2,1,1] I0,0 I1,1 I1,1 i1 b1 b0 b1 ) -> "
                  "( f32[1,6,4,4] )"),
            2u * 6 * 16 * 2);
}

TEST(FlopTest, ConvolutionsOfAnyDimension) {
  EXPECT_EQ(Model("aten::convolution ( f32[2,4,10] f32[6,4,3] f32[6] I1 I0 I1 b0 I0 i1 ) -> ( f32[2,6,8] )"),
            2u * 2 * 6 * 8 * 4 * 3);
  EXPECT_EQ(Model("aten::convolution ( f32[1,2,5,6,7] f32[3,2,2,2,2] _ I1 I0 I1 b0 I0 i1 ) -> ( f32[1,3,4,5,6] )"),
            2u * 3 * 4 * 5 * 6 * 2 * 8);
}

TEST(FlopTest, MatrixProducts) {
  EXPECT_EQ(Model("aten::mm ( f32[3,5] f32[5,7] ) -> ( f32[3,7] )"), 2u * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::mm ( f32[3,5] f32[5,7] f32[3,7]@9 ) -> ( f32[3,7]@9 )"), 2u * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::addmm ( f32[7] f32[3,5] f32[5,7] i1 i1 ) -> ( f32[3,7] )"), 2u * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::addmm_ ( f32[3,7]@1 f32[3,5] f32[5,7] i1 i1 ) -> ( f32[3,7]@1 )"), 2u * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::bmm ( f32[4,3,5] f32[4,5,7] ) -> ( f32[4,3,7] )"), 2u * 4 * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::baddbmm ( f32[4,3,7] f32[4,3,5] f32[4,5,7] i1 i1 ) -> ( f32[4,3,7] )"), 2u * 4 * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::addbmm ( f32[3,7] f32[4,3,5] f32[4,5,7] i1 i1 ) -> ( f32[3,7] )"), 2u * 4 * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::linear ( f32[2,6,5] f32[7,5] f32[7] ) -> ( f32[2,6,7] )"), 2u * 12 * 5 * 7);
  EXPECT_EQ(Model("aten::mv ( f32[3,5] f32[5] ) -> ( f32[3] )"), 2u * 15);
  EXPECT_EQ(Model("aten::addmv ( f32[3] f32[3,5] f32[5] i1 i1 ) -> ( f32[3] )"), 2u * 15);
  EXPECT_EQ(Model("aten::dot ( f32[5] f32[5] ) -> ( f32[] )"), 10u);
}

TEST(FlopTest, GroupedProductsCountEachElementOnce) {
  constexpr uint64_t kProducts = 268'435'456;  // 2 * 256 * 512 * 1024
  EXPECT_EQ(Model("aten::_grouped_mm ( bf16[256,512] bf16[4,512,1024] i32[4] _ _ ) -> ( bf16[256,1024] )"),
            kProducts);
  // The gradients of the input, whose groups are rows again, and of the weight, whose groups part the rows that are
  // summed over.
  EXPECT_EQ(Model("aten::_grouped_mm ( bf16[256,1024] bf16[4,1024,512] i32[4] _ _ ) -> ( bf16[256,512] )"),
            kProducts);
  EXPECT_EQ(Model("aten::_grouped_mm ( bf16[512,256] bf16[256,1024] i32[4] _ _ ) -> ( bf16[4,512,1024] )"),
            kProducts);
  // Groups of columns, and a batch.
  EXPECT_EQ(Model("aten::_grouped_mm ( bf16[4,1024,512] bf16[512,256] i32[4] _ _ ) -> ( bf16[1024,256] )"),
            kProducts);
  EXPECT_EQ(Model("aten::_grouped_mm ( bf16[4,3,5] bf16[4,5,7] _ _ _ ) -> ( bf16[4,3,7] )"), 2u * 4 * 3 * 5 * 7);
  EXPECT_EQ(Model("aten::_scaled_grouped_mm ( f8[256,512] f8[4,512,1024] f32[256] f32[4,1024] i32[4] _ _ i15 b0 ) -> "
                  "( bf16[256,1024] )"),
            kProducts);
  EXPECT_EQ(Model("aten::_weight_int8pack_mm ( bf16[3,5] i8[7,5] bf16[7] ) -> ( bf16[3,7] )"), 2u * 3 * 5 * 7);
}

TEST(FlopTest, DepthwiseConvolutionsRunOnCudaCores) {
  const FlopCount forward = Count(
      "aten::convolution ( f32[64,256,56,56] f32[256,1,3,3] _ I1,1 I1,1 I1,1 b0 I0,0 i256 ) -> ( f32[64,256,56,56] )");
  EXPECT_EQ(forward.vector, 924'844'032u);  // 2 * 64 * 256 * 56 * 56 * 9
  EXPECT_EQ(forward.matrix, 0u);
  const FlopCount backward = Count(
      "aten::convolution_backward ( f32[2,32,8,8] f32[2,32,8,8] f32[32,1,3,3] I0 I1,1 I1,1 I1,1 b0 I0,0 i32 I1,1,0 ) "
      "-> ( f32[2,32,8,8] f32[32,1,3,3] _ )");
  EXPECT_EQ(backward.vector, 2u * 2 * 2 * 32 * 64 * 9);
  EXPECT_EQ(backward.matrix, 0u);
  // One channel in the whole input is no group of its own.
  EXPECT_EQ(Count("aten::convolution ( f32[2,1,8,8] f32[16,1,3,3] _ I1,1 I1,1 I1,1 b0 I0,0 i1 ) -> ( f32[2,16,8,8] )")
                .vector,
            0u);
}

// rfft2 of 768 planes of 16 x 16: 2.5 * 768 * 256 * log2(256).
TEST(FlopTest, FourierTransforms) {
  EXPECT_EQ(Model("aten::_fft_r2c ( f32[1,768,16,16] I2,3 i0 b1 ) -> ( c64[1,768,16,9] )"), 3'932'160u);
  EXPECT_EQ(Model("aten::_fft_c2r ( c64[1,768,16,9] I2,3 i2 i16 ) -> ( f32[1,768,16,16] )"), 3'932'160u);
  EXPECT_EQ(Model("aten::_fft_c2c ( c64[768,16,16] I-2,-1 i0 b1 ) -> ( c64[768,16,16] )"), 2u * 3'932'160);
  EXPECT_EQ(Model("aten::_fft_c2c ( c64[2,8] I1 i0 b1 ) -> ( c64[2,8] )"), 2u * 5 * 8 * 3);
  EXPECT_EQ(Model("aten::_fft_c2c ( c64[2,1] I1 i0 b1 ) -> ( c64[2,1] )"), 0u);
}

TEST(FlopTest, DistancesOfPairs) {
  const std::string vectors = "f32[1024,256] f32[1024,256] ";
  EXPECT_EQ(Model("aten::_cdist_forward ( " + vectors + "d2 i2 ) -> ( f32[1024,1024] )"), 805'306'368u);
  EXPECT_EQ(Model("aten::_cdist_forward ( " + vectors + "d1 i2 ) -> ( f32[1024,1024] )"), 536'870'912u);
  EXPECT_EQ(Model("aten::_cdist_backward ( f32[1024,1024] " + vectors + "d2 f32[1024,1024] ) -> ( f32[1024,256] )"),
            1'073'741'824u);
  EXPECT_EQ(Model("aten::_pdist_forward ( f32[4,5] d2 ) -> ( f32[6] )"), 3u * 6 * 5);
  EXPECT_EQ(Model("aten::_pdist_backward ( f32[6] f32[4,5] d2 f32[6] ) -> ( f32[4,5] )"), 5u * 6 * 5);
}

// 2048 bags of 80 rows of 128.
TEST(FlopTest, EmbeddingBagsAddUpWhatTheyLookUp) {
  const auto bag = [](const std::string& mode, const std::string& weights) {
    return Model("aten::_embedding_bag ( f32[1000000,128] i64[163840] i64[2048] b0 i" + mode + " b0 " + weights +
                 " b0 i-1 ) -> ( f32[2048,128] i64[163840] i64[2048] i64[0] )");
  };
  EXPECT_EQ(bag("0", "_"), 20'709'376u);            // 2048 * 79 * 128
  EXPECT_EQ(bag("1", "_"), 20'971'520u);            // and a division a result
  EXPECT_EQ(bag("2", "_"), 0u);                     // a maximum
  EXPECT_EQ(bag("0", "f32[163840]"), 41'680'896u);  // and a product for each element
  EXPECT_EQ(Model("aten::_embedding_bag_dense_backward ( f32[2048,128] i64[163840] i64[163840] i64[2048] i64[0] "
                  "i1000000 b0 i0 _ i-1 ) -> ( f32[1000000,128] )"),
            20'971'520u);
  EXPECT_EQ(Model("aten::_embedding_bag_per_sample_weights_backward ( f32[2048,128] f32[1000000,128] i64[163840] "
                  "i64[2048] i64[163840] i0 i-1 ) -> ( f32[163840] )"),
            41'943'040u);
}

TEST(FlopTest, TransformerBlockOfVit) {
  // vit_b_16, one image: 197 tokens of 768, 12 heads of 64.
  EXPECT_EQ(Model("aten::convolution ( f32[1,3,224,224] f32[768,3,16,16] f32[768] I16,16 I0,0 I1,1 b0 I0,0 i1 ) -> "
                  "( f32[1,768,14,14] )"),
            2u * 768 * 196 * 3 * 256);
  EXPECT_EQ(Model("aten::addmm ( f32[2304] f32[197,768] f32[768,2304] i1 i1 ) -> ( f32[197,2304] )"),
            2u * 197 * 768 * 2304);
  const FlopCount attention = Count(
      "aten::_scaled_dot_product_flash_attention ( f16[1,12,197,64] f16[1,12,197,64] f16[1,12,197,64] d0.0 b0 b0 ) "
      "-> ( f16[1,12,197,64] f32[1,12,197] )");
  EXPECT_EQ(attention.matrix, 4u * 12 * 197 * 197 * 64);
  EXPECT_EQ(attention.vector, 4u * 12 * 197 * 197);
  EXPECT_EQ(attention.model, attention.matrix + attention.vector);
  // The fused backward computes the scores again: 2.5 times the forward is executed, twice it is the model's.
  const FlopCount backward = Count(
      "aten::_scaled_dot_product_flash_attention_backward ( f16[1,12,197,64] f16[1,12,197,64] f16[1,12,197,64] "
      "f16[1,12,197,64] f16[1,12,197,64] f32[1,12,197] ) -> ( f16[1,12,197,64] f16[1,12,197,64] f16[1,12,197,64] )");
  EXPECT_EQ(backward.matrix, attention.matrix / 2 * 5);
  EXPECT_EQ(backward.model - backward.vector, attention.matrix * 2);
}

TEST(FlopTest, CrossAttentionWithItsOwnValueSize) {
  EXPECT_EQ(Count("aten::_scaled_dot_product_efficient_attention ( f32[2,3,10,8] f32[2,3,20,8] f32[2,3,20,4] _ b1 d0 "
                  "b0 ) -> ( f32[2,3,10,4] f32[2,3,32] _ _ )")
                .matrix,
            2u * 2 * 3 * 10 * 20 * (8 + 4));
}

TEST(FlopTest, RecurrentLayers) {
  // LSTM: [7 tokens, 3 sequences, 5 features], 4 gates of 6.
  // As nn.LSTM calls it, whatever the order of dimensions; its backward computes two gradients.
  const std::string weights = "{ f32[1,3,6] f32[1,3,6] } { f32[24,5] f32[24,6] f32[24] f32[24] } b1 i1 d0 b1 b0";
  const std::string results = " ) -> ( f32[7,3,6] f32[1,3,6] f32[1,3,6] )";
  for (const std::string input : {"( f32[7,3,5] ", "( f32[3,7,5] "}) {
    const std::string batch_first = input == "( f32[3,7,5] " ? " b1" : " b0";
    EXPECT_EQ(Count("aten::lstm " + input + weights + batch_first + results).matrix, 2u * 21 * (24 * 5 + 24 * 6));
    EXPECT_EQ(Count("aten::lstm_backward " + input + weights + batch_first + results).matrix,
              2u * 2 * 21 * (24 * 5 + 24 * 6));
    const OpText op("aten::lstm " + input + weights + batch_first + results);
    const Recurrence steps = CountRecurrence(*FindOp(op.name()), op.call());
    EXPECT_EQ(steps.launches, 7u);
    EXPECT_EQ(steps.product_flop, 2u * 3 * 24 * 6);
    EXPECT_EQ(steps.gates_flop, 3u * 3 * 24);
    EXPECT_EQ(steps.product_bytes, 4u * (24 * 6 + 3 * 24 + 3 * 6));
  }
  const FlopCount lstm = Count(
      "aten::_cudnn_rnn ( f32[7,3,5] { f32[24,5] f32[24,6] f32[24] f32[24] } i4 _ f32[1,3,6] f32[1,3,6] i2 i6 ) -> ( "
      "f32[7,3,6] f32[1,3,6] f32[1,3,6] u8[10] f32[10] )");
  EXPECT_EQ(lstm.matrix, 2u * 21 * (24 * 5 + 24 * 6));
  EXPECT_EQ(lstm.vector, 3u * 21 * 24);
  const FlopCount onednn = Count(
      "aten::mkldnn_rnn_layer ( f32[7,3,5] f32[24,5] f32[24,6] f32[24] f32[24] f32[3,6] f32[3,6] b0 I i2 i6 i1 b1 b0 "
      "b0 b1 ) -> ( f32[7,3,6] f32[3,6] f32[3,6] u8[10] )");
  EXPECT_EQ(onednn.model, lstm.model);
}

TEST(FlopTest, Elementwise) {
  EXPECT_EQ(Model("aten::add ( f32[3,4] f32[3,4] i1 ) -> ( f32[3,4] )"), 12u);
  EXPECT_EQ(Model("aten::add ( f32[3,4] f32[4] i1 ) -> ( f32[3,4] )"), 12u);
  EXPECT_EQ(Model("aten::add_ ( f32[12]@1 f32[12] d-0.1 ) -> ( f32[12]@1 )"), 24u) << "alpha multiplies";
  EXPECT_EQ(Model("aten::mul_ ( f32[12]@1 f32[] ) -> ( f32[12]@1 )"), 12u);
  EXPECT_EQ(Model("aten::addcmul_ ( f32[12]@1 f32[12] f32[12] d0.001 ) -> ( f32[12]@1 )"), 36u);
  EXPECT_EQ(Model("aten::addcmul ( f32[12] f32[12] f32[12] i1 ) -> ( f32[12] )"), 24u);
  EXPECT_EQ(Model("aten::lerp_ ( f32[12]@1 f32[12] d0.1 ) -> ( f32[12]@1 )"), 36u);
  for (const char* name : {"relu", "relu_", "clamp_min", "exp", "tanh", "neg", "maximum", "copy_", "where"}) {
    EXPECT_EQ(Model("aten::" + std::string(name) + " ( f32[12]@1 f32[12] ) -> ( f32[12]@1 )"), 0u) << name;
  }
  EXPECT_EQ(Model("aten::sigmoid ( f32[12] ) -> ( f32[12] )"), 24u);
}

TEST(FlopTest, IntegersAndComparisonsAreNoFlop) {
  EXPECT_EQ(Model("aten::add_ ( i64[]@1 i64[] i1 ) -> ( i64[]@1 )"), 0u);
  EXPECT_EQ(Model("aten::eq ( f32[8] f32[8] ) -> ( bool[8] )"), 0u);
  EXPECT_EQ(Model("aten::sum ( bool[8] ) -> ( i64[] )"), 0u);
  EXPECT_EQ(Model("aten::mm ( i32[3,5] i32[5,7] ) -> ( i32[3,7] )"), 0u);
  // But for what has a unit of its own.
  EXPECT_EQ(Model("aten::_int_mm ( i8[4096,4096] i8[4096,4096] ) -> ( i32[4096,4096] )"), 137'438'953'472u);
}

TEST(FlopTest, ComplexMultiplyAddIsFourReal) {
  EXPECT_EQ(Model("aten::mm ( c64[3,5] c64[5,7] ) -> ( c64[3,7] )"), 4u * 2 * 3 * 5 * 7);
}

TEST(FlopTest, Reductions) {
  EXPECT_EQ(Model("aten::sum ( f32[8,10] I0 b0 _ ) -> ( f32[10] )"), 70u);
  EXPECT_EQ(Model("aten::mean ( f32[8,10] I0 b0 _ ) -> ( f32[10] )"), 80u);
  EXPECT_EQ(Model("aten::_softmax ( f32[8,10] i1 b0 ) -> ( f32[8,10] )"), 240u);
}

TEST(FlopTest, Normalisation) {
  const std::string operands = "( f32[2,3,4,4] f32[3] f32[3] f32[3] f32[3] ";
  EXPECT_EQ(Model("aten::native_batch_norm " + operands + "b1 d0.1 d1e-5 ) -> ( f32[2,3,4,4] f32[3] f32[3] )"),
            8u * 96);
  EXPECT_EQ(Model("aten::native_batch_norm " + operands + "b0 d0.1 d1e-5 ) -> ( f32[2,3,4,4] f32[0] f32[0] )"),
            2u * 96);
  EXPECT_EQ(Model("aten::native_batch_norm ( f32[2,3,4,4] _ _ _ _ b1 d0.1 d1e-5 ) -> ( f32[2,3,4,4] f32[3] f32[3] )"),
            6u * 96);
  EXPECT_EQ(Model("aten::native_layer_norm ( f32[2,8] I8 f32[8] f32[8] d1e-5 ) -> ( f32[2,8] f32[2,1] f32[2,1] )"),
            8u * 16);
  EXPECT_EQ(Model("aten::native_layer_norm ( f32[2,8] I8 _ _ d1e-5 ) -> ( f32[2,8] f32[2,1] f32[2,1] )"), 6u * 16);
}

TEST(FlopTest, Pooling) {
  EXPECT_EQ(Model("aten::avg_pool2d ( f32[1,3,8,8] I2,2 I2,2 I0,0 b0 b1 _ ) -> ( f32[1,3,4,4] )"), 48u * 4);
  EXPECT_EQ(Model("aten::avg_pool2d ( f32[1,3,8,8] I2 I2 I0 b0 b1 _ ) -> ( f32[1,3,4,4] )"), 48u * 4);
  EXPECT_EQ(Model("aten::max_pool2d_with_indices ( f32[1,3,8,8] I2,2 I2,2 I0,0 I1,1 b0 ) -> ( f32[1,3,4,4] "
                  "i64[1,3,4,4] )"),
            0u);
  EXPECT_EQ(Model("aten::_adaptive_avg_pool2d ( f32[1,3,8,8] I2,2 ) -> ( f32[1,3,2,2] )"), 192u);
}

TEST(FlopTest, WhatIsScatteredIsAddedOncePerValue) {
  EXPECT_EQ(Model("aten::_index_put_impl_ ( f32[100,8]@1 { i64[4] } f32[4,8] b1 b0 ) -> ( f32[100,8]@1 )"), 32u);
  EXPECT_EQ(Model("aten::_index_put_impl_ ( f32[100,8]@1 { i64[4] } f32[4,8] b0 b0 ) -> ( f32[100,8]@1 )"), 0u);
  // The operators of compiled code, which are not in place.
  EXPECT_EQ(Model("aten::index_put ( f32[100,8] { i64[4] } f32[4,8] b1 ) -> ( f32[100,8] )"), 32u);
  EXPECT_EQ(Model("aten::put_ ( f32[100]@1 i64[4] f32[4] b1 ) -> ( f32[100]@1 )"), 4u);
  EXPECT_EQ(Model("aten::put_ ( f32[100]@1 i64[4] f32[4] b0 ) -> ( f32[100]@1 )"), 0u);
  EXPECT_EQ(Model("aten::scatter_add ( f32[4,100] i1 i64[4,9] f32[4,9] ) -> ( f32[4,100] )"), 36u);
  EXPECT_EQ(
      Model(
          "aten::_unsafe_masked_index_put_accumulate ( f32[100,8] bool[4,1] { i64[4] } f32[4,8] ) -> ( f32[100,8] )"),
      32u);
}

TEST(FlopTest, ListsOfParameters) {
  EXPECT_EQ(Model("aten::_foreach_add_ ( { f32[10] f32[20] } { f32[10] f32[20] } d-0.1 ) -> ( )"), 60u);
  EXPECT_EQ(Model("aten::_foreach_mul_ ( { f32[10] f32[20] } d0.9 ) -> ( )"), 30u);
  EXPECT_EQ(Model("aten::_foreach_sqrt ( { f32[10] f32[20] } ) -> ( { f32[10] f32[20] } )"), 30u);
  EXPECT_EQ(Model("aten::_fused_sgd_ ( { f32[10] f32[20] } { f32[10] f32[20] } { f32[10] f32[20] } ) -> ( )"), 180u);
}

TEST(FlopTest, MissingOperandsCountNothing) {
  EXPECT_EQ(Model("aten::convolution ( _ _ _ ) -> ( f32[2] )"), 0u);
  EXPECT_EQ(Model("aten::mm ( _ ) -> ( f32[2] )"), 0u);
  EXPECT_EQ(Model("aten::_scaled_dot_product_flash_attention ( f32[2] ) -> ( f32[2] )"), 0u);
  EXPECT_EQ(Model("aten::_native_multi_head_attention ( f32[2] ) -> ( f32[2] )"), 0u);
  EXPECT_EQ(Model("aten::addmm ( f32[] f32[] f32[] ) -> ( f32[] )"), 0u);
}

TEST(FlopTest, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(Model("aten::mm ( f32[4000000000,4000000000] f32[4000000000,4000000000] ) -> ( f32[2] )"), UINT64_MAX);
}

}  // namespace
}  // namespace rfinject::estimate
