#include "cli/model/expected.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace rfinject::cli {
namespace {

// A GPU on which times can be done by hand: 10 SMs, 1 TFLOP/s FP32, 4 TFLOP/s FP16 tensor, 100 GB/s, 1 MB of L2.
Gpu SomeGpu() {
  Gpu gpu{};
  gpu.name = "Test";
  gpu.sm_count = 10;
  gpu.peak[static_cast<size_t>(Precision::kFp32)] = 1e12;
  gpu.peak[static_cast<size_t>(Precision::kFp16Tensor)] = 4e12;
  gpu.dram_bytes_per_s = 100e9;
  gpu.l2_bytes = 1e6;
  return gpu;
}

Calibration Table(std::string text) {
  std::string error;
  auto calibration = Calibration::Parse(text, error);
  EXPECT_TRUE(calibration) << error;
  return calibration.value_or(Calibration());
}

TEST(ExpectedTime, AnElementwiseOperatorIsTrafficOverSustainedBandwidthAndTheLaunch) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table("Test,gpu,memory_share,0.8\nTest,elementwise,launch_us,5\n");
  const ExpectedTimes model(gpu, calibration);
  const ExpectedTime time = model.Of({.kind = OperatorKind::kElementwise, .bytes = 8e6});
  EXPECT_NEAR(time.ideal_s, 80e-6, 1e-12);             // 8 MB at 100 GB/s
  EXPECT_NEAR(time.expected_s, 100e-6 + 5e-6, 1e-12);  // at 80 GB/s, and 5 us
}

TEST(ExpectedTime, ATinyOperatorTakesTheLaunchInterval) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration;
  const ExpectedTime time = ExpectedTimes(gpu, calibration).Of({.kind = OperatorKind::kElementwise, .bytes = 4});
  EXPECT_DOUBLE_EQ(time.ideal_s, 3e-6);
  EXPECT_NEAR(time.expected_s, 3e-6, 1e-9);
}

TEST(ExpectedTime, AKernelThatDoesNothingTakesTheGpusOwnTimeAndNotALaunch) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table("*,gpu,kernel_us,2\nTest,gpu,kernel_us,1.5\n*,layer_norm,launch_us,4\n");
  const ExpectedTimes model(gpu, calibration);
  EXPECT_NEAR(model.Of({.kind = OperatorKind::kElementwise, .bytes = 4}).expected_s, 1.5e-6, 1e-9);
  EXPECT_DOUBLE_EQ(model.Of({.kind = OperatorKind::kElementwise, .bytes = 4}).ideal_s, 1.5e-6);
  EXPECT_NEAR(model.Of({.kind = OperatorKind::kLayerNorm, .rows = 1, .cols = 1, .bytes = 4}).expected_s, 4e-6, 1e-9);
}

TEST(ExpectedTime, OperandsThatTheKernelBeforeLeftInTheL2AreReadFromThere) {
  Gpu gpu = SomeGpu();
  gpu.boost_hz = 1e9;  // 64 bytes a cycle of 10 SMs: 640 GB/s
  const Calibration calibration = Table("*,gpu,kernel_us,0\n*,gpu,l2_share,0.5\n");
  const ExpectedTimes model(gpu, calibration);
  const auto seconds = [&](double bytes) {
    return model.Of({.kind = OperatorKind::kElementwise, .bytes = bytes}).expected_s;
  };
  EXPECT_NEAR(seconds(1e6), 1e6 / 320e9, 1e-12);                // all of it fits
  EXPECT_NEAR(seconds(2e6), 1e6 / 320e9 + 1e6 / 100e9, 1e-12);  // half of it is gone
  EXPECT_NEAR(seconds(9e6), 9e6 / 100e9, 1e-12);                // from memory
  // What the cache does not have moves from and to DRAM, no faster than its bandwidth.
  for (const double bytes : {1e3, 1e6, 2e6, 9e6}) {
    const ExpectedTime time = model.Of({.kind = OperatorKind::kElementwise, .bytes = bytes});
    EXPECT_DOUBLE_EQ(time.dram_bytes, time.expected_s * 100e9);
    EXPECT_DOUBLE_EQ(time.ideal_s, time.expected_s);
  }
  EXPECT_DOUBLE_EQ(model.FromDram(9e6), 9e6);
}

TEST(ExpectedTime, ElementsInAnotherOrderAreTakenOneByOne) {
  Gpu gpu = SomeGpu();
  gpu.boost_hz = 1e9;
  const Calibration calibration = Table("*,gpu,kernel_us,0\n*,elementwise,elements_per_clock,2\n");
  const ExpectedTimes model(gpu, calibration);
  Operator copy{.kind = OperatorKind::kOther, .element_bytes = 2, .rows = 1e6, .cols = 1, .bytes = 4e6};
  EXPECT_NEAR(model.Of(copy).expected_s, 4e6 / 100e9, 1e-12);
  copy.kind = OperatorKind::kReordering;  // 2 a cycle of 10 SMs: 20 G/s
  EXPECT_NEAR(model.Of(copy).expected_s, 1e6 / 20e9, 1e-12);
}

TEST(ExpectedTime, ProductsWhoseRowsAreNotAlignedMoveTheirElementsOneByOne) {
  Gpu gpu = SomeGpu();
  gpu.boost_hz = 1e9;
  const Calibration calibration =
      Table("*,linear_tensor,launch_us,0\n*,linear_tensor,memory,1000\n*,linear_tensor,elements_per_clock,1\n");
  const ExpectedTimes model(gpu, calibration);
  Operator op{.kind = OperatorKind::kProduct, .precision = Precision::kFp16Tensor, .element_bytes = 2};
  op.m = 4096, op.k = 64, op.n = 4096;
  const double aligned = model.Of(op).expected_s;
  op.n = 4095;  // the right operand's rows and the result's
  const double elements_s = (64.0 * 4095 + 4096.0 * 4095) / 10e9;
  EXPECT_GT(elements_s, aligned);
  EXPECT_NEAR(model.Of(op).expected_s, elements_s, 0.05 * elements_s);
}

TEST(ExpectedTime, ACausalAttentionOfManyTokensTakesHalf) {
  Gpu gpu = SomeGpu();
  const Calibration calibration = Table("*,attention,launch_us,0\n*,attention,rate,0.4\n");
  const ExpectedTimes model(gpu, calibration);
  Operator op{.kind = OperatorKind::kAttention, .precision = Precision::kFp16Tensor, .element_bytes = 2};
  op.batch = 16, op.m = 12800, op.n = 12800, op.k = 64;
  op.flop = 4 * op.batch * op.m * op.n * op.k;
  const double plain = model.Of(op).expected_s;
  EXPECT_NEAR(plain, op.flop / 1.6e12, 1e-3 * plain);
  op.kind = OperatorKind::kCausalAttention;
  op.flop *= (op.m + 1) / (2 * op.m);
  EXPECT_NEAR(model.Of(op).expected_s, plain / 2, 0.02 * plain);
  EXPECT_LT(model.Of(op).ideal_s,
            0.51 * op.flop * 2 * op.m / (op.m + 1) / gpu.peak[static_cast<size_t>(op.precision)])
      << "what the kernel skips is no bound";
}

TEST(ExpectedTime, SmallMatricesOfABatchAreBlocksOfOneWarp) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration =
      Table("*,bmm_tensor,launch_us,0\n*,bmm_tensor,memory,1000\n*,bmm_tensor,block_ns,1000\n");
  const ExpectedTimes model(gpu, calibration);
  Operator op{.kind = OperatorKind::kProduct, .precision = Precision::kFp16Tensor, .element_bytes = 2};
  op.shared_right = false, op.m = 8, op.k = 8, op.n = 8;
  op.batch = 100000;  // 10 ms of blocks: 100000 over 10 SMs
  const double many = model.Of(op).expected_s;
  const Calibration without = Table("*,bmm_tensor,launch_us,0\n*,bmm_tensor,memory,1000\n");
  const auto overlapped = [](double a, double b) { return std::pow(std::pow(a, 4) + std::pow(b, 4), 0.25); };
  EXPECT_NEAR(many, overlapped(ExpectedTimes(gpu, without).Of(op).expected_s, 10e-3), 1e-6);
  op.n = 64;  // four tiles of 16 columns
  EXPECT_NEAR(model.Of(op).expected_s, overlapped(ExpectedTimes(gpu, without).Of(op).expected_s, 40e-3), 1e-6);
  for (const double larger : {17.0, 65.0}) {  // there are faster kernels
    op.m = larger == 17 ? 17 : 8, op.n = larger;
    EXPECT_DOUBLE_EQ(model.Of(op).expected_s, ExpectedTimes(gpu, without).Of(op).expected_s) << larger;
  }
  op.m = op.n = 8, op.precision = Precision::kFp32;
  EXPECT_DOUBLE_EQ(model.Of(op).expected_s, ExpectedTimes(gpu, without).Of(op).expected_s);
}

TEST(ExpectedTime, AttentionInFp32RunsOnCudaCoresOrAsThreeProductsOfTf32) {
  Gpu gpu = SomeGpu();
  const Calibration calibration =
      Table("*,attention,launch_us,0\n*,attention,rate,0.5\n*,attention,fma_rate,0.8\n*,attention,split_rate,0.75\n");
  Operator op{.kind = OperatorKind::kAttention, .precision = Precision::kFp32, .element_bytes = 4};
  op.batch = 16, op.m = 12800, op.n = 12800, op.k = 64;
  op.flop = 4 * op.batch * op.m * op.n * op.k;
  const auto seconds = [&] { return ExpectedTimes(gpu, calibration).Of(op).expected_s; };
  EXPECT_NEAR(seconds(), op.flop / 0.8e12, 1e-3 * seconds());  // no tensor cores for it: 1 TFLOP/s
  double& tf32 = gpu.peak[static_cast<size_t>(Precision::kTf32Tensor)];
  tf32 = 2e12;  // as halves on a consumer board: a third is less than CUDA cores have
  EXPECT_NEAR(seconds(), 3 * op.flop / (0.75 * 2e12), 1e-3 * seconds());
  tf32 = 8e12;  // FP32's roof is a bound for FLOP in FP32
  EXPECT_DOUBLE_EQ(seconds(), op.flop / 1e12);
  op.precision = Precision::kTf32Tensor;  // a program that allows TF32 gets the same kernel
  EXPECT_NEAR(seconds(), 3 * op.flop / (0.75 * 8e12), 1e-3 * seconds());
  op.precision = Precision::kFp16Tensor, op.element_bytes = 2;
  EXPECT_NEAR(seconds(), op.flop / 2e12, 1e-3 * seconds());
}

// Tiles of 128x128 only, no overhead: a product of 1280 x 128 x 128 is 10 tiles on 10 SMs, one wave at the whole
// rate.
constexpr char kSquareTiles[] =
    "*,bmm_fp32,least_tile_rows,128\n*,bmm_fp32,least_tile_cols,128\n*,bmm_fp32,launch_us,0\n*,bmm_fp32,memory,"
    "1000\n";

Operator Batch(double batch) {
  return {.kind = OperatorKind::kProduct, .batch = batch, .m = 128, .k = 1024, .n = 128, .shared_right = false};
}

TEST(ExpectedTime, AProductTakesWholeWavesOfTiles) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table(kSquareTiles);
  const ExpectedTimes model(gpu, calibration);
  const double tile_s = 2.0 * 128 * 128 * 1024 / (1e12 / 10);
  EXPECT_NEAR(model.Of(Batch(10)).expected_s, tile_s, 1e-3 * tile_s);
  EXPECT_NEAR(model.Of(Batch(20)).expected_s, 2 * tile_s, 1e-3 * tile_s);
  // 11 tiles would be two waves. Split in eight, 88 parts are nine waves of an eighth; the parts are written and
  // summed, by another kernel.
  const double split_s = 9.0 / 8 * tile_s + 11 * 128.0 * 128 * 4 * (8 + 1) / 100e9 + 3e-6;
  EXPECT_NEAR(model.Of(Batch(11)).expected_s, split_s, 1e-3 * tile_s);
}

TEST(ExpectedTime, ATileIsComputedWholeHoweverLittleOfItIsWanted) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table(kSquareTiles);
  const ExpectedTimes model(gpu, calibration);
  Operator narrow = Batch(10);
  narrow.n = 2;
  EXPECT_NEAR(model.Of(narrow).expected_s, model.Of(Batch(10)).expected_s, 1e-6);
  EXPECT_LT(model.Of(narrow).ideal_s, model.Of(Batch(10)).ideal_s / 5);
}

TEST(ExpectedTime, TheTilesEdgeCostsPartOfTheRate) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table(std::string(kSquareTiles) + "*,bmm_fp32,tile_edge,16\n");
  const double tile_s = 2.0 * 128 * 128 * 1024 / (1e12 / 10);
  // 128*128 / (128*128 + 16*128) = 8/9; a tile of 256x128 wastes half and is no better.
  EXPECT_NEAR(ExpectedTimes(gpu, calibration).Of(Batch(10)).expected_s, tile_s * 9 / 8, 1e-3 * tile_s);
}

TEST(ExpectedTime, APowerLimitIsFeltByLongKernelsOnly) {
  Gpu gpu = SomeGpu();
  gpu.dram_bytes_per_s = 1e15;
  const Calibration calibration = Table(
      std::string(kSquareTiles) + "*,gpu,kernel_us,0\n*,fp32,share,0.5\n*,fp32,burst_share,1\n*,fp32,burst_ms,1\n");
  const ExpectedTimes model(gpu, calibration);
  Operator small = Batch(10), large = Batch(10);
  small.k = 8;  // 2.6 us at the peak
  large.k = 1 << 24;
  EXPECT_NEAR(model.Of(small).expected_s, 2.0 * 128 * 128 * 8 / 1e11, 0.03 * 2.6e-6);
  EXPECT_NEAR(model.Of(large).expected_s, 2 * 2.0 * 128 * 128 * (1 << 24) / 1e11, 0.01);
}

TEST(ExpectedTime, ALinearLayersBatchIsRowsOfOneProduct) {
  const Gpu gpu = SomeGpu();
  const ExpectedTimes model(gpu, Calibration::Shipped());
  const Operator rows{.kind = OperatorKind::kProduct, .m = 4096, .k = 512, .n = 512};
  const Operator batch{.kind = OperatorKind::kProduct, .batch = 8, .m = 512, .k = 512, .n = 512};
  EXPECT_DOUBLE_EQ(model.Of(rows).expected_s, model.Of(batch).expected_s);
  EXPECT_DOUBLE_EQ(model.Of(rows).ideal_s, model.Of(batch).ideal_s);
}

Operator Conv(double images, double channels, double side, double kernel) {
  return {.kind = OperatorKind::kConvolution,
          .images = images,
          .c_in = channels,
          .c_out = channels,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .h = side,
          .w = side,
          .out_h = side,
          .out_w = side};
}

// Kernels that halves of one channel run on have one size of block.
TEST(ExpectedTime, OneChannelOfHalvesPaysForAWholeBlock) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table(
      "*,conv_single,rate,0.5\n*,conv_single,launch_us,0\n*,conv_single_wgrad,rate,0.5\n"
      "*,conv_single_wgrad,launch_us,0\n*,conv_single,memory,1000\n*,conv_single_wgrad,memory,1000\n");
  const ExpectedTimes model(gpu, calibration);
  Operator op = Conv(8, 1, 512, 3);
  op.precision = Precision::kFp16Tensor;
  op.element_bytes = 2;
  const auto seconds = [&](Pass pass, double filters) {
    Operator one = op;
    one.pass = pass, one.c_out = filters;
    return model.Of(one).expected_s;
  };
  const double filter_s = 2.0 * 8 * 512 * 512 * 9 / 0.5e12;
  EXPECT_NEAR(seconds(Pass::kForward, 16), 64 * filter_s, 1e-3 * filter_s);
  EXPECT_NEAR(seconds(Pass::kForward, 64), 64 * filter_s, 1e-3 * filter_s);
  EXPECT_NEAR(seconds(Pass::kForward, 65), 128 * filter_s, 1e-3 * filter_s);
  // The weight's gradient takes the 9 taps for 16, and the filters as they are.
  EXPECT_NEAR(seconds(Pass::kWgrad, 16), 16 * filter_s * 16 / 9, 1e-3 * filter_s);
}

TEST(ExpectedTime, AThreeByThreeConvolutionMayBeFasterThanItsRoofline) {
  const Gpu* v100 = FindGpu("V100-PCIe");
  ASSERT_NE(v100, nullptr);
  const ExpectedTimes model(*v100, Calibration::Shipped());
  const ExpectedTime winograd = model.Of(Conv(128, 256, 28, 3));
  EXPECT_TRUE(winograd.winograd);
  EXPECT_LT(winograd.expected_s, winograd.ideal_s);
  const ExpectedTime gemm = model.Of(Conv(128, 256, 28, 5));
  EXPECT_FALSE(gemm.winograd);
  EXPECT_GT(gemm.expected_s, gemm.ideal_s);
}

TEST(ExpectedTime, NothingButWinogradIsFasterThanTheRoofline) {
  for (const Gpu& gpu : AllGpus()) {
    if (!HasEstimates(gpu)) continue;
    const ExpectedTimes model(gpu, Calibration::Shipped());
    for (const Pass pass : {Pass::kForward, Pass::kDgrad, Pass::kWgrad}) {
      for (const double channels : {64.0, 512.0, 2048.0}) {
        for (const double kernel : {1.0, 5.0}) {
          Operator op = Conv(256, channels, 28, kernel);
          op.pass = pass;
          const ExpectedTime time = model.Of(op);
          EXPECT_GE(time.expected_s, time.ideal_s) << gpu.name << " " << channels << " " << kernel;
        }
      }
    }
    for (const double side : {512.0, 4096.0, 16384.0}) {
      const ExpectedTime time = model.Of({.kind = OperatorKind::kProduct, .m = side, .k = side, .n = side});
      EXPECT_GE(time.expected_s, time.ideal_s) << gpu.name << " " << side;
    }
  }
}

TEST(ExpectedTime, ConvolutionsOfHalvesRunOnTensorCoresWhereChannelsFillThem) {
  Operator op = Conv(8, 64, 56, 3);
  op.precision = Precision::kFp16Tensor, op.element_bytes = 2;
  EXPECT_EQ(FamilyOf(op), Family::kConvTensor);
  op.pass = Pass::kWgrad;
  EXPECT_EQ(FamilyOf(op), Family::kConvTensorWgrad);
  op.c_in = 3;
  EXPECT_EQ(FamilyOf(op), Family::kConvFp32Wgrad);
  op.c_in = 64, op.groups = 64;
  EXPECT_EQ(FamilyOf(op), Family::kConvDepthwise);
}

TEST(ExpectedTime, ASecondReadingOfLongRowsComesFromDram) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration =
      Table("*,layer_norm,share,1\n*,layer_norm,reread,1\n*,layer_norm,rows_per_sm,10\n*,layer_norm,launch_us,0\n");
  const ExpectedTimes model(gpu, calibration);
  const auto seconds = [&](double cols) {
    return model.Of({.kind = OperatorKind::kLayerNorm, .rows = 1000, .cols = cols, .bytes = 8000 * cols}).expected_s;
  };
  // 10 SMs x 10 rows x 2 x 4 bytes x 1000 columns = 0.8 MB fit into the cache; 4000 columns are 3.2 MB and do not.
  EXPECT_NEAR(seconds(1000), 8e6 / 100e9, 1e-12);
  EXPECT_NEAR(seconds(4000), (32e6 + 16e6) / 100e9, 1e-12);
}

// The machine has 1 MB of L2: 0.4 MB that are read and written are still there for the second reading, 4 MB are not.
TEST(ExpectedTime, ABatchNormReadsTwiceWhereTheL2IsTooSmall) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table("*,batch_norm,launch_us,0\n");
  const ExpectedTimes model(gpu, calibration);
  const auto seconds = [&](double operand) {
    return model.Of({.kind = OperatorKind::kBatchNorm, .bytes = 2 * operand, .reread_bytes = operand}).expected_s;
  };
  EXPECT_NEAR(seconds(0.4e6), 0.8e6 / 100e9, 1e-9);
  EXPECT_NEAR(seconds(0.75e6), (1.5e6 + 0.5 * 0.75e6) / 100e9, 1e-9);
  EXPECT_NEAR(seconds(4e6), 12e6 / 100e9, 1e-9);
}

TEST(ExpectedTime, ABatchNormOfFewChannelsHasFewBlocks) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table("*,batch_norm,launch_us,0\n*,batch_norm,block_GBps,1\n");
  const ExpectedTimes model(gpu, calibration);
  const auto seconds = [&](double channels) {
    return model.Of({.kind = OperatorKind::kBatchNorm, .rows = channels, .bytes = 80e6}).expected_s;
  };
  EXPECT_NEAR(seconds(8), 80e6 / 8e9, 1e-6);         // 8 blocks of 1 GB/s
  EXPECT_NEAR(seconds(10'000), 80e6 / 100e9, 1e-6);  // the bandwidth
  EXPECT_NEAR(seconds(0), 80e6 / 100e9, 1e-9);       // not so reduced
}

// Without compute and beside its own traffic, what is left is the launch, and transposing.
TEST(ExpectedTime, ConvolutionsInTf32AreTransposedUnlessTheyAreAProductAsTheyLie) {
  Gpu gpu = SomeGpu();
  gpu.peak[static_cast<size_t>(Precision::kTf32Tensor)] = 1e18;
  const Calibration calibration = Table("*,conv_tf32,memory,1e9\n");
  const ExpectedTimes model(gpu, calibration);
  const auto seconds = [&](double side, double out, double kernel) {
    Operator op = Conv(8, 64, side, kernel);
    op.precision = Precision::kTf32Tensor;
    op.out_h = op.out_w = out;
    return model.Of(op).expected_s;
  };
  const auto transposing = [](double side, double out, double kernel) {
    return 2 * 4 * (8 * 64 * (side * side + out * out) + 64 * 64 * kernel * kernel) / 100e9;
  };
  EXPECT_NEAR(seconds(56, 56, 1), transposing(56, 56, 1) / 2, 1e-8);      // its own traffic
  EXPECT_NEAR(seconds(57, 57, 1), 12e-6 + transposing(57, 57, 1), 1e-8);  // planes begin anywhere
  EXPECT_NEAR(seconds(56, 28, 1), 12e-6 + transposing(56, 28, 1), 1e-8);  // strided
  EXPECT_NEAR(seconds(56, 56, 3), 12e-6 + transposing(56, 56, 3), 1e-8);
}

TEST(ExpectedTime, ConvolutionsOfChannelsLastAreNotTransposed) {
  Gpu gpu = SomeGpu();
  gpu.peak[static_cast<size_t>(Precision::kFp16Tensor)] = 1e18;
  const Calibration calibration = Table("*,conv_tensor,memory,1e9\n*,conv_tensor,launch_us,0\n");
  const ExpectedTimes model(gpu, calibration);
  Operator op = Conv(8, 64, 56, 3);
  op.precision = Precision::kFp16Tensor, op.element_bytes = 2;
  EXPECT_NEAR(model.Of(op).expected_s, 9e-6 + 2 * 2.0 * (2 * 8 * 64 * 56 * 56 + 64 * 64 * 9) / 100e9, 1e-8);
  op.channels_last = true;
  EXPECT_NEAR(model.Of(op).expected_s, 2.0 * (2 * 8 * 64 * 56 * 56 + 64 * 64 * 9) / 100e9, 1e-8);
}

TEST(ExpectedTime, PatchesOfFewChannelsAreGatheredByEachBlockOfFilters) {
  Gpu gpu = SomeGpu();
  gpu.boost_hz = 1e9;
  const Calibration calibration = Table("*,conv_few,launch_us,0\n*,conv_few,elements_per_clock,1\n");
  const ExpectedTimes model(gpu, calibration);
  Operator op = Conv(4, 3, 224, 16);
  op.precision = Precision::kFp16Tensor, op.element_bytes = 2;
  op.c_out = 768, op.out_h = op.out_w = 14;
  // 8 channels of each pixel of an image, six times; one a cycle of 10 SMs.
  const double gathered_s = 4 * 8.0 * 224 * 224 * 6 / 10e9;
  EXPECT_NEAR(model.Of(op).expected_s, gathered_s, 1e-3 * gathered_s);
  op.c_in = 8;  // as many as tensor cores' kernels load at once
  EXPECT_LT(model.Of(op).expected_s, gathered_s);
}

TEST(ExpectedTime, AProductAsItLiesGathersNothing) {
  Gpu gpu = SomeGpu();
  gpu.peak[static_cast<size_t>(Precision::kFp32)] = 1e18;
  const Calibration calibration = Table(
      "*,conv_fp32,launch_us,0\n*,conv_fp32,implicit_gemm_input,2\n*,conv_fp32_dgrad,launch_us,0\n"
      "*,conv_fp32_dgrad,implicit_gemm_input,2\n*,conv_fp32_wgrad,launch_us,0\n"
      "*,conv_fp32_wgrad,implicit_gemm_input,2\n");
  const ExpectedTimes model(gpu, calibration);
  const auto seconds = [&](Pass pass, double out) {
    Operator op = Conv(8, 64, 56, 1);
    op.pass = pass;
    op.out_h = op.out_w = out;
    return model.Of(op).expected_s;
  };
  const double whole = 4.0 * 8 * 64 * 56 * 56, quarter = whole / 4, filter = 4.0 * 64 * 64, bandwidth = 100e9;
  EXPECT_NEAR(seconds(Pass::kForward, 56), (2 * whole + filter) / bandwidth, 1e-8);
  EXPECT_NEAR(seconds(Pass::kDgrad, 56), (2 * whole + filter) / bandwidth, 1e-8);
  EXPECT_NEAR(seconds(Pass::kWgrad, 56), (3 * whole + filter) / bandwidth, 1e-8);
  EXPECT_NEAR(seconds(Pass::kForward, 28), (2 * whole + quarter + filter) / bandwidth, 1e-8);  // strided
}

TEST(ExpectedTime, TheIntervalIsTheFamilysAndWiderForAGpuWithoutTimes) {
  const Calibration calibration = Table(
      "*,softmax,low_tiny,0.5\n*,softmax,high_tiny,2\n"
      "Test,softmax,low_tiny,0.9\nTest,softmax,high_tiny,1.1\nTest,softmax,rows,100\n");
  Gpu known = SomeGpu(), other = SomeGpu();
  other.name = "Other";
  const Operator op{.kind = OperatorKind::kSoftmax, .rows = 10, .cols = 10, .bytes = 800};
  const ExpectedTime a = ExpectedTimes(known, calibration).Of(op), b = ExpectedTimes(other, calibration).Of(op);
  EXPECT_EQ(a.calibrated, Calibrated::kGpu);
  EXPECT_EQ(b.calibrated, Calibrated::kFamily);
  EXPECT_DOUBLE_EQ(a.low_s, 0.9 * a.expected_s);
  EXPECT_DOUBLE_EQ(a.high_s, 1.1 * a.expected_s);
  EXPECT_DOUBLE_EQ(b.high_s, 2 * b.expected_s);
}

TEST(ExpectedTime, ScalesOfRecordedNetworksAreOfAKindOfOperator) {
  Gpu gpu = SomeGpu();
  gpu.chip = "Chip";
  const auto times = [&](const Operator& op) {  // that the work takes; the launch beside it takes what it did
    const auto work = [&](const Calibration& calibration) {
      const ExpectedTime time = ExpectedTimes(gpu, calibration).Of(op);
      return time.expected_s - time.launch_s;
    };
    return work(Table("Chip,pool_backward,scale,5\n*,batch_norm,scale_native,2\nChip,linear_tensor,scale_tf32,3\n")) /
           work(Table(""));
  };
  Operator pool{.kind = OperatorKind::kPool, .pass = Pass::kDgrad, .bytes = 1e8};
  EXPECT_NEAR(times(pool), 5, 1e-6) << "all boards of the chip have it";
  pool.pass = Pass::kForward;
  EXPECT_NEAR(times(pool), 1, 1e-6);
  Operator norm{.kind = OperatorKind::kBatchNorm, .bytes = 1e8};
  EXPECT_NEAR(times(norm), 1, 1e-6);
  norm.kind = OperatorKind::kBatchNormByTorch;
  EXPECT_NEAR(times(norm), 2, 1e-6);
  Operator product{
      .kind = OperatorKind::kProduct, .precision = Precision::kTf32Tensor, .m = 4096, .k = 4096, .n = 4096};
  EXPECT_EQ(ScaleKindOf(product), ScaleKind::kTf32);
  product.n = 4095;
  EXPECT_EQ(ScaleKindOf(product), ScaleKind::kMisaligned) << "4 bytes an element";
  product.precision = Precision::kFp16Tensor, product.element_bytes = 2;
  EXPECT_EQ(ScaleKindOf(product), ScaleKind::kNarrow);
  product.n = 4094;
  EXPECT_EQ(ScaleKindOf(product), ScaleKind::kMisaligned);
}

TEST(ExpectedTime, ProductsComputeLongerWhereRowsBeginAtOddPlaces) {
  const Gpu gpu = SomeGpu();
  const auto seconds = [&](std::string table, double n) {
    const Calibration calibration = Table("*,gpu,kernel_us,0\n*,linear_tensor,launch_us,0\n" + table);
    return ExpectedTimes(gpu, calibration)
        .Of({.kind = OperatorKind::kProduct,
             .precision = Precision::kFp16Tensor,
             .element_bytes = 2,
             .m = 8192,
             .k = 8192,
             .n = n})
        .expected_s;
  };
  const std::string wide = "*,linear_tensor,misaligned,1\n", narrow = "*,linear_tensor,misaligned_narrow,4\n";
  const double usual = seconds(wide + narrow, 8192);
  EXPECT_NEAR(seconds(wide + narrow, 8190) / usual, 2, 0.01);
  EXPECT_NEAR(seconds(wide + narrow, 8191) / usual, 5, 0.01);
  EXPECT_NEAR(seconds(wide, 8191) / usual, 2, 0.01) << "nothing is known of odd rows";
}

// 2^20 steps of one tile: parts of them run on SMs side by side, and each waits for its own only.
TEST(ExpectedTime, PartsOfALongInnerDimensionWaitForTheirOwnSteps) {
  const Gpu gpu = SomeGpu();
  const auto seconds = [&](double step_ns) {
    const Calibration calibration = Table("*,linear_tensor,step_ns," + std::to_string(step_ns) + "\n");
    return ExpectedTimes(gpu, calibration)
        .Of({.kind = OperatorKind::kProduct,
             .precision = Precision::kFp16Tensor,
             .element_bytes = 2,
             .m = 64,
             .k = 1 << 20,
             .n = 64})
        .expected_s;
  };
  const double all_steps_s = (1 << 20) / 32 * 1e-6;
  EXPECT_NEAR(seconds(1000), all_steps_s / 8, all_steps_s / 80) << "8 parts on 10 SMs";
}

TEST(ExpectedTime, ALayerNormHasABlockARow) {
  const Gpu gpu = SomeGpu();
  const Calibration calibration = Table("*,layer_norm,block_ns,500\n*,layer_norm_backward,block_ns,1500\n");
  const auto seconds = [&](Pass pass, double rows, double cols, double bytes) {
    return ExpectedTimes(gpu, calibration)
        .Of({.kind = OperatorKind::kLayerNorm, .pass = pass, .rows = rows, .cols = cols, .bytes = bytes})
        .expected_s;
  };
  const double blocks_s = 60'000 * 500e-9 / gpu.sm_count;
  EXPECT_NEAR(seconds(Pass::kForward, 60'000, 8, 1), blocks_s, 0.01 * blocks_s);
  // Reading takes as long: they overlap in part.
  EXPECT_NEAR(seconds(Pass::kForward, 60'000, 8, blocks_s * 100e9), std::sqrt(2) * blocks_s, 0.01 * blocks_s);
  EXPECT_NEAR(seconds(Pass::kDgrad, 60'000, 8, 1), 3 * blocks_s, 0.01 * blocks_s);
  // Of more than 65,536 short rows the weights' gradients are added up by many blocks.
  EXPECT_NEAR(seconds(Pass::kDgrad, 120'000, 8, 1), 2 * blocks_s, 0.01 * blocks_s);
  EXPECT_NEAR(seconds(Pass::kDgrad, 120'000, 1024, 1), 6 * blocks_s, 0.01 * blocks_s);
}

TEST(ExpectedTime, AGpuWithoutTheUnitHasNoTime) {
  Gpu gpu = SomeGpu();
  const Calibration calibration;
  const ExpectedTime time =
      ExpectedTimes(gpu, calibration)
          .Of({.kind = OperatorKind::kProduct, .precision = Precision::kBf16Tensor, .m = 8, .k = 8, .n = 8});
  EXPECT_EQ(time.expected_s, 0);
}

}  // namespace
}  // namespace rfinject::cli
