#include "cli/model/operator.h"

#include <cmath>

namespace rfinject::cli {
namespace {

// A convolution that cuts its input into patches, from fewer channels than a kernel of tensor cores wants.
bool IsFewChannelPatches(const Operator& op) {
  const double in = op.c_in / op.groups;
  return op.element_bytes == 2 && IsTensor(op.precision) && in > 1 && in < kTensorAlignment && op.kernel_h > 1 &&
         op.kernel_w > 1 && op.pass == Pass::kForward && std::fmod(op.c_out, kTensorAlignment) == 0 &&
         op.out_h == std::floor(op.h / op.kernel_h) && op.out_w == std::floor(op.w / op.kernel_w);
}

double ConvolutionBytes(const Operator& op) {
  return op.element_bytes *
         (op.images * op.c_in * op.h * op.w + op.c_out * op.c_in / op.groups * op.kernel_h * op.kernel_w +
          op.images * op.c_out * op.out_h * op.out_w);
}

}  // namespace

bool IsTensor(Precision precision) {
  switch (precision) {
    case Precision::kTf32Tensor:
    case Precision::kFp16Tensor:
    case Precision::kBf16Tensor:
    case Precision::kFp8Tensor:
    case Precision::kFp64Tensor:
    case Precision::kInt8Tensor:
      return true;
    default:
      return false;
  }
}

Misaligned MisalignedOf(const Operator& op) {
  Misaligned found;
  if (!IsTensor(op.precision)) return found;
  // Whether the right operand lies transposed is not known, unless the left one does.
  const bool transposed = op.pass == Pass::kWgrad;
  const double left_row = transposed ? op.m : op.k, right_row = transposed ? op.n : op.k;
  const auto add = [&](double elements, double row, double other_row) {
    const auto begins_at = [&](double alignment) {
      return std::fmod(row * op.element_bytes, alignment) == 0 &&
             std::fmod(other_row * op.element_bytes, alignment) == 0;
    };
    if (begins_at(kRowAlignment)) return;
    found.elements += elements;
    found.narrow = found.narrow || !begins_at(kLeastAlignment);
  };
  add(op.batch * op.m * op.k, left_row, left_row);
  add((op.shared_right ? 1 : op.batch) * op.k * op.n, right_row, op.n);
  add(op.batch * op.m * op.n, op.n, op.n);
  return found;
}

double Flop(const Operator& op) {
  if (op.kind == OperatorKind::kProduct) return 2 * op.batch * op.m * op.k * op.n;
  if (op.kind == OperatorKind::kOther || op.kind == OperatorKind::kAttention ||
      op.kind == OperatorKind::kCausalAttention)
    return op.flop;
  if (op.kind != OperatorKind::kConvolution) return 0;
  return 2 * op.images * op.c_out * op.out_h * op.out_w * op.c_in / op.groups * op.kernel_h * op.kernel_w;
}

double KeysSeen(const Operator& op) {
  if (op.kind != OperatorKind::kCausalAttention) return op.n;
  return op.m <= op.n ? (op.m + 1) / 2 : op.n - op.n * (op.n - 1) / (2 * op.m);
}

double Bytes(const Operator& op) {
  if (op.kind == OperatorKind::kConvolution) return ConvolutionBytes(op);
  if (op.kind != OperatorKind::kProduct) return op.bytes;
  const double right = op.shared_right ? 1 : op.batch;
  return op.element_bytes * (op.batch * op.m * op.k + right * op.k * op.n + op.batch * op.m * op.n);
}

bool OnTensorCores(const Operator& op) {
  if (!IsTensor(op.precision)) return false;
  if (op.kind != OperatorKind::kConvolution) return true;
  return std::fmod(op.c_in / op.groups, kTensorAlignment) == 0 && std::fmod(op.c_out, kTensorAlignment) == 0;
}

bool IsProductAsItLies(const Operator& op) {
  return op.kernel_h == 1 && op.kernel_w == 1 && op.groups == 1 && op.out_h == op.h && op.out_w == op.w &&
         (!IsTensor(op.precision) || std::fmod(op.h * op.w * op.element_bytes, kRowAlignment) == 0);
}

bool IsWinogradShape(const Operator& op) {
  return op.kernel_h == 3 && op.kernel_w == 3 && op.groups == 1 && std::abs(op.out_h - op.h) <= 2 &&
         std::abs(op.out_w - op.w) <= 2;
}

Family FamilyOf(const Operator& op) {
  const bool tensor = OnTensorCores(op);
  switch (op.kind) {
    case OperatorKind::kElementwise:
    case OperatorKind::kReordering:
      return Family::kElementwise;
    case OperatorKind::kOther:
      // Without matrix work it is an element-wise operator, a reduction, a pool: traffic.
      return IsTensor(op.precision) ? Family::kOther : Family::kElementwise;
    case OperatorKind::kSoftmax:
      return Family::kSoftmax;
    case OperatorKind::kLayerNorm:
      return op.pass == Pass::kForward ? Family::kLayerNorm : Family::kLayerNormBackward;
    case OperatorKind::kPool:
      return op.pass == Pass::kForward ? Family::kPool : Family::kPoolBackward;
    case OperatorKind::kRmsNorm:
      return Family::kRmsNorm;
    case OperatorKind::kBatchNorm:
    case OperatorKind::kBatchNormByTorch:
      return Family::kBatchNorm;
    case OperatorKind::kScatter:
      return Family::kScatter;
    case OperatorKind::kReduction:
      return Family::kReduction;
    case OperatorKind::kAttention:
    case OperatorKind::kCausalAttention:
      return op.pass == Pass::kForward ? Family::kAttention : Family::kAttentionBackward;
    case OperatorKind::kProduct:
      if (op.shared_right || op.batch == 1) return tensor ? Family::kLinearTensor : Family::kLinearFp32;
      return tensor ? Family::kBmmTensor : Family::kBmmFp32;
    case OperatorKind::kConvolution:
      break;
  }
  if (op.groups > 1 && op.groups == op.c_in) return Family::kConvDepthwise;
  if (IsFewChannelPatches(op)) return Family::kConvFew;
  const bool tf32 = op.precision == Precision::kTf32Tensor;
  using Passes = std::array<Family, 3>;  // in the order of Pass
  constexpr Passes kSingle = {Family::kConvSingle, Family::kConvSingle, Family::kConvSingleWgrad};
  constexpr Passes kTf32 = {Family::kConvTf32, Family::kConvTf32Dgrad, Family::kConvTf32Wgrad};
  constexpr Passes kTensor = {Family::kConvTensor, Family::kConvTensorDgrad, Family::kConvTensorWgrad};
  constexpr Passes kFp32 = {Family::kConvFp32, Family::kConvFp32Dgrad, Family::kConvFp32Wgrad};
  const bool single = op.c_in == 1 && IsTensor(op.precision) && !tf32;
  const Passes& passes = single ? kSingle : !tensor ? kFp32 : tf32 ? kTf32 : kTensor;
  return passes[static_cast<size_t>(op.pass)];
}

ScaleKind ScaleKindOf(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::kProduct:
      if (const Misaligned rows = MisalignedOf(op); rows.elements > 0) {
        return rows.narrow ? ScaleKind::kNarrow : ScaleKind::kMisaligned;
      }
      return op.precision == Precision::kTf32Tensor ? ScaleKind::kTf32 : ScaleKind::kPlain;
    case OperatorKind::kAttention:
    case OperatorKind::kCausalAttention:
      return op.element_bytes == 4 ? ScaleKind::kFp32 : ScaleKind::kPlain;
    case OperatorKind::kBatchNorm:
      if (op.channels_last) return ScaleKind::kChannelsLast;
      return op.element_bytes == 2 ? ScaleKind::kChannelsFirst : ScaleKind::kPlain;
    case OperatorKind::kBatchNormByTorch:
      return ScaleKind::kNative;
    case OperatorKind::kConvolution:
      if (op.groups > 1 && op.groups < op.c_in) return ScaleKind::kGrouped;
      return op.element_bytes == 2 && !op.channels_last ? ScaleKind::kChannelsFirst : ScaleKind::kPlain;
    default:
      return ScaleKind::kPlain;
  }
}

ErrorGroup ErrorGroupOf(Family family) {
  switch (family) {
    case Family::kLinearFp32:
    case Family::kBmmFp32:
      return ErrorGroup::kProductFp32;
    case Family::kLinearTensor:
    case Family::kBmmTensor:
      return ErrorGroup::kProductTensor;
    case Family::kConvFp32:
    case Family::kConvFp32Dgrad:
    case Family::kConvFp32Wgrad:
    case Family::kConvDepthwise:
      return ErrorGroup::kConvolutionFp32;
    case Family::kConvTensor:
    case Family::kConvTensorDgrad:
    case Family::kConvTensorWgrad:
    case Family::kConvTf32:
    case Family::kConvTf32Dgrad:
    case Family::kConvTf32Wgrad:
    case Family::kConvSingle:
    case Family::kConvSingleWgrad:
    case Family::kConvFew:
      return ErrorGroup::kConvolutionTensor;
    case Family::kAttention:
    case Family::kAttentionBackward:
      return ErrorGroup::kAttention;
    case Family::kSoftmax:
    case Family::kLayerNorm:
    case Family::kLayerNormBackward:
    case Family::kRmsNorm:
    case Family::kBatchNorm:
    case Family::kReduction:
      return ErrorGroup::kNorm;
    case Family::kElementwise:
      return ErrorGroup::kTraffic;
    case Family::kOther:
    case Family::kScatter:
    case Family::kPool:
    case Family::kPoolBackward:
      return ErrorGroup::kOther;
  }
  return ErrorGroup::kOther;
}

}  // namespace rfinject::cli
