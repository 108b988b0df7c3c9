#include "cli/model/estimated_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

FlopByPrecision Flop(Precision precision, double amount) {
  FlopByPrecision flop{};
  flop[static_cast<size_t>(precision)] = amount;
  return flop;
}

TEST(EstimatedKernel, AConvolutionsStrideFollowsFromItsFlop) {
  // 7x7, stride 2, padding 3: 224 -> 112.
  const EstimatedKernel kernel{.op = "aten::convolution",
                               .signature = "f32[2,3,224,224] f32[64,3,7,7]",
                               .flop = Flop(Precision::kTf32Tensor, 2.0 * 2 * 64 * 112 * 112 * 3 * 49)};
  const OperatorList list = OperatorsOf(kernel);
  ASSERT_EQ(list.count, 1u);
  const Operator& op = list.operators[0];
  EXPECT_EQ(op.kind, OperatorKind::kConvolution);
  EXPECT_EQ(op.precision, Precision::kTf32Tensor);
  EXPECT_EQ(op.images, 2);
  EXPECT_EQ(op.c_in, 3);
  EXPECT_EQ(op.c_out, 64);
  EXPECT_EQ(op.out_h, 112);
  EXPECT_EQ(op.out_w, 112);
  EXPECT_EQ(op.groups, 1);
}

TEST(EstimatedKernel, PoolsNormsAndTheirBackwardsAreToldApart) {
  const auto of = [](const char* op, const char* signature) {
    return OperatorsOf({.op = op, .signature = signature, .bytes = 1e6}).operators[0];
  };
  EXPECT_EQ(FamilyOf(of("aten::max_pool2d_with_indices", "f32[2,64,112,112]")), Family::kPool);
  EXPECT_EQ(FamilyOf(of("aten::max_pool2d_with_indices_backward", "f32[2,64,56,56] f32[2,64,112,112]")),
            Family::kPoolBackward);
  EXPECT_EQ(FamilyOf(of("aten::native_layer_norm", "f32[64,768] f32[768]")), Family::kLayerNorm);
  EXPECT_EQ(FamilyOf(of("aten::native_layer_norm_backward", "f32[64,768] f32[64,768]")), Family::kLayerNormBackward);
  EXPECT_EQ(ScaleKindOf(of("aten::native_batch_norm", "bf16[8,64,56,56] f32[64]")), ScaleKind::kNative);
  EXPECT_EQ(ScaleKindOf(of("aten::cudnn_batch_norm", "f16[8,64,56,56] f32[64]")), ScaleKind::kChannelsLast);
  EXPECT_EQ(ScaleKindOf(of("aten::cudnn_batch_norm", "f16:nchw[8,64,56,56] f32[64]")), ScaleKind::kChannelsFirst);
  EXPECT_EQ(ScaleKindOf(of("aten::cudnn_batch_norm", "f32[8,64,56,56] f32[64]")), ScaleKind::kPlain);
  const Operator groups = of("aten::native_group_norm", "f32[8,320,64,64] f32[320]");
  EXPECT_EQ(groups.rows, 8 * 32);
  EXPECT_EQ(groups.rows * groups.cols, 8.0 * 320 * 64 * 64);
}

TEST(EstimatedKernel, AConvolutionsBackwardIsTwoOperatorsAndOneInTheFirstLayer) {
  const double once = 2.0 * 8 * 128 * 28 * 28 * 64 * 9;
  EstimatedKernel kernel{.op = "aten::convolution_backward",
                         .signature = "bf16[8,128,28,28] bf16[8,64,56,56] bf16[128,64,3,3]",
                         .flop = Flop(Precision::kBf16Tensor, 2 * once)};
  OperatorList list = OperatorsOf(kernel);
  ASSERT_EQ(list.count, 2u);
  EXPECT_EQ(list.operators[0].pass, Pass::kWgrad);
  EXPECT_EQ(list.operators[1].pass, Pass::kDgrad);
  EXPECT_EQ(list.operators[1].element_bytes, 2);
  EXPECT_EQ(list.operators[1].h, 56);
  EXPECT_EQ(list.operators[1].out_h, 28);
  kernel.flop = Flop(Precision::kBf16Tensor, once);
  list = OperatorsOf(kernel);
  ASSERT_EQ(list.count, 1u);
  EXPECT_EQ(list.operators[0].pass, Pass::kWgrad);
}

TEST(EstimatedKernel, ProductsTakeTheirLastTwoOperands) {
  struct Case {
    const char *op, *signature;
    double batch, m, k, n;
  };
  for (const Case& c : {Case{"aten::addmm", "f32[1000] f32[8,512] f32[512,1000]", 1, 8, 512, 1000},
                        Case{"aten::mm", "f32[8,512] f32[512,1000]", 1, 8, 512, 1000},
                        Case{"aten::linear", "f32[4,2,512] f32[1000,512] f32[1000]", 1, 8, 512, 1000},
                        Case{"aten::baddbmm", "f32[6,3,5] f32[6,3,4] f32[6,4,5]", 6, 3, 4, 5},
                        Case{"bmm", "f32[6,3,4] f32[6,4,5]", 6, 3, 4, 5}}) {
    const OperatorList list = OperatorsOf(
        {.op = c.op, .signature = c.signature, .flop = Flop(Precision::kFp32, 2 * c.batch * c.m * c.k * c.n)});
    const Operator& op = list.operators[0];
    EXPECT_EQ(op.kind, OperatorKind::kProduct) << c.op;
    EXPECT_EQ(op.batch, c.batch) << c.op;
    EXPECT_EQ(op.m, c.m) << c.op;
    EXPECT_EQ(op.k, c.k) << c.op;
    EXPECT_EQ(op.n, c.n) << c.op;
  }
}

// Inductor calls them with out=, which is the last operand.
TEST(EstimatedKernel, ProductsAreTheSameWhereTheResultIsGiven) {
  const auto product = [](std::string_view op, std::string_view signature, double flop) {
    return OperatorsOf({.op = op, .signature = signature, .flop = Flop(Precision::kFp32, flop)}).operators[0];
  };
  for (const Operator& op :
       {product("aten::mm", "f32[8,512] f32[512,1000] f32[8,1000]", 2.0 * 8 * 512 * 1000),
        product("aten::addmm", "f32[1000] f32[8,512] f32[512,1000] f32[8,1000]", 2.0 * 8 * 512 * 1000)}) {
    EXPECT_EQ(op.kind, OperatorKind::kProduct);
    EXPECT_EQ(op.k, 512);
    EXPECT_EQ(op.n, 1000);
  }
  const Operator op = product("aten::bmm", "f32[4,8,16] f32[4,16,32] f32[4,8,32]", 2.0 * 4 * 8 * 16 * 32);
  EXPECT_EQ(op.kind, OperatorKind::kProduct);
  EXPECT_EQ(op.batch, 4);
}

TEST(EstimatedKernel, SomeOperatorsAreTwoKernels) {
  const auto copied = [](std::string_view op, std::string_view signature, double flop = 0) {
    EstimatedKernel kernel{.op = op, .signature = signature};
    kernel.flop[static_cast<size_t>(Precision::kFp32)] = flop;
    const OperatorList list = OperatorsOf(kernel);
    return list.count == 2 ? list.operators[1].bytes : 0;
  };
  // The bias is copied first, because cuBLASLt is not asked.
  EXPECT_EQ(copied("aten::addmm", "f32[1] f32[16,256] f32[256,1]", 2 * 16 * 256), 4 + 16 * 4);
  EXPECT_EQ(copied("aten::addmm", "f32[8] f32[16,1] f32[1,8]", 2 * 16 * 8), 8 * 4 + 16 * 8 * 4);
  EXPECT_EQ(copied("aten::addmm", "f32[2] f32[16,256] f32[256,2]", 2 * 16 * 256 * 2), 0);
  EXPECT_EQ(copied("aten::mm", "f32[16,256] f32[256,1]", 2 * 16 * 256), 0);
  // Integers are converted to those of the sum.
  EXPECT_EQ(copied("aten::sum", "i32[3,128]"), 384 * (4 + 8));
  EXPECT_EQ(copied("aten::sum", "bool[128]"), 128 * (1 + 8));
  EXPECT_EQ(copied("aten::sum", "i64[3,128]"), 0);
  EXPECT_EQ(copied("aten::sum", "f16[3,128]"), 0);
  EXPECT_EQ(copied("aten::amax", "i32[3,128]"), 0);
}

TEST(EstimatedKernel, ACausalAttentionHasTheFlopThatTheMaskLeaves) {
  const auto flop = [](double given) {
    return OperatorsOf({.op = "aten::_scaled_dot_product_flash_attention",
                        .signature = "f16:causal[2,3,4,8] f16[2,3,4,8] f16[2,3,4,8]",
                        .flop = Flop(Precision::kFp16Tensor, given)})
        .operators[0]
        .flop;
  };
  constexpr double kSeen = 4 * 6 * 10 * 8;  // 10 of 16 pairs
  EXPECT_EQ(flop(kSeen), kSeen);
  EXPECT_EQ(flop(4 * 6 * 16 * 8), kSeen) << "older traces count all";
}

TEST(EstimatedKernel, AttentionHasHeadsQueriesAndKeys) {
  const Operator forward = OperatorsOf({.op = "aten::_scaled_dot_product_flash_attention",
                                        .signature = "f16:causal[8,12,100,64] f16[8,12,200,64] f16[8,12,200,64]",
                                        .flop = Flop(Precision::kFp16Tensor, 1e9)})
                               .operators[0];
  EXPECT_EQ(forward.kind, OperatorKind::kCausalAttention);
  EXPECT_EQ(forward.batch, 96);
  EXPECT_EQ(forward.m, 100);
  EXPECT_EQ(forward.n, 200);
  EXPECT_EQ(forward.element_bytes, 2);
  const Operator backward =
      OperatorsOf({.op = "aten::_scaled_dot_product_flash_attention_backward",
                   .signature = "f16[8,12,100,64] f16[8,12,100,64] f16[8,12,200,64] f16[8,12,200,64]",
                   .flop = Flop(Precision::kFp16Tensor, 1e9)})
          .operators[0];
  EXPECT_EQ(backward.pass, Pass::kDgrad);
  EXPECT_EQ(backward.n, 200);
  EXPECT_EQ(backward.kind, OperatorKind::kAttention);
}

TEST(EstimatedKernel, CopiesIntoAnotherOrderConcatenationsAndBroadcastsAreOneByOne) {
  const auto elements = [](std::string_view op, std::string_view signature) {
    const Operator one = OperatorsOf({.op = op, .signature = signature, .bytes = 1e6}).operators[0];
    return one.kind == OperatorKind::kReordering ? one.rows * one.cols : 0;
  };
  EXPECT_EQ(elements("aten::copy_", "f16[4,5,6] f16[4,5,6]"), 120);
  EXPECT_EQ(elements("aten::copy_", "f16[4,5,6] f32[4,5,6]"), 0);  // a kernel of its own
  EXPECT_EQ(elements("aten::copy_", "f32[4,5,6] bf16[4,5,6]"), 120);
  EXPECT_EQ(elements("aten::cat", "2*bf16{19268352}"), 19268352);
  EXPECT_EQ(elements("aten::add", "f16[4,5,6] f16[1,5,6]"), 120);
  EXPECT_EQ(elements("aten::add", "f16[4,5,6] f16[4,5,6]"), 0);
  EXPECT_EQ(elements("aten::mul", "f16[4,5,6] f64[]"), 0);
  // Operands of two types: as many more as two readings and a writing are than one and one.
  EXPECT_EQ(elements("aten::add", "bf16[4,5,6] f32[4,5,6]"), 180);
  EXPECT_EQ(elements("aten::mul_", "f32[4,5,6] f16[6]"), 180);
  EXPECT_EQ(elements("aten::masked_fill", "f16[4,5,6] bool[4,5,6]"), 0);
}

TEST(EstimatedKernel, AKernelOfTritonsIsNoneOfTheOperatorsThatItFuses) {
  for (const char* name : {"triton_red_fused_native_layer_norm_0", "triton_per_fused__softmax_add_3",
                           "triton_poi_fused__native_batch_norm_legit_functional_relu_2"}) {
    const Operator op = OperatorsOf({.op = name, .bytes = 1e6}).operators[0];
    EXPECT_EQ(FamilyOf(op), Family::kElementwise) << name;
    EXPECT_EQ(op.bytes, 1e6);
  }
}

// The gradient of the weight of a vocabulary: the gradient of 8192 tokens by 50257, transposed, whose rows are odd.
TEST(EstimatedKernel, AWeightsGradientReadsRowsOfTheOutputsGradient) {
  const auto misaligned = [](std::string_view signature, double m, double k, double n, bool gradient) {
    const EstimatedKernel kernel{.op = "aten::mm",
                                 .signature = signature,
                                 .flop = Flop(Precision::kBf16Tensor, 2 * m * k * n),
                                 .gradient = gradient};
    return MisalignedOf(OperatorsOf(kernel).operators[0]);
  };
  const Misaligned weight = misaligned("bf16[50257,8192] bf16[8192,768]", 50257, 8192, 768, true);
  EXPECT_EQ(weight.elements, 50257.0 * 8192);
  EXPECT_TRUE(weight.narrow);
  EXPECT_EQ(misaligned("bf16[50257,8192] bf16[8192,768]", 50257, 8192, 768, false).elements, 0);
  const Misaligned input = misaligned("bf16[8192,50258] bf16[50258,768]", 8192, 50258, 768, true);
  EXPECT_EQ(input.elements, (8192.0 + 768) * 50258);
  EXPECT_FALSE(input.narrow) << "rows begin at multiples of 4 bytes";
  EXPECT_EQ(misaligned("bf16[768,8192] bf16[8192,3072]", 768, 8192, 3072, true).elements, 0);
}

TEST(EstimatedKernel, FlopOfAConvolutionWithSomeDigitsOnlyGiveWholePixels) {
  const double flop = 2.0 * 32 * 64 * 256 * 56 * 56;
  const Operator op = OperatorsOf({.op = "aten::convolution",
                                   .signature = "f32[32,256,56,56] f32[64,256,1,1]",
                                   .flop = Flop(Precision::kFp32, flop * (1 - 1e-9))})
                          .operators[0];
  EXPECT_EQ(op.out_h, 56);
  EXPECT_EQ(op.out_w, 56);
  EXPECT_TRUE(IsProductAsItLies(op));
}

TEST(EstimatedKernel, ShapesThatDoNotGiveTheFlopAreNotBelieved) {
  const OperatorList list = OperatorsOf(
      {.op = "aten::mm", .signature = "f32[8,512] f32[512,1000]", .flop = Flop(Precision::kFp32, 1e9), .bytes = 1e6});
  EXPECT_EQ(list.operators[0].kind, OperatorKind::kOther);
  EXPECT_EQ(list.operators[0].flop, 1e9);
  EXPECT_EQ(list.operators[0].bytes, 1e6);
}

TEST(EstimatedKernel, ReadsAnyTextWithoutHarm) {
  for (const char* signature : {"", "[", "f32[", "f32[]", "f32[1,", "f32[1,]", "f32[x]", "f32[-1,2] f32[2,-1]", "]",
                                "  ", "f32[0,0,0,0] f32[0,0,0,0]", "64*f32{25557032}", "f32[1,2,3,4,5,6,7]",
                                "f32[8,512…", "f32[99999999999999999999999,2] f32[2,3]"}) {
    for (const char* op : {"", "::", "aten::mm", "aten::convolution", "aten::convolution_backward", "batch_norm"}) {
      const ExpectedTime time =
          ExpectedTimeOf({.op = op, .signature = signature, .flop = Flop(Precision::kFp32, 1e6), .bytes = 1e6},
                         ExpectedTimes(*FindGpu("T4"), Calibration::Shipped()));
      EXPECT_GT(time.expected_s, 0) << op << " " << signature;
      EXPECT_LT(time.expected_s, 1) << op << " " << signature;
    }
  }
}

// Kernels of training steps, from a few elements to a gigabyte.
struct Sample {
  std::string op, signature;
  FlopByPrecision flop{};
  double bytes = 0;
};

std::string Tensor(std::string_view type, std::initializer_list<double> sizes) {
  std::string text;
  for (const double size : sizes) text += (text.empty() ? "" : ",") + std::to_string(static_cast<int64_t>(size));
  return std::string(type) + "[" + text + "]";
}

std::vector<Sample> Samples() {
  std::vector<Sample> samples;
  struct Type {
    std::string_view name;
    double bytes;
    Precision unit;
  };
  for (const auto& [name, width, unit] : {Type{"f32", 4, Precision::kFp32}, Type{"f32", 4, Precision::kTf32Tensor},
                                          Type{"f16", 2, Precision::kFp16Tensor}}) {
    for (double n = 1; n < 3e8; n *= 7) {
      const std::string flat = Tensor(name, {n, 1});
      for (const char* op : {"aten::add", "aten::relu_", "aten::copy_", "aten::sum", "aten::_softmax",
                             "aten::native_layer_norm", "aten::native_batch_norm", "aten::_index_put_impl_"}) {
        samples.push_back({op, flat + " " + flat, Flop(Precision::kFp32, n), 3 * n * width});
      }
    }
    for (double side = 8; side < 20000; side = side * 3 + 1) {
      for (const double k : {16.0, 512.0, 8192.0}) {
        samples.push_back({"aten::mm", Tensor(name, {side, k}) + " " + Tensor(name, {k, side}),
                           Flop(unit, 2 * side * side * k), width * (2 * side * k + side * side)});
        samples.push_back({"aten::bmm", Tensor(name, {48, side, k}) + " " + Tensor(name, {48, k, side}),
                           Flop(unit, 48 * 2 * side * side * k), 48 * width * (2 * side * k + side * side)});
      }
      FlopByPrecision flop = Flop(unit, 4 * 48 * side * side * 64);
      flop[static_cast<size_t>(Precision::kFp32)] += 4 * 48 * side * side;
      for (const char* mark : {"", ":causal"}) {
        const std::string tail = Tensor(name, {4, 12, side, 64});
        samples.push_back({"aten::_scaled_dot_product_flash_attention",
                           Tensor(std::string(name) + mark, {4, 12, side, 64}) + " " + tail + " " + tail, flop,
                           4 * 48 * side * 64 * width});
      }
    }
    for (const double images : {1.0, 32.0, 256.0}) {
      for (const double channels : {3.0, 64.0, 512.0}) {
        for (const double kernel : {1.0, 3.0, 5.0}) {
          const double elements = images * channels * 28 * 28;
          const double flop = 2 * elements * 64 * kernel * kernel;
          const std::string in = Tensor(name, {images, channels, 28, 28}), out = Tensor(name, {images, 64, 28, 28}),
                            filter = Tensor(name, {64, channels, kernel, kernel});
          const double bytes = width * (elements + images * 64 * 784 + 64 * channels * kernel * kernel);
          samples.push_back({"aten::convolution", in + " " + filter, Flop(unit, flop), bytes});
          samples.push_back(
              {"aten::convolution_backward", out + " " + in + " " + filter, Flop(unit, 2 * flop), 2 * bytes});
        }
      }
    }
  }
  return samples;
}

TEST(EstimatedKernel, NothingButWinogradIsFasterThanItsRoofsAndNothingThanItsIdealTime) {
  for (const Gpu& gpu : AllGpus()) {
    if (!HasEstimates(gpu)) continue;
    const ExpectedTimes model(gpu, Calibration::Shipped());
    for (const Sample& sample : Samples()) {
      const ExpectedTime time = ExpectedTimeOf(
          {.op = sample.op, .signature = sample.signature, .flop = sample.flop, .bytes = sample.bytes}, model);
      if (time.winograd || !(time.expected_s > 0)) continue;
      const std::string what = std::string(gpu.name) + " " + sample.op + " " + sample.signature;
      double least_s = time.dram_bytes / gpu.dram_bytes_per_s;
      for (size_t i = 0; i < sample.flop.size(); ++i) {
        if (sample.flop[i] > 0) least_s = std::max(least_s, sample.flop[i] / gpu.peak[i]);
      }
      EXPECT_GE(time.expected_s, least_s * (1 - 1e-12)) << what;
      EXPECT_GE(time.ideal_s, least_s * (1 - 1e-12)) << what;
      EXPECT_LE(time.ideal_s, time.expected_s * (1 + 1e-12)) << what;
      EXPECT_LE(time.low_s, time.expected_s) << what;
      EXPECT_GE(time.high_s, time.expected_s) << what;
      EXPECT_LE(time.dram_bytes, sample.bytes) << what;
      EXPECT_GE(time.dram_bytes, 0.1 * sample.bytes) << what;  // no cache is so fast that a row had no intensity
    }
  }
}

TEST(EstimatedKernel, AConvolutionsMemoryFormatIsItsFirstOperands) {
  const double once = 2.0 * 2 * 64 * 112 * 112 * 8 * 49;
  const auto channels_last = [&](std::string_view type) {
    const std::string first = std::string(type) + "[2,8,224,224]", gradient = std::string(type) + "[2,64,112,112]";
    const std::string forward = first + " f32[64,8,7,7]", backward = gradient + " f32[2,8,224,224] f32[64,8,7,7]";
    const auto of = [&](std::string_view op, std::string_view signature, double flop) {
      const OperatorList list =
          OperatorsOf({.op = op, .signature = signature, .flop = Flop(Precision::kTf32Tensor, flop)});
      EXPECT_EQ(list.operators[0].kind, OperatorKind::kConvolution) << signature;
      return list.operators[list.count - 1].channels_last;
    };
    const bool forwards = of("aten::convolution", forward, once);
    EXPECT_EQ(of("aten::convolution_backward", backward, 2 * once), forwards) << type;
    return forwards;
  };
  EXPECT_FALSE(channels_last("f32"));
  EXPECT_TRUE(channels_last("f32:nhwc"));
  EXPECT_TRUE(channels_last("f16"));
  EXPECT_TRUE(channels_last("bf16"));
  EXPECT_FALSE(channels_last("bf16:nchw"));
}

TEST(EstimatedKernel, ABatchNormReadsTwiceByABlockAChannel) {
  const double elements = 8 * 64 * 56 * 56;
  EstimatedKernel kernel{.op = "aten::native_batch_norm",
                         .signature = "f32[8,64,56,56] f32[64] f32[64]",
                         .flop = Flop(Precision::kFp32, 8 * elements),
                         .bytes = 8 * elements};
  const auto only = [&kernel] { return OperatorsOf(kernel).operators[0]; };
  EXPECT_EQ(only().bytes, 8 * elements);
  EXPECT_EQ(only().reread_bytes, 4 * elements);
  EXPECT_EQ(only().rows, 64);
  kernel.flop = Flop(Precision::kFp32, 2 * elements);  // evaluation
  EXPECT_EQ(only().bytes, 8 * elements);
  EXPECT_EQ(only().reread_bytes, 0);
  EXPECT_EQ(only().rows, 0);
  kernel.op = "aten::native_batch_norm_backward";
  kernel.bytes = 12 * elements;
  EXPECT_EQ(only().bytes, 12 * elements);
  EXPECT_EQ(only().reread_bytes, 8 * elements);
  EXPECT_EQ(only().rows, 64);
  kernel.signature = "f16[8,64,56,56] f16[8,64,56,56]";  // taken for channels last
  EXPECT_EQ(only().reread_bytes, 4 * elements);
  EXPECT_EQ(only().rows, 0);
  kernel.signature = "f16:nchw[8,64,56,56] f16[8,64,56,56]";
  EXPECT_EQ(only().rows, 64);
  kernel.signature = "f32:nhwc[8,64,56,56] f32[8,64,56,56]";
  EXPECT_EQ(only().rows, 0);
  EXPECT_EQ(only().reread_bytes, 8 * elements);
  kernel.signature = "f32[8,64] f32[8,64]";  // no pixels: another kernel
  EXPECT_EQ(only().rows, 0);
}

TEST(EstimatedKernel, ASparseProductIsTrafficWithAWideInterval) {
  constexpr double kNumbers = 1e6, kColumns = 64, kRows = 1e5;
  EstimatedKernel kernel{.op = "aten::mm",
                         .signature = "f32[100000,100000]{1000000} f32[100000,64]",
                         .flop = Flop(Precision::kFp32, 2 * kNumbers * kColumns),
                         .bytes = kNumbers * (4 + 16) + 2 * kRows * kColumns * 4};
  EXPECT_NE(OperatorsOf(kernel).operators[0].kind, OperatorKind::kProduct);
  const ExpectedTimes model(*FindGpu("A100-SXM4-40GB"), Calibration::Shipped());
  const ExpectedTime sparse = ExpectedTimeOf(kernel, model);
  kernel.signature = "f32[100000,100000,100000,100000,100000,1] f32[100000,64]";  // nothing of it is known
  const ExpectedTime traffic = ExpectedTimeOf(kernel, model);
  EXPECT_EQ(sparse.low_s, traffic.low_s);
  EXPECT_GT(sparse.expected_s, traffic.expected_s);
  // 256 MB more where no cache has any of the dense matrix.
  kernel.bytes += kNumbers * kColumns * 4;
  EXPECT_DOUBLE_EQ(sparse.high_s, ExpectedTimeOf(kernel, model).high_s);
}

}  // namespace
}  // namespace rfinject::cli
