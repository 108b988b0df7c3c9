#include "cli/model/expected.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace rfinject::cli {
namespace {

struct Tile {
  double rows, cols;
};
// The sizes that cuBLAS's and CUTLASS's kernels come in. Products of a batch have no kernels for the narrow ones.
constexpr std::array<Tile, 11> kTiles = {{{256, 128},
                                          {128, 256},
                                          {128, 128},
                                          {128, 64},
                                          {64, 128},
                                          {64, 64},
                                          {64, 32},
                                          {32, 64},
                                          {32, 32},
                                          {128, 32},
                                          {32, 128}}};
constexpr size_t kWideTiles = 6;
constexpr std::array<double, 8> kSplits = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kLeastSplitK = 64;      // a part of a split product has at least so many steps
constexpr double kStrideUnit = 32768;    // bytes
constexpr double kTensorAlignment = 8;   // channels: tensor cores' convolution kernels want multiples of it
constexpr double kOverlap = 4;           // exponent: how sharply a kernel is either compute or memory bound
constexpr double kBlockK = 8, kBlockKTensor = 32;  // steps of the inner dimension that a kernel takes at once
// Winograd: an output tile of 2x2 takes 16 multiplications instead of 36, one of 4x4 takes 36 instead of 144
// (Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
constexpr double kFusedMultiplications = 16, kNonfusedMultiplications = 36, kFilterTaps = 9;
constexpr double kFusedTiles = 32, kFusedFilters = 64, kFusedSetup = 16;  // of a block: output tiles, filters; steps
constexpr double kPersistentCols = 1024;  // softmax keeps rows up to this length in registers (ATen, SoftMax.cu)

bool IsTensor(Precision precision) {
  switch (precision) {
    case Precision::kTf32Tensor:
    case Precision::kFp16Tensor:
    case Precision::kBf16Tensor:
    case Precision::kFp8Tensor:
    case Precision::kFp64Tensor:
      return true;
    default:
      return false;
  }
}

double CeilTo(double value, double step) { return std::ceil(value / step) * step; }

// The longer of the two where one is much longer, and a little more where both are alike.
double Overlapped(double a, double b) {
  return std::pow(std::pow(a, kOverlap) + std::pow(b, kOverlap), 1 / kOverlap);
}

double ConvolutionBytes(const Operator& op) {
  return op.element_bytes * (op.images * op.c_in * op.h * op.w +
                             op.c_out * op.c_in / op.groups * op.kernel_h * op.kernel_w +
                             op.images * op.c_out * op.out_h * op.out_w);
}

double Flop(const Operator& op) {
  if (op.kind == OperatorKind::kProduct) return 2 * op.batch * op.m * op.k * op.n;
  if (op.kind != OperatorKind::kConvolution) return 0;
  return 2 * op.images * op.c_out * op.out_h * op.out_w * op.c_in / op.groups * op.kernel_h * op.kernel_w;
}

double Bytes(const Operator& op) {
  if (op.kind == OperatorKind::kConvolution) return ConvolutionBytes(op);
  if (op.kind != OperatorKind::kProduct) return op.bytes;
  const double right = op.shared_right ? 1 : op.batch;
  return op.element_bytes * (op.batch * op.m * op.k + right * op.k * op.n + op.batch * op.m * op.n);
}

// A convolution whose channels tensor cores' kernels do not take runs on the FP32 units.
bool OnTensorCores(const Operator& op) {
  if (!IsTensor(op.precision)) return false;
  if (op.kind != OperatorKind::kConvolution) return true;
  return std::fmod(op.c_in / op.groups, kTensorAlignment) == 0 && std::fmod(op.c_out, kTensorAlignment) == 0;
}

bool IsWinogradShape(const Operator& op) {
  return op.kernel_h == 3 && op.kernel_w == 3 && op.groups == 1 && std::abs(op.out_h - op.h) <= 2 &&
         std::abs(op.out_w - op.w) <= 2;
}

struct Interval {
  double low, high;
};

// By the size of the operator, because a short kernel's time is less certain.
std::string_view SizeName(double seconds) {
  if (seconds < 0.5e-3) return "short";
  return seconds < 2e-3 ? "middle" : "long";
}

}  // namespace

std::string_view FamilyOf(const Operator& op) {
  const bool tensor = OnTensorCores(op);
  switch (op.kind) {
    case OperatorKind::kElementwise:
      return "elementwise";
    case OperatorKind::kSoftmax:
      return "softmax";
    case OperatorKind::kLayerNorm:
      return "layer_norm";
    case OperatorKind::kRmsNorm:
      return "rms_norm";
    case OperatorKind::kBatchNorm:
      return "batch_norm";
    case OperatorKind::kProduct:
      if (op.shared_right || op.batch == 1) return tensor ? "linear_tensor" : "linear_fp32";
      return tensor ? "bmm_tensor" : "bmm_fp32";
    case OperatorKind::kConvolution:
      switch (op.pass) {
        case Pass::kForward:
          return tensor ? "conv_tensor" : "conv_fp32";
        case Pass::kDgrad:
          return tensor ? "conv_tensor_dgrad" : "conv_fp32_dgrad";
        case Pass::kWgrad:
          return tensor ? "conv_tensor_wgrad" : "conv_fp32_wgrad";
      }
  }
  return "elementwise";
}

ExpectedTimes::ExpectedTimes(const Gpu& gpu, const Calibration& calibration)
    : gpu_(gpu),
      calibration_(calibration),
      bandwidth_(gpu.dram_bytes_per_s * calibration.Get(gpu.name, "gpu", "memory_share").value_or(1)) {}

double ExpectedTimes::Parameter(std::string_view family, std::string_view name, double missing) const {
  return calibration_.Get(gpu_.name, family, name).value_or(missing);
}

ExpectedTimes::Tiles ExpectedTimes::TilesOf(std::string_view family) const {
  return {Parameter(family, "tile_edge", 0), Parameter(family, "k_setup", 0), Parameter(family, "wave", 0),
          Parameter(family, "memory", 1)};
}

ExpectedTimes::Convolution ExpectedTimes::ConvolutionOf(std::string_view family) const {
  return {.tiles = TilesOf(family),
          .gemm = Parameter(family, "implicit_gemm", 1),
          .fused = Parameter(family, "winograd_fused", 1),
          .nonfused = Parameter(family, "winograd", 1),
          .fused_wave = Parameter(family, "winograd_fused_wave", 0),
          .fused_output = Parameter(family, "winograd_fused_output", 1),
          .fused_filter = Parameter(family, "winograd_fused_filter", 1),
          .transform = Parameter(family, "winograd_transform", 1),
          .nonfused_filter = Parameter(family, "winograd_filter", 1)};
}

ExpectedTimes::Unit ExpectedTimes::UnitOf(Precision precision) const {
  const std::string_view family = IsTensor(precision) ? "tensor" : "fp32";
  Unit unit;
  unit.peak = gpu_.peak[static_cast<size_t>(precision)];
  unit.share = Parameter(family, "share", 1);
  unit.burst_share = std::max(unit.share, Parameter(family, "burst_share", 0));
  unit.burst_s = Parameter(family, "burst_ms", 0) * 1e-3;
  unit.stride_slope = Parameter(family, "stride_slope", 0);
  return unit;
}

double ExpectedTimes::Sustained(double seconds_at_peak, const Unit& unit, double rate) {
  const double sustained = seconds_at_peak / (unit.share * rate);
  if (unit.burst_s <= 0) return sustained;
  const double share = unit.share + (unit.burst_share - unit.share) / (1 + sustained / unit.burst_s);
  return seconds_at_peak / (share * rate);
}

// The least over tiles and splits of the inner dimension: waves of tiles over the SMs, each tile at its efficiency.
double ExpectedTimes::ProductAtPeak(double batch, double m, double k, double n, double element_bytes, const Unit& unit,
                                    const Tiles& tiles, bool wide_only, bool split_k) const {
  const double sms = gpu_.sm_count;
  const double sm_rate = unit.peak / sms;
  const double stride = 1 + unit.stride_slope * std::max(0.0, k * element_bytes / kStrideUnit - 1);
  const double block_k = element_bytes < 4 ? kBlockKTensor : kBlockK;
  double best = std::numeric_limits<double>::infinity();
  for (size_t t = 0; t < (wide_only ? kWideTiles : kTiles.size()); ++t) {
    const auto [a, b] = kTiles[t];
    const double efficiency = a * b / (a * b + tiles.edge * (a + b) / 2);
    const double blocks = std::ceil(m / a) * std::ceil(n / b) * batch;
    for (const double split : kSplits) {
      if (split > 1 && (!split_k || k < split * kLeastSplitK)) break;
      const double steps = CeilTo(k / split, block_k) + tiles.k_setup;
      const double waves = std::ceil(blocks * split / sms) + tiles.wave;
      double seconds = waves * 2 * a * b * steps / (sm_rate * efficiency) * stride;
      // The parts are written in FP32 and added up; scaled, because the caller divides by the share.
      if (split > 1) seconds += batch * m * n * 4 * (split + 1) / bandwidth_ * unit.share;
      best = std::min(best, seconds);
    }
  }
  return best;
}

double ExpectedTimes::ProductSeconds(const Operator& op) const {
  const std::string_view family = FamilyOf(op);
  const Unit unit = UnitOf(op.precision);
  const Tiles tiles = TilesOf(family);
  const bool batched = !op.shared_right && op.batch > 1;
  // A shared right operand makes the batch more rows of one product.
  const double batch = batched ? op.batch : 1;
  const double m = batched ? op.m : op.m * op.batch;
  const bool wide_only = batched || IsTensor(op.precision);
  const double compute = Sustained(
      ProductAtPeak(batch, m, op.k, op.n, op.element_bytes, unit, tiles, wide_only, true), unit,
      Parameter(family, "rate", 1));
  return Overlapped(compute, Bytes(op) / (bandwidth_ * tiles.memory));
}

// One filter or a few for each channel: no reuse to speak of, so the traffic counts, or the plain FP32 units.
double ExpectedTimes::DepthwiseSeconds(const Operator& op) const {
  const double rate = gpu_.peak[static_cast<size_t>(Precision::kFp32)] * Parameter("conv_depthwise", "rate", 0.2);
  return Overlapped(Flop(op) / rate, Bytes(op) / (bandwidth_ * Parameter("conv_depthwise", "memory", 0.5)));
}

double ExpectedTimes::ConvolutionSeconds(const Operator& op, bool& winograd) const {
  winograd = false;
  if (op.groups > 1 && op.groups == op.c_in) return DepthwiseSeconds(op);
  const std::string_view family = FamilyOf(op);
  const bool tensor = OnTensorCores(op);
  const Unit unit = UnitOf(tensor || !IsTensor(op.precision) ? op.precision : Precision::kFp32);
  const Convolution p = ConvolutionOf(family);

  // The pass as a convolution from `in` channels on pixels of the input to `out` channels on those of the output.
  const bool dgrad = op.pass == Pass::kDgrad;
  const double in = (dgrad ? op.c_out : op.c_in) / op.groups, out = (dgrad ? op.c_in : op.c_out) / op.groups;
  const double out_h = dgrad ? op.h : op.out_h, out_w = dgrad ? op.w : op.out_w;
  const double in_bytes = op.element_bytes * op.images * (dgrad ? op.c_out * op.out_h * op.out_w : op.c_in * op.h * op.w);
  const double out_bytes = op.element_bytes * op.images * (dgrad ? op.c_in : op.c_out) * out_h * out_w;
  const double filter_bytes = op.element_bytes * op.c_in * op.c_out / op.groups * op.kernel_h * op.kernel_w;

  double m, k, n;
  if (op.pass == Pass::kWgrad) {
    m = op.c_in / op.groups * op.kernel_h * op.kernel_w, n = op.c_out / op.groups;
    k = op.images * op.out_h * op.out_w;
  } else {
    m = op.images * out_h * out_w, n = out;
    // A strided gradient has zeros between; kernels leave them out.
    k = in * op.kernel_h * op.kernel_w * (dgrad ? op.out_h * op.out_w / (op.h * op.w) : 1);
  }
  const bool split = tensor || op.pass == Pass::kWgrad;
  Unit dense = unit;
  dense.stride_slope = 0;  // pixels are gathered, rows of the matrix are not in memory
  const double gemm =
      Sustained(ProductAtPeak(op.groups, m, k, n, op.element_bytes, dense, p.tiles, tensor, split), dense, p.gemm);
  if (tensor) return Overlapped(gemm, Bytes(op) / (bandwidth_ * p.tiles.memory));
  double best = gemm + (filter_bytes + out_bytes) / bandwidth_;
  if (!IsWinogradShape(op)) return best;

  if (op.pass != Pass::kWgrad) {
    const double outputs = op.images * std::ceil(out_h / 2) * std::ceil(out_w / 2);
    const double blocks = std::ceil(outputs / kFusedTiles) * std::ceil(out / kFusedFilters);
    const double block = 2 * kFusedMultiplications * kFusedTiles * kFusedFilters *
                         (CeilTo(in, kBlockK) + kFusedSetup) / (unit.peak / gpu_.sm_count);
    const double fused =
        Sustained((std::ceil(blocks / gpu_.sm_count) + p.fused_wave) * block, dense, p.fused) +
        (2 * in_bytes + p.fused_filter * filter_bytes * kFusedMultiplications / kFilterTaps +
         p.fused_output * out_bytes) / bandwidth_;
    if (fused < best) best = fused, winograd = true;
  }
  const double outputs = op.images * std::ceil(out_h / 4) * std::ceil(out_w / 4);
  // 36 products; the transformed input and output go through memory once each way, and so does the filter.
  const bool wgrad = op.pass == Pass::kWgrad;
  const double products =
      wgrad ? ProductAtPeak(kNonfusedMultiplications, in, outputs, out, op.element_bytes, dense, p.tiles, true, true)
            : ProductAtPeak(kNonfusedMultiplications, outputs, in, out, op.element_bytes, dense, p.tiles, false, false);
  const double transformed = 2 * op.element_bytes * kNonfusedMultiplications * outputs * (in + out);
  const double transformed_filter = 2 * filter_bytes * kNonfusedMultiplications / kFilterTaps;
  const double nonfused =
      Sustained(products, dense, p.nonfused) +
      (in_bytes + out_bytes + filter_bytes + transformed + p.nonfused_filter * transformed_filter) /
          (bandwidth_ * p.transform);
  if (nonfused < best) best = nonfused, winograd = true;
  return best;
}

// Rows are read once, and again where a row's second pass finds it neither in registers nor in the L2 cache.
double ExpectedTimes::RowSeconds(const Operator& op) const {
  const std::string_view family = FamilyOf(op);
  double bytes = op.bytes;
  if (op.kind != OperatorKind::kElementwise) {
    const double row_bytes = op.cols * op.element_bytes;
    const double resident = gpu_.sm_count * Parameter(family, "rows_per_sm", 8) * 2 * row_bytes;
    const double missed = std::clamp(resident / gpu_.l2_bytes - 1, 0.0, 1.0);
    const bool once = op.kind == OperatorKind::kSoftmax && op.cols <= kPersistentCols;
    if (!once) bytes += op.rows * row_bytes * Parameter(family, "reread", 0) * missed;
    const double share = Parameter(family, once ? "share_persistent" : "share", 1);
    return bytes / (bandwidth_ * share);
  }
  return bytes / (bandwidth_ * Parameter(family, "share", 1));
}

ExpectedTime ExpectedTimes::Of(const Operator& op) const {
  ExpectedTime time;
  const double flop = Flop(op);
  const double peak = gpu_.peak[static_cast<size_t>(op.precision)];
  if (flop > 0 && !(peak > 0)) return time;
  time.ideal_s = std::max({kLaunchIntervalS, Bytes(op) / gpu_.dram_bytes_per_s, flop > 0 ? flop / peak : 0});

  const std::string_view family = FamilyOf(op);
  double seconds = 0;
  switch (op.kind) {
    case OperatorKind::kProduct:
      seconds = ProductSeconds(op);
      break;
    case OperatorKind::kConvolution:
      seconds = ConvolutionSeconds(op, time.winograd);
      break;
    default:
      seconds = RowSeconds(op);
  }
  time.expected_s = Parameter(family, "launch_us", kLaunchIntervalS * 1e6) * 1e-6 + seconds;
  time.calibrated = calibration_.Own(gpu_.name, family, "rows") ? Calibrated::kGpu : Calibrated::kFamily;
  const std::string size(SizeName(time.expected_s));
  time.low_s = time.expected_s * Parameter(family, "low_" + size, 0.5);
  time.high_s = time.expected_s * Parameter(family, "high_" + size, 2);
  return time;
}

}  // namespace rfinject::cli
