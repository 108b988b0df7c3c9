// Convolutions: as products on tensor cores, by implicit GEMM, or by Winograd's algorithms.
#include <algorithm>
#include <cmath>

#include "cli/model/expected.h"

namespace rfinject::cli {
namespace {

constexpr double kPatchFilters = 128;  // of a block that gathers patches of few channels
constexpr double kSingleFilters = 64;  // of a block, for one channel of halves; fewer take as long
constexpr double kSingleTaps = 8;      // of a block of its weight's gradient
// Winograd: an output tile of 2x2 takes 16 multiplications instead of 36, one of 4x4 takes 36 instead of 144
// (Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
constexpr double kFusedMultiplications = 16, kNonfusedMultiplications = 36, kFilterTaps = 9;
constexpr double kFusedTiles = 32, kFusedFilters = 32, kFusedSetup = 8;  // of a block: output tiles, filters; steps

}  // namespace

// Little reuse, and kernels without tiles; those for one channel have one size of block and compute all of it.
double ExpectedTimes::UntiledSeconds(const Operator& op, const Parameters& p, Family family) const {
  Operator computed = op;
  if (family == Family::kConvFew) computed.c_in = kTensorAlignment * op.groups;  // filled up
  if (family == Family::kConvSingle) computed.c_out = CeilTo(op.c_out, kSingleFilters);
  if (family == Family::kConvSingleWgrad) {
    computed.kernel_h = 1;
    computed.kernel_w = CeilTo(op.kernel_h * op.kernel_w, kSingleTaps);
  }
  const bool tensor = family == Family::kConvFew || OnTensorCores(op);
  const Unit unit = UnitOf(tensor || !IsTensor(op.precision) ? op.precision : Precision::kFp32);
  double seconds = Flop(computed) / (unit.peak * p.rate);
  if (family == Family::kConvFew && p.elements_per_s > 0) {
    // Each block of filters gathers the patches, element by element, because no pixel's channels begin at 16 bytes.
    const double patches = op.images * op.out_h * op.out_w * op.kernel_h * op.kernel_w * computed.c_in / op.groups;
    seconds = std::max(seconds, patches * std::ceil(op.c_out / kPatchFilters) / p.elements_per_s);
  }
  return Overlapped(seconds, Bytes(op) / (bandwidth_ * p.memory));
}

// Tensor cores' kernels want channels last, and PyTorch's default is not: three more kernels read and write input,
// filters and output once more. What is a product as it lies needs none.
double ExpectedTimes::TensorSeconds(const Operator& op, const Parameters& p, double gemm) const {
  const double kernel = Overlapped(gemm, Traffic(Bytes(op), p.memory));
  if (op.channels_last || op.precision == Precision::kFp64Tensor || IsProductAsItLies(op)) return kernel;
  return kernel + 3 * kernel_s_ + 2 * Bytes(op) / bandwidth_;
}

ExpectedTimes::Lowered ExpectedTimes::LoweredOf(const Operator& op) {
  const bool dgrad = op.pass == Pass::kDgrad;
  const double in_elements = op.images * (dgrad ? op.c_out * op.out_h * op.out_w : op.c_in * op.h * op.w);
  const double out_h = dgrad ? op.h : op.out_h, out_w = dgrad ? op.w : op.out_w;
  return {.wgrad = op.pass == Pass::kWgrad,
          .images = op.images,
          .in = (dgrad ? op.c_out : op.c_in) / op.groups,
          .out = (dgrad ? op.c_in : op.c_out) / op.groups,
          .out_h = out_h,
          .out_w = out_w,
          .element_bytes = op.element_bytes,
          .in_bytes = op.element_bytes * in_elements,
          .out_bytes = op.element_bytes * op.images * (dgrad ? op.c_in : op.c_out) * out_h * out_w,
          .filter_bytes = op.element_bytes * op.c_in * op.c_out / op.groups * op.kernel_h * op.kernel_w};
}

double ExpectedTimes::FusedWinogradSeconds(const Lowered& pass, const Parameters& p, const Unit& unit) const {
  const double outputs = std::ceil(pass.out_h / 2) * std::ceil(pass.out_w / 2);
  const double blocks = pass.images * std::ceil(outputs / kFusedTiles) * std::ceil(pass.out / kFusedFilters);
  const double block = 2 * kFusedMultiplications * kFusedTiles * kFusedFilters *
                       (CeilTo(pass.in, kBlockK) + kFusedSetup) / (unit.peak / gpu_.sm_count);
  const double filter = p.winograd.fused_filter * pass.filter_bytes * kFusedMultiplications / kFilterTaps;
  return Sustained((std::ceil(blocks / gpu_.sm_count) + p.winograd.fused_wave) * block, unit, p.winograd.fused_rate) +
         (pass.in_bytes + filter + p.winograd.fused_output * pass.out_bytes) / bandwidth_;
}

// 36 products; the transformed input and output go through memory once each way, and so does the filter.
double ExpectedTimes::WinogradSeconds(const Lowered& pass, const Parameters& p, const Unit& unit) const {
  const double outputs = pass.images * std::ceil(pass.out_h / 4) * std::ceil(pass.out_w / 4);
  const Cut products = pass.wgrad ? ProductAtPeak(kNonfusedMultiplications, pass.in, outputs, pass.out,
                                                  pass.element_bytes, unit, p.winograd.tiles, {})
                                  : ProductAtPeak(kNonfusedMultiplications, outputs, pass.in, pass.out,
                                                  pass.element_bytes, unit, p.winograd.tiles, {.split_k = false});
  const double transformed = 2 * pass.element_bytes * kNonfusedMultiplications * outputs * (pass.in + pass.out);
  const double filter = 2 * pass.filter_bytes * kNonfusedMultiplications / kFilterTaps;
  return Sustained(products.seconds, unit, p.winograd.rate) +
         (pass.in_bytes + pass.out_bytes + pass.filter_bytes + transformed + p.winograd.filter * filter) /
             (bandwidth_ * p.winograd.transform);
}

double ExpectedTimes::ConvolutionSeconds(const Operator& op, const Parameters& p, bool& winograd) const {
  winograd = false;
  const Family family = FamilyOf(op);
  if (family == Family::kConvFew || family == Family::kConvDepthwise || family == Family::kConvSingle ||
      family == Family::kConvSingleWgrad) {
    return UntiledSeconds(op, p, family);
  }
  const bool tensor = OnTensorCores(op);
  Unit dense = UnitOf(tensor || !IsTensor(op.precision) ? op.precision : Precision::kFp32);
  dense.stride_slope = 0;  // pixels are gathered: no row of the matrix is in memory as such
  const Lowered pass = LoweredOf(op);
  double m, k, n;
  if (pass.wgrad) {
    m = op.c_in / op.groups * op.kernel_h * op.kernel_w, n = op.c_out / op.groups;
    k = op.images * op.out_h * op.out_w;
  } else {
    m = op.images * pass.out_h * pass.out_w, n = pass.out;
    // A strided gradient has zeros between, which kernels leave out in part.
    k = pass.in * op.kernel_h * op.kernel_w *
        (op.pass == Pass::kDgrad ? std::pow(op.out_h * op.out_w / (op.h * op.w), p.strided_gradient) : 1);
  }
  const Choice choice{.wide_only = tensor, .split_k = tensor || pass.wgrad, .whole_waves = tensor || pass.wgrad};
  const double gemm =
      Sustained(ProductAtPeak(op.groups, m, k, n, op.element_bytes, dense, p.tiles, choice).seconds, dense, p.rate);
  if (tensor) return TensorSeconds(op, p, gemm);
  // Nothing is gathered for a product as it lies, and its traffic goes on beside its arithmetic. (Times of wgrad,
  // which adds up over images as well, do not look so.)
  if (!pass.wgrad && IsProductAsItLies(op)) return Overlapped(gemm, Bytes(op) / (bandwidth_ * p.memory));
  const double direct =
      gemm + (p.implicit_gemm_input * pass.in_bytes + pass.filter_bytes + pass.out_bytes) / bandwidth_;
  if (!IsWinogradShape(op)) return direct;
  double fast = WinogradSeconds(pass, p, dense);
  if (!pass.wgrad) fast = std::min(fast, FusedWinogradSeconds(pass, p, dense));
  winograd = fast < direct;
  return std::min(fast, direct);
}

}  // namespace rfinject::cli
