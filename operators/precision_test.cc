#include "operators/precision.h"

#include <gtest/gtest.h>

#include <string>

namespace rfinject::estimate {
namespace {

struct Case {
  const char* gpu;
  Unit unit;
  DType dtype;
  bool convolution_tf32, matmul_tf32;
  Precision expected;
};

using enum Precision;
constexpr Unit kConv = Unit::kConvolution, kMat = Unit::kMatmul, kVec = Unit::kVector, kEight = Unit::kFp8Matmul,
               kInt8 = Unit::kInt8Matmul;

TEST(PrecisionTest, Matrix) {
  const Case cases[] = {
      // FP32 on Ampere and later, under torch's defaults: convolutions in TF32, products in FP32.
      {"A100-SXM4-40GB", kConv, DType::kFloat, true, false, kTf32Tensor},
      {"A100-SXM4-40GB", kMat, DType::kFloat, true, false, kFp32},
      {"A100-SXM4-40GB", kVec, DType::kFloat, true, false, kFp32},
      {"A100-SXM4-40GB", kConv, DType::kFloat, false, false, kFp32},
      {"A100-SXM4-40GB", kMat, DType::kFloat, true, true, kTf32Tensor},
      {"A100-SXM4-40GB", kMat, DType::kFloat, false, true, kTf32Tensor},
      {"A100-SXM4-40GB", kVec, DType::kFloat, true, true, kFp32},
      {"H200-SXM-141GB", kConv, DType::kFloat, true, false, kTf32Tensor},
      {"RTX4090", kConv, DType::kFloat, true, false, kTf32Tensor},
      // Before Ampere there is no TF32, whatever the flags say.
      {"V100-SXM2-16GB", kConv, DType::kFloat, true, true, kFp32},
      {"V100-SXM2-16GB", kMat, DType::kFloat, true, true, kFp32},
      {"T4", kConv, DType::kFloat, true, true, kFp32},
      {"P100-PCIe-16GB", kConv, DType::kFloat, true, true, kFp32},
      // Autocast.
      {"V100-SXM2-16GB", kConv, DType::kHalf, true, false, kFp16Tensor},
      {"V100-SXM2-16GB", kMat, DType::kHalf, true, false, kFp16Tensor},
      {"T4", kMat, DType::kHalf, true, false, kFp16Tensor},
      {"A100-SXM4-40GB", kConv, DType::kHalf, true, false, kFp16Tensor},
      {"A100-SXM4-40GB", kConv, DType::kBFloat16, true, false, kBf16Tensor},
      {"A100-SXM4-40GB", kMat, DType::kBFloat16, false, false, kBf16Tensor},
      {"V100-SXM2-16GB", kConv, DType::kBFloat16, true, false, kFp32},
      {"T4", kMat, DType::kBFloat16, true, false, kFp32},
      {"P100-PCIe-16GB", kConv, DType::kHalf, true, false, kFp32},
      {"P100-PCIe-16GB", kMat, DType::kHalf, true, false, kFp32},
      // Elementwise kernels compute halves in FP32.
      {"A100-SXM4-40GB", kVec, DType::kHalf, true, false, kFp32},
      {"A100-SXM4-40GB", kVec, DType::kBFloat16, true, false, kFp32},
      {"P100-PCIe-16GB", kVec, DType::kHalf, true, false, kFp32},
      // FP64.
      {"A100-SXM4-40GB", kMat, DType::kDouble, true, true, kFp64Tensor},
      {"A100-SXM4-40GB", kVec, DType::kDouble, true, true, kFp64},
      {"V100-SXM2-16GB", kMat, DType::kDouble, true, true, kFp64},
      {"RTX3090", kConv, DType::kDouble, true, true, kFp64},
      // Complex numbers run where their parts would.
      {"A100-SXM4-40GB", kMat, DType::kComplexFloat, true, true, kTf32Tensor},
      {"A100-SXM4-40GB", kVec, DType::kComplexDouble, true, true, kFp64},
      // FP8.
      {"H100-SXM5-80GB", kEight, DType::kOther, true, false, kFp8Tensor},
      {"H100-SXM5-80GB", kInt8, DType::kInt32, true, false, Precision::kInt8Tensor},
      {"A100-SXM4-40GB", kInt8, DType::kInt32, true, false, Precision::kInt8Tensor},
      {"V100-SXM2-16GB", kInt8, DType::kInt32, true, false, kFp16Tensor},
      {"A100-SXM4-40GB", kEight, DType::kOther, true, false, kFp16Tensor},
      {"P100-PCIe-16GB", kEight, DType::kOther, true, false, kFp32},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.gpu) + " unit " + std::to_string(int(c.unit)) + " dtype " +
                 std::to_string(int(c.dtype)));
    const Gpu* gpu = FindGpu(c.gpu);
    ASSERT_NE(gpu, nullptr);
    const Precision unit = UnitFor(c.unit, c.dtype, *gpu, {c.convolution_tf32, c.matmul_tf32});
    EXPECT_EQ(kPrecisionNames[size_t(unit)], kPrecisionNames[size_t(c.expected)]);
  }
}

TEST(PrecisionTest, NeverAUnitThatTheGpuLacks) {
  for (const Gpu& gpu : AllGpus()) {
    for (Unit unit : {kConv, kMat, kVec, kEight, kInt8}) {
      for (int dtype = 0; dtype < 128; ++dtype) {
        for (int flags = 0; flags < 4; ++flags) {
          const Precision precision =
              UnitFor(unit, static_cast<DType>(dtype), gpu, {(flags & 1) != 0, (flags & 2) != 0});
          ASSERT_GT(gpu.peak[static_cast<size_t>(precision)], 0) << gpu.name << " dtype " << dtype;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rfinject::estimate
