#include "operators/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

using rfinject::testing::OpText;

const Gpu& V100() { return *FindGpu("V100-SXM2-16GB"); }
const Gpu& A100() { return *FindGpu("A100-SXM4-40GB"); }

Cost Estimate(const std::string& text, const Gpu& gpu, PrecisionPolicy policy = {}, bool children_counted = false) {
  const OpText op(text);
  OpCall call = op.call();
  call.children_counted = children_counted;
  return EstimateCost(call, gpu, policy);
}

uint64_t Executed(const Cost& cost, Precision precision) {
  return cost.executed_flop[static_cast<size_t>(precision)];
}

// The check values for batch 256: conv1 and layer1.0.conv1 of ResNet-18.
constexpr const char* kConv1 =
    "aten::convolution ( f32[256,3,224,224] f32[64,3,7,7] _ I2,2 I3,3 I1,1 b0 I0,0 i1 ) -> ( f32[256,64,112,112] )";
constexpr const char* kLayer1Conv1 =
    "aten::convolution ( f32[256,64,56,56] f32[64,64,3,3] _ I1,1 I1,1 I1,1 b0 I0,0 i1 ) -> ( f32[256,64,56,56] )";

TEST(CostTest, ConvolutionsByHand) {
  const Cost conv1 = Estimate(kConv1, V100());
  EXPECT_TRUE(conv1.kernel);
  EXPECT_EQ(conv1.model_flop, 60423143424u);
  EXPECT_EQ(conv1.compulsory_bytes, 976261888u);
  EXPECT_EQ(conv1.dram_bytes, conv1.compulsory_bytes);
  EXPECT_EQ(Executed(conv1, Precision::kFp32), conv1.model_flop);
  // 60.42 GFLOP at 15.7 TFLOP/s is longer than 976 MB at 900 GB/s.
  EXPECT_EQ(conv1.time_ns, 3848608u);

  const Cost layer1 = Estimate(kLayer1Conv1, V100());
  EXPECT_EQ(layer1.model_flop, 59190018048u);
  EXPECT_EQ(layer1.compulsory_bytes, 411189248u);
}

TEST(CostTest, CopiesToAndFromTheHostTakeTheirBytesOverPcie) {
  const OpText op("aten::copy_ ( f32[1000000]@1 f32[1000000]@2 b0 ) -> ( f32[1000000]@1 )");
  const Cost within = EstimateCost(op.call(), A100(), {});
  EXPECT_EQ(within.pcie_bytes, 0u);
  EXPECT_EQ(within.dram_bytes, 8'000'000u);
  OpCall call = op.call();
  call.crosses_devices = true;
  const Cost across = EstimateCost(call, A100(), {});
  EXPECT_EQ(across.pcie_bytes, 4'000'000u);
  EXPECT_EQ(across.dram_bytes, 4'000'000u) << "the other side is the host's memory";
  EXPECT_EQ(across.time_ns, static_cast<uint64_t>(std::ceil(4e6 / A100().pcie_bytes_per_s * 1e9)));
  EXPECT_EQ(EstimateTransferNs(1, A100().nvlink_bytes_per_s), kLaunchFloorNs);
  // What takes a number from the host is no transfer.
  const OpText add("aten::add ( f32[1000000]@1 f64[]@2 i1 ) -> ( f32[1000000]@3 )");
  call = add.call();
  call.crosses_devices = true;
  EXPECT_EQ(EstimateCost(call, A100(), {}).pcie_bytes, 0u);
}

TEST(CostTest, Tf32PolicyMovesConvolutionsOfA100) {
  const Cost tf32 = Estimate(kConv1, A100());
  EXPECT_EQ(Executed(tf32, Precision::kTf32Tensor), 60423143424u);
  EXPECT_EQ(Executed(tf32, Precision::kFp32), 0u);
  // At 156 TFLOP/s the memory is the slower part.
  EXPECT_EQ(tf32.time_ns, static_cast<uint64_t>(std::ceil(976261888 / 1555.0)));
  const Cost fp32 = Estimate(kConv1, A100(), {.convolution_tf32 = false, .matmul_tf32 = false});
  EXPECT_EQ(Executed(fp32, Precision::kFp32), 60423143424u);
  EXPECT_GT(fp32.time_ns, tf32.time_ns);
}

TEST(CostTest, ViewsAndBookkeepingCostNothing) {
  for (const char* text :
       {"aten::view ( f32[10]@1 I2,5 ) -> ( f32[2,5]@1 )", "aten::t ( f32[3,4]@1 ) -> ( f32[4,3]@1 )",
        "aten::expand ( f32[1,4]@1 I3,4 b0 ) -> ( f32[3,4]@1/4 )", "aten::empty ( I10 ) -> ( f32[10] )",
        "aten::reshape ( f32[10]@1 I2,5 ) -> ( f32[2,5]@1 )", "aten::to ( f32[10]@1 i6 b0 b0 _ ) -> ( f32[10]@1 )",
        "aten::contiguous ( f32[10]@1 i0 ) -> ( f32[10]@1 )", "aten::dropout ( f32[10]@1 d0.5 b0 ) -> ( f32[10]@1 )",
        "aten::size ( f32[10]@1 i0 ) -> ( i10 )", "aten::item ( f32[]@1 ) -> ( d1 )",
        "mine::view ( f32[10]@1 ) -> ( f32[5]@1 )", "aten::squeeze_ ( f32[1,4]@1 ) -> ( f32[4]@1 )",
        "c10d::allreduce_ ( { f32[1000] } ) -> ( )", "autograd::engine::evaluate_function: ( ) -> ( )"}) {
    const Cost cost = Estimate(text, V100());
    EXPECT_FALSE(cost.kernel) << text;
    EXPECT_EQ(cost.time_ns, 0u);
  }
}

TEST(CostTest, TransparentOperatorsCountOnlyWhatIsNotCountedInside) {
  const char* clone = "aten::clone ( f32[10]@1 _ ) -> ( f32[10]@2 )";
  EXPECT_FALSE(Estimate(clone, V100(), {}, true).kernel);
  EXPECT_TRUE(Estimate(clone, V100(), {}, false).kernel);
  // An atomic one is a kernel whatever ran inside.
  EXPECT_TRUE(Estimate(kConv1, V100(), {}, true).kernel);
}

TEST(CostTest, EmptyTensorsLaunchNothing) {
  EXPECT_FALSE(Estimate("aten::add ( f32[0] f32[0] i1 ) -> ( f32[0] )", V100()).kernel);
}

TEST(CostTest, SmallKernelsTakeTheLaunchFloor) {
  const Cost cost = Estimate("aten::add ( f32[10] f32[10] i1 ) -> ( f32[10] )", V100());
  EXPECT_TRUE(cost.kernel);
  EXPECT_EQ(cost.time_ns, kLaunchFloorNs);
}

TEST(CostTest, UnknownOperatorsCostTheirBytes) {
  const Cost cost = Estimate("mine::op ( f32[1000000] ) -> ( f32[1000000] )", V100());
  EXPECT_TRUE(cost.kernel);
  EXPECT_FALSE(cost.known);
  EXPECT_EQ(cost.model_flop, 0u);
  EXPECT_EQ(cost.compulsory_bytes, 8000000u);
  EXPECT_EQ(cost.time_ns, 8889u);
}

TEST(CostTest, AttentionUsesTensorCoresAndCudaCores) {
  const Cost cost = Estimate(
      "aten::_scaled_dot_product_flash_attention ( f16[8,12,197,64] f16[8,12,197,64] f16[8,12,197,64] d0.0 b0 b0 ) "
      "-> "
      "( f16[8,12,197,64] f32[8,12,197] )",
      A100());
  EXPECT_EQ(Executed(cost, Precision::kFp16Tensor), 4u * 8 * 12 * 197 * 197 * 64);
  EXPECT_EQ(Executed(cost, Precision::kFp32), 4u * 8 * 12 * 197 * 197);
}

TEST(CostTest, ProductsAreToldFromTheOtherFlop) {
  const auto products = [](const char* text) {
    const rfinject::testing::OpText op(text);
    return EstimateCost(op.call(), *FindGpu("A100-SXM4-40GB"), {}).product_flop;
  };
  EXPECT_EQ(products("aten::addmm ( f32[16] f32[8,32] f32[32,16] i1 i1 ) -> ( f32[8,16] )"), 2u * 8 * 32 * 16);
  EXPECT_EQ(products("aten::gelu ( f32[1000] ? ) -> ( f32[1000] )"), 0u);
  // On CUDA cores, too: a depthwise convolution.
  EXPECT_EQ(products("aten::convolution ( f32[1,32,8,8] f32[32,1,3,3] _ I I I b0 I i32 ) -> ( f32[1,32,8,8] )"),
            2u * 32 * 64 * 9);
  // A recurrent layer's own launch has what its time steps have not: 7 steps of 3 rows by the inputs' matrix.
  const rfinject::testing::OpText lstm(
      "aten::_cudnn_rnn ( f32[7,3,5] { f32[24,5] f32[24,6] f32[24] f32[24] } i4 _ f32[1,3,6] f32[1,3,6] i2 i6 ) -> ( "
      "f32[7,3,6] f32[1,3,6] f32[1,3,6] u8[10] f32[10] )");
  const Cost cost = EstimateCost(lstm.call(), *FindGpu("A100-SXM4-40GB"), {});
  EXPECT_EQ(cost.product_flop, 2u * 7 * 3 * 24 * 5);
  EXPECT_TRUE(cost.repeated[0].product);
  EXPECT_FALSE(cost.repeated[1].product);
}

TEST(CostTest, TimeIsInfiniteWithoutTheUnit) {
  std::array<uint64_t, kPrecisionCount> flop{};
  flop[static_cast<size_t>(Precision::kFp8Tensor)] = 1;
  EXPECT_EQ(EstimateTimeNs(flop, 0, V100()), UINT64_MAX);
}

// Also where the time is a bit below the floor or above it, which is decided without a division.
TEST(CostTest, TheTimeIsTheFloorOrTheLeastThatTheRateAllows) {
  for (const char* name : {"V100-SXM2-16GB", "A100-SXM4-80GB", "H200-SXM-141GB"}) {
    const Gpu& gpu = *FindGpu(name);
    const double rate = gpu.dram_bytes_per_s;
    const auto takes_less = [rate](uint64_t bytes, uint64_t ns) {
      return static_cast<long double>(bytes) * 1e9L <= static_cast<long double>(ns) * static_cast<long double>(rate);
    };
    const auto at_floor = static_cast<uint64_t>(rate * static_cast<double>(kLaunchFloorNs) / 1e9);
    for (uint64_t bytes = at_floor - 50'000; bytes <= at_floor + 50'000; bytes += 7) {
      const uint64_t ns = EstimateTimeNs({}, bytes, gpu);
      ASSERT_GE(ns, kLaunchFloorNs);
      ASSERT_TRUE(takes_less(bytes, ns)) << name << " " << bytes;
      ASSERT_TRUE(ns == kLaunchFloorNs || !takes_less(bytes, ns - 1)) << name << " " << bytes;
    }
  }
}

// Work over attainable time, by the reference formula: the slowest unit or the memory.
double LeastSeconds(const Cost& cost, const Gpu& gpu) {
  double seconds = static_cast<double>(cost.dram_bytes) / gpu.dram_bytes_per_s;
  for (size_t p = 0; p < kPrecisionCount; ++p) {
    if (cost.executed_flop[p] != 0) {
      seconds = std::max(seconds, static_cast<double>(cost.executed_flop[p]) / gpu.peak[p]);
    }
  }
  return seconds;
}

std::string RandomOp(std::mt19937_64& random) {
  const auto size = [&](double largest) {
    return std::to_string(
        static_cast<uint64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(largest))(random))));
  };
  const char* types[] = {"f16", "bf16", "f32", "f64", "c64", "i64"};
  const std::string type = types[random() % std::size(types)];
  const std::string m = size(1e5), n = size(1e5), k = size(1e4), b = size(64);
  switch (random() % 6) {
    case 0:
      return "aten::mm ( " + type + "[" + m + "," + k + "] " + type + "[" + k + "," + n + "] ) -> ( " + type + "[" +
             m + "," + n + "] )";
    case 1: {
      const std::string side = size(256), in = size(512), out = size(512);
      return "aten::convolution ( " + type + "[" + b + "," + in + "," + side + "," + side + "] " + type + "[" + out +
             "," + in + ",3,3] _ I1,1 I1,1 I1,1 b0 I0,0 i1 ) -> ( " + type + "[" + b + "," + out + "," + side + "," +
             side + "] )";
    }
    case 2:
      return "aten::add ( " + type + "[" + m + "," + n + "] " + type + "[" + n + "] d0.5 ) -> ( " + type + "[" + m +
             "," + n + "] )";
    case 3:
      return "aten::_scaled_dot_product_flash_attention_backward ( " + type + "[" + b + ",8," + k + ",64] " + type +
             "[" + b + ",8," + k + ",64] " + type + "[" + b + ",8," + k + ",64] " + type + "[" + b + ",8," + k +
             ",64] " + type + "[" + b + ",8," + k + ",64] ) -> ( " + type + "[" + b + ",8," + k + ",64] )";
    case 4:
      return "aten::native_batch_norm_backward ( " + type + "[" + b + "," + k + "] " + type + "[" + b + "," + k +
             "] ) -> ( " + type + "[" + b + "," + k + "] )";
    default:
      return "aten::_foreach_mul_ ( { " + type + "[" + m + "] " + type + "[" + n + "] } d0.5 ) -> ( )";
  }
}

TEST(CostTest, NoEstimateIsAboveTheRoof) {
  std::mt19937_64 random(20260101);
  size_t above_floor = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomOp(random);
    const OpText op(text);
    const PrecisionPolicy policy = {(random() & 1) != 0, (random() & 1) != 0};
    for (const Gpu& gpu : AllGpus()) {
      const Cost cost = EstimateCost(op.call(), gpu, policy);
      ASSERT_TRUE(cost.kernel) << text;
      ASSERT_GE(cost.time_ns, kLaunchFloorNs);
      const double seconds = static_cast<double>(cost.time_ns) * 1e-9;
      const double least = LeastSeconds(cost, gpu);
      // Performance against attainable: FLOP/time <= FLOP/least, with room for the rounding of this line only.
      ASSERT_GE(seconds * (1 + 1e-12), least) << text << " on " << gpu.name;
      for (size_t p = 0; p < kPrecisionCount; ++p) {
        ASSERT_LE(static_cast<double>(cost.executed_flop[p]) / seconds, gpu.peak[p] * (1 + 1e-12));
      }
      // And it is the roof, not something below it: at most the one nanosecond of rounding up.
      if (cost.time_ns > kLaunchFloorNs) {
        ++above_floor;
        ASSERT_LE(seconds, least + 1.001e-9) << text << " on " << gpu.name;
      }
    }
  }
  EXPECT_GT(above_floor, 10000u) << "the property was tested on nothing but tiny kernels";
}

TEST(CostTest, AtMostTwoUnits) {
  // A LaunchRecord has room for no more.
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    const OpText op(RandomOp(random));
    const Cost cost = EstimateCost(op.call(), A100(), {});
    EXPECT_LE(std::ranges::count_if(cost.executed_flop, [](uint64_t flop) { return flop != 0; }), 2);
  }
}

}  // namespace
}  // namespace rfinject::estimate
