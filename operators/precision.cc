#include "operators/precision.h"

namespace rfinject::estimate {
namespace {

Precision IfPresent(const Gpu& gpu, Precision wanted, Precision otherwise) {
  return gpu.peak[static_cast<size_t>(wanted)] > 0 ? wanted : otherwise;
}

Precision MatrixUnit(DType dtype, const Gpu& gpu, bool tf32) {
  switch (dtype) {
    case DType::kDouble:
    case DType::kComplexDouble:
      return IfPresent(gpu, Precision::kFp64Tensor, Precision::kFp64);
    case DType::kHalf:
    case DType::kComplexHalf:
      return IfPresent(gpu, Precision::kFp16Tensor, Precision::kFp32);
    case DType::kBFloat16:
      return IfPresent(gpu, Precision::kBf16Tensor, Precision::kFp32);
    default:
      return tf32 ? IfPresent(gpu, Precision::kTf32Tensor, Precision::kFp32) : Precision::kFp32;
  }
}

}  // namespace

Precision UnitFor(Unit unit, DType dtype, const Gpu& gpu, PrecisionPolicy policy) noexcept {
  switch (unit) {
    case Unit::kConvolution:
      return MatrixUnit(dtype, gpu, policy.convolution_tf32);
    case Unit::kMatmul:
      return MatrixUnit(dtype, gpu, policy.matmul_tf32);
    case Unit::kFp8Matmul:
    case Unit::kInt8Matmul:
      return IfPresent(gpu, unit == Unit::kFp8Matmul ? Precision::kFp8Tensor : Precision::kInt8Tensor,
                       IfPresent(gpu, Precision::kFp16Tensor, Precision::kFp32));
    case Unit::kVector:
      break;
  }
  return dtype == DType::kDouble || dtype == DType::kComplexDouble ? Precision::kFp64 : Precision::kFp32;
}

}  // namespace rfinject::estimate
