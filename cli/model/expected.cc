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
constexpr double kLeastSplitK = 64;                // a part of a split product has at least so many steps
constexpr double kStrideUnit = 32768;              // bytes
constexpr double kStrideMost = 8;                  // units; each row lies on pages of its own by then
constexpr double kTensorAlignment = 8;             // channels: tensor cores' convolution kernels want multiples of it
constexpr double kRowAlignment = 16;               // bytes
constexpr double kSingleFilters = 64;              // of a block, for one channel of halves; fewer take as long
constexpr double kSingleTaps = 8;                  // of a block of its weight's gradient
constexpr double kOverlap = 4;                     // exponent: how sharply a kernel is either compute or memory bound
constexpr double kBlockK = 8, kBlockKTensor = 32;  // steps of the inner dimension that a kernel takes at once
// Winograd: an output tile of 2x2 takes 16 multiplications instead of 36, one of 4x4 takes 36 instead of 144
// (Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
constexpr double kFusedMultiplications = 16, kNonfusedMultiplications = 36, kFilterTaps = 9;
constexpr double kFusedTiles = 32, kFusedFilters = 32, kFusedSetup = 8;  // of a block: output tiles, filters; steps
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
  return op.element_bytes *
         (op.images * op.c_in * op.h * op.w + op.c_out * op.c_in / op.groups * op.kernel_h * op.kernel_w +
          op.images * op.c_out * op.out_h * op.out_w);
}

double Flop(const Operator& op) {
  if (op.kind == OperatorKind::kProduct) return 2 * op.batch * op.m * op.k * op.n;
  if (op.kind == OperatorKind::kOther) return op.flop;
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

// With channels first a convolution of 1x1 is, for each image, a product of the filters and the planes of its
// channels. cuBLAS's kernels for tensor cores take rows that begin at multiples of 16 bytes.
bool IsProductAsItLies(const Operator& op) {
  return op.kernel_h == 1 && op.kernel_w == 1 && op.groups == 1 && op.out_h == op.h && op.out_w == op.w &&
         (!IsTensor(op.precision) || std::fmod(op.h * op.w * op.element_bytes, kRowAlignment) == 0);
}

bool IsWinogradShape(const Operator& op) {
  return op.kernel_h == 3 && op.kernel_w == 3 && op.groups == 1 && std::abs(op.out_h - op.h) <= 2 &&
         std::abs(op.out_w - op.w) <= 2;
}

// By the size of the operator, because a short kernel's time is less certain: 0 short, 1 middle, 2 long.
constexpr std::array<std::string_view, 3> kSizeNames = {"short", "middle", "long"};
size_t SizeOf(double seconds) {
  if (seconds < 0.5e-3) return 0;
  return seconds < 2e-3 ? 1 : 2;
}

}  // namespace

Family FamilyOf(const Operator& op) {
  const bool tensor = OnTensorCores(op);
  switch (op.kind) {
    case OperatorKind::kElementwise:
      return Family::kElementwise;
    case OperatorKind::kOther:
      // Without matrix work it is an element-wise operator, a reduction, a pool: traffic.
      return IsTensor(op.precision) ? Family::kOther : Family::kElementwise;
    case OperatorKind::kSoftmax:
      return Family::kSoftmax;
    case OperatorKind::kLayerNorm:
      return Family::kLayerNorm;
    case OperatorKind::kRmsNorm:
      return Family::kRmsNorm;
    case OperatorKind::kBatchNorm:
      return Family::kBatchNorm;
    case OperatorKind::kProduct:
      if (op.shared_right || op.batch == 1) return tensor ? Family::kLinearTensor : Family::kLinearFp32;
      return tensor ? Family::kBmmTensor : Family::kBmmFp32;
    case OperatorKind::kConvolution:
      break;
  }
  if (op.groups > 1 && op.groups == op.c_in) return Family::kConvDepthwise;
  const bool tf32 = op.precision == Precision::kTf32Tensor;
  const bool single = op.c_in == 1 && IsTensor(op.precision) && !tf32;
  if (tensor && tf32) {
    constexpr std::array kPasses = {Family::kConvTf32, Family::kConvTf32Dgrad, Family::kConvTf32Wgrad};
    return kPasses[static_cast<size_t>(op.pass)];
  }
  switch (op.pass) {
    case Pass::kForward:
      return single ? Family::kConvSingle : tensor ? Family::kConvTensor : Family::kConvFp32;
    case Pass::kDgrad:
      return single ? Family::kConvSingle : tensor ? Family::kConvTensorDgrad : Family::kConvFp32Dgrad;
    case Pass::kWgrad:
      return single ? Family::kConvSingleWgrad : tensor ? Family::kConvTensorWgrad : Family::kConvFp32Wgrad;
  }
  return Family::kElementwise;
}

ExpectedTimes::ExpectedTimes(const Gpu& gpu, const Calibration& calibration)
    : gpu_(gpu), bandwidth_(gpu.dram_bytes_per_s * calibration.Get(gpu.name, "gpu", "memory_share").value_or(1)) {
  for (const auto& [family, unit] : {std::pair("fp32", &fp32_), std::pair("tensor", &tensor_)}) {
    unit->share = calibration.Get(gpu.name, family, "share").value_or(1);
    unit->burst_share = std::max(unit->share, calibration.Get(gpu.name, family, "burst_share").value_or(0));
    unit->burst_s = calibration.Get(gpu.name, family, "burst_ms").value_or(0) * 1e-3;
    unit->stride_slope = calibration.Get(gpu.name, family, "stride_slope").value_or(0);
  }
  for (size_t f = 0; f < families_.size(); ++f) families_[f] = Read(calibration, kFamilyNames[f]);
}

ExpectedTimes::Parameters ExpectedTimes::Read(const Calibration& calibration, std::string_view family) const {
  Parameters p;
  const auto get = [&](std::string_view name, double missing) {
    return calibration.Get(gpu_.name, family, name).value_or(missing);
  };
  p.own = calibration.Own(gpu_.name, family, "rows").has_value();
  p.launch_s = get("launch_us", kLaunchIntervalS * 1e6) * 1e-6;
  for (size_t size = 0; size < kSizeNames.size(); ++size) {
    p.low[size] = get(std::string("low_").append(kSizeNames[size]), 0.5);
    p.high[size] = get(std::string("high_").append(kSizeNames[size]), 2);
  }
  p.share = get("share", p.share);
  p.share_persistent = get("share_persistent", p.share_persistent);
  p.reread = get("reread", p.reread);
  p.rows_per_sm = get("rows_per_sm", p.rows_per_sm);
  p.block_bytes_per_s = get("block_GBps", 0) * 1e9;
  p.tiles = {get("tile_edge", 0), get("k_setup", 0), get("wave", 0), get("least_tile_rows", 0),
             get("least_tile_cols", 0)};
  p.rate = get("rate", p.rate);
  p.memory = get("memory", p.memory);
  p.strided_gradient = get("strided_gradient", p.strided_gradient);
  p.implicit_gemm_input = get("implicit_gemm_input", p.implicit_gemm_input);
  p.fused_rate = get("winograd_fused", p.fused_rate);
  p.fused_wave = get("winograd_fused_wave", p.fused_wave);
  p.fused_output = get("winograd_fused_output", p.fused_output);
  p.fused_filter = get("winograd_fused_filter", p.fused_filter);
  p.winograd_rate = get("winograd", p.winograd_rate);
  p.winograd_transform = get("winograd_transform", p.winograd_transform);
  p.winograd_filter = get("winograd_filter", p.winograd_filter);
  // Its products are a batch, for which the library has only the larger kernels.
  const auto least = [&](std::string_view name) { return calibration.Get(gpu_.name, "bmm_fp32", name).value_or(0); };
  p.winograd_tiles = {p.tiles.edge, get("winograd_k_setup", 0), get("winograd_wave", 0), least("least_tile_rows"),
                      least("least_tile_cols")};
  return p;
}

ExpectedTimes::Unit ExpectedTimes::UnitOf(Precision precision) const {
  Unit unit = IsTensor(precision) ? tensor_ : fp32_;
  unit.peak = gpu_.peak[static_cast<size_t>(precision)];
  return unit;
}

double ExpectedTimes::Sustained(double seconds_at_peak, const Unit& unit, double rate) {
  const double sustained = seconds_at_peak / (unit.share * rate);
  if (unit.burst_s <= 0) return sustained;
  const double share = unit.share + (unit.burst_share - unit.share) / (1 + sustained / unit.burst_s);
  return seconds_at_peak / (share * rate);
}

// The least over tiles and splits of the inner dimension: waves of tiles over the SMs, each tile at its efficiency.
double ExpectedTimes::ProductAtPeak(double batch, double m, double k, double n, double element_bytes,
                                    const Unit& unit, const Tiles& tiles, Choice choice) const {
  const double sms = gpu_.sm_count;
  const double sm_rate = unit.peak / sms;
  const double stride = 1 + unit.stride_slope * (std::clamp(k * element_bytes / kStrideUnit, 1.0, kStrideMost) - 1);
  const double block_k = element_bytes < 4 ? kBlockKTensor : kBlockK;
  double best = std::numeric_limits<double>::infinity();
  for (size_t t = 0; t < (choice.wide_only ? kWideTiles : kTiles.size()); ++t) {
    const auto [a, b] = kTiles[t];
    if (a < tiles.least_rows || b < tiles.least_cols) continue;
    const double efficiency = a * b / (a * b + tiles.edge * (a + b) / 2);
    const double blocks = std::ceil(m / a) * std::ceil(n / b) * batch;
    for (const double split : kSplits) {
      if (split > 1 && (!choice.split_k || k < split * kLeastSplitK)) break;
      const double steps = CeilTo(k / split, block_k) + tiles.k_setup;
      const double full = blocks * split / sms;
      const double waves = (choice.whole_waves ? std::ceil(full) : full) + tiles.wave;
      double seconds = waves * 2 * a * b * steps / (sm_rate * efficiency) * stride;
      // The parts are written in FP32 and added up; scaled, because the caller divides by the share.
      if (split > 1) seconds += batch * m * n * 4 * (split + 1) / bandwidth_ * unit.share;
      best = std::min(best, seconds);
    }
  }
  return best;
}

double ExpectedTimes::ProductSeconds(const Operator& op, const Parameters& p) const {
  const Unit unit = UnitOf(op.precision);
  const bool batched = !op.shared_right && op.batch > 1;
  // A shared right operand makes the batch more rows of one product.
  const double batch = batched ? op.batch : 1;
  const double m = batched ? op.m : op.m * op.batch;
  const double at_peak = ProductAtPeak(batch, m, op.k, op.n, op.element_bytes, unit, p.tiles,
                                       {.wide_only = batched || IsTensor(op.precision)});
  return Overlapped(Sustained(at_peak, unit, p.rate), Bytes(op) / (bandwidth_ * p.memory));
}

double ExpectedTimes::ConvolutionSeconds(const Operator& op, const Parameters& p, bool& winograd) const {
  winograd = false;
  const Family family = FamilyOf(op);
  const bool tensor = OnTensorCores(op);
  const Unit unit = UnitOf(tensor || !IsTensor(op.precision) ? op.precision : Precision::kFp32);
  // Little reuse, and kernels without tiles; those for one channel have one size of block and compute all of it.
  if (family == Family::kConvDepthwise || family == Family::kConvSingle || family == Family::kConvSingleWgrad) {
    Operator computed = op;
    if (family == Family::kConvSingle) computed.c_out = CeilTo(op.c_out, kSingleFilters);
    if (family == Family::kConvSingleWgrad) {
      computed.kernel_h = 1;
      computed.kernel_w = CeilTo(op.kernel_h * op.kernel_w, kSingleTaps);
    }
    return Overlapped(Flop(computed) / (unit.peak * p.rate), Bytes(op) / (bandwidth_ * p.memory));
  }

  // The pass as a convolution from `in` channels on pixels of the input to `out` channels on those of the output.
  const bool dgrad = op.pass == Pass::kDgrad;
  const double in = (dgrad ? op.c_out : op.c_in) / op.groups, out = (dgrad ? op.c_in : op.c_out) / op.groups;
  const double out_h = dgrad ? op.h : op.out_h, out_w = dgrad ? op.w : op.out_w;
  const double in_bytes =
      op.element_bytes * op.images * (dgrad ? op.c_out * op.out_h * op.out_w : op.c_in * op.h * op.w);
  const double out_bytes = op.element_bytes * op.images * (dgrad ? op.c_in : op.c_out) * out_h * out_w;
  const double filter_bytes = op.element_bytes * op.c_in * op.c_out / op.groups * op.kernel_h * op.kernel_w;

  double m, k, n;
  if (op.pass == Pass::kWgrad) {
    m = op.c_in / op.groups * op.kernel_h * op.kernel_w, n = op.c_out / op.groups;
    k = op.images * op.out_h * op.out_w;
  } else {
    m = op.images * out_h * out_w, n = out;
    // A strided gradient has zeros between, which kernels leave out in part.
    k = in * op.kernel_h * op.kernel_w *
        (dgrad ? std::pow(op.out_h * op.out_w / (op.h * op.w), p.strided_gradient) : 1);
  }
  Unit dense = unit;
  dense.stride_slope = 0;  // pixels are gathered: no row of the matrix is in memory as such
  const bool wgrad = op.pass == Pass::kWgrad;
  const Choice choice{.wide_only = tensor, .split_k = tensor || wgrad, .whole_waves = tensor || wgrad};
  const double gemm =
      Sustained(ProductAtPeak(op.groups, m, k, n, op.element_bytes, dense, p.tiles, choice), dense, p.rate);
  if (tensor) {
    const double kernel = Overlapped(gemm, Bytes(op) / (bandwidth_ * p.memory));
    // Tensor cores' kernels want channels last, and PyTorch's default is not: three more kernels read and write
    // input, filters and output once more. What is a product as it lies needs none.
    if (op.channels_last || op.precision == Precision::kFp64Tensor || IsProductAsItLies(op)) return kernel;
    return kernel + 3 * kLaunchIntervalS + 2 * Bytes(op) / bandwidth_;
  }
  // Nothing is gathered for a product as it lies, and its traffic goes on beside its arithmetic. (Times of wgrad,
  // which adds up over images as well, do not look so.)
  if (!wgrad && IsProductAsItLies(op)) return Overlapped(gemm, Bytes(op) / (bandwidth_ * p.memory));
  double best = gemm + (p.implicit_gemm_input * in_bytes + filter_bytes + out_bytes) / bandwidth_;
  if (!IsWinogradShape(op)) return best;

  if (!wgrad) {
    const double outputs = std::ceil(out_h / 2) * std::ceil(out_w / 2);
    const double blocks = op.images * std::ceil(outputs / kFusedTiles) * std::ceil(out / kFusedFilters);
    const double block = 2 * kFusedMultiplications * kFusedTiles * kFusedFilters *
                         (CeilTo(in, kBlockK) + kFusedSetup) / (unit.peak / gpu_.sm_count);
    const double fused = Sustained((std::ceil(blocks / gpu_.sm_count) + p.fused_wave) * block, dense, p.fused_rate) +
                         (in_bytes + p.fused_filter * filter_bytes * kFusedMultiplications / kFilterTaps +
                          p.fused_output * out_bytes) /
                             bandwidth_;
    if (fused < best) best = fused, winograd = true;
  }
  const double outputs = op.images * std::ceil(out_h / 4) * std::ceil(out_w / 4);
  // 36 products; the transformed input and output go through memory once each way, and so does the filter.
  const double products =
      wgrad ? ProductAtPeak(kNonfusedMultiplications, in, outputs, out, op.element_bytes, dense, p.winograd_tiles, {})
            : ProductAtPeak(kNonfusedMultiplications, outputs, in, out, op.element_bytes, dense, p.winograd_tiles,
                            {.split_k = false});
  const double transformed = 2 * op.element_bytes * kNonfusedMultiplications * outputs * (in + out);
  const double transformed_filter = 2 * filter_bytes * kNonfusedMultiplications / kFilterTaps;
  const double nonfused =
      Sustained(products, dense, p.winograd_rate) +
      (in_bytes + out_bytes + filter_bytes + transformed + p.winograd_filter * transformed_filter) /
          (bandwidth_ * p.winograd_transform);
  if (nonfused < best) best = nonfused, winograd = true;
  return best;
}

double ExpectedTimes::Missed(double resident_bytes) const {
  return std::clamp(resident_bytes / gpu_.l2_bytes - 1, 0.0, 1.0);
}

// Rows are read once, and again where a row's second pass finds it neither in registers nor in the L2 cache.
double ExpectedTimes::RowSeconds(const Operator& op, const Parameters& p) const {
  if (op.kind == OperatorKind::kElementwise) return op.bytes / (bandwidth_ * p.share);
  if (op.kind == OperatorKind::kBatchNorm) {
    const double bytes = op.bytes + op.reread_bytes * Missed(2 * op.reread_bytes);  // read and written
    const double traffic = bytes / (bandwidth_ * p.share);
    // Few channels are few blocks, and what a block has under way at a time is limited.
    if (op.rows == 0 || p.block_bytes_per_s == 0) return traffic;
    return Overlapped(traffic, bytes / (op.rows * p.block_bytes_per_s));
  }
  if (op.kind == OperatorKind::kOther) {
    const Unit unit = UnitOf(op.precision);
    return Overlapped(Sustained(op.flop / unit.peak, unit, 1), op.bytes / (bandwidth_ * p.share));
  }
  if (op.kind == OperatorKind::kSoftmax && op.cols <= kPersistentCols) {
    return op.bytes / (bandwidth_ * p.share_persistent);
  }
  const double row_bytes = op.cols * op.element_bytes;
  const double resident = gpu_.sm_count * p.rows_per_sm * 2 * row_bytes;  // read and written
  return (op.bytes + op.rows * row_bytes * p.reread * Missed(resident)) / (bandwidth_ * p.share);
}

ExpectedTime ExpectedTimes::Of(const Operator& op) const {
  ExpectedTime time;
  const double flop = Flop(op);
  const double peak = gpu_.peak[static_cast<size_t>(op.precision)];
  if (flop > 0 && !(peak > 0)) return time;
  time.ideal_s = std::max({kLaunchIntervalS, Bytes(op) / gpu_.dram_bytes_per_s, flop > 0 ? flop / peak : 0});

  const Parameters& p = Of(FamilyOf(op));
  double seconds = 0;
  switch (op.kind) {
    case OperatorKind::kProduct:
      seconds = ProductSeconds(op, p);
      break;
    case OperatorKind::kConvolution:
      seconds = ConvolutionSeconds(op, p, time.winograd);
      break;
    default:
      seconds = RowSeconds(op, p);
  }
  time.expected_s = p.launch_s + seconds;
  time.calibrated = p.own ? Calibrated::kGpu : Calibrated::kFamily;
  const size_t size = SizeOf(time.expected_s);
  time.low_s = time.expected_s * p.low[size];
  time.high_s = time.expected_s * p.high[size];
  return time;
}

}  // namespace rfinject::cli
