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
constexpr double kStrideMost = 8;        // units; each row lies on pages of its own by then
constexpr double kL2BytesPerCycle = 64;  // of an SM: what the crossbar is built for
constexpr double kL2Gone = 3;   // times the L2's capacity: so much traffic leaves nothing of the kernel before
constexpr double kOverlap = 4;  // exponent: how sharply a kernel is either compute or memory bound
// cuBLAS's kernels for batches of small matrices on tensor cores are of one warp and one tile of 16 x 16; from 64 on
// its others are faster.
constexpr double kWarpTile = 16, kWarpTileMost = 64;
// torch's kernels of attention in FP32 make a product on tensor cores of three of TF32 (ATen, mem_eff_attention/
// gemm_kernel_utils.h: OpMultiplyAddFastF32 from compute capability 8.0 on; CUTLASS, mma_tensor_op_fast_f32.h).
constexpr double kSplitProducts = 3;
// A fused attention: queries and keys of a block at a time (Dao, "FlashAttention-2"; half of the keys at heads of
// 128).
constexpr double kAttentionRows = 128, kAttentionCols = 128;
// The backward of a layer norm adds the weights' gradients up with a block for each warp of columns, which go over
// all rows; with more rows than this, and few columns, the rows are spread over blocks (ATen, layer_norm_kernel.cu).
constexpr double kSpreadRows = 64 * 1024, kWarp = 32;
constexpr double kPersistentCols = 1024;  // softmax keeps rows up to this length in registers (ATen, SoftMax.cu)

// Blocks of one warp for a batch of small matrices; 0 where other kernels are taken.
double WarpTiles(const Operator& op) {
  if (!IsTensor(op.precision) || op.shared_right || op.batch == 1) return 0;
  if (std::min(op.m, op.n) > kWarpTile || std::max(op.m, op.n) > kWarpTileMost) return 0;
  return op.batch * std::ceil(op.m / kWarpTile) * std::ceil(op.n / kWarpTile);
}

// By the size of the operator, because a short kernel's time is less certain: 0 tiny to 3 long.
constexpr std::array<std::string_view, 4> kSizeNames = {"tiny", "short", "middle", "long"};
size_t SizeOf(double seconds) {
  if (seconds < 0.5e-3) return seconds < 0.05e-3 ? 0 : 1;
  return seconds < 2e-3 ? 2 : 3;
}

}  // namespace

ExpectedTimes::ExpectedTimes(const Gpu& gpu, const Calibration& calibration)
    : gpu_(gpu), bandwidth_(gpu.dram_bytes_per_s * calibration.Get(gpu, "gpu", "memory_share").value_or(1)) {
  for (const auto& [family, unit] : {std::pair("fp32", &fp32_), std::pair("tensor", &tensor_)}) {
    unit->share = calibration.Get(gpu, family, "share").value_or(1);
    unit->burst_share = std::max(unit->share, calibration.Get(gpu, family, "burst_share").value_or(0));
    unit->burst_s = calibration.Get(gpu, family, "burst_ms").value_or(0) * 1e-3;
    unit->stride_slope = calibration.Get(gpu, family, "stride_slope").value_or(0);
  }
  // What the cache's bandwidth is more than the DRAM's comes from the cache.
  const double l2_bandwidth =
      kL2BytesPerCycle * gpu.sm_count * gpu.boost_hz * calibration.Get(gpu, "gpu", "l2_share").value_or(0);
  l2_share_ = l2_bandwidth > bandwidth_ ? 1 - bandwidth_ / l2_bandwidth : 0;
  kernel_s_ = calibration.Get(gpu, "gpu", "kernel_us").value_or(kLaunchIntervalS * 1e6) * 1e-6;
  for (size_t f = 0; f < families_.size(); ++f) families_[f] = Read(calibration, kFamilyNames[f]);
}

ExpectedTimes::Parameters ExpectedTimes::Read(const Calibration& calibration, std::string_view family) const {
  Parameters p;
  const auto get = [&](std::string_view name, double missing) {
    return calibration.Get(gpu_, family, name).value_or(missing);
  };
  p.own = calibration.OfBoardOrChip(gpu_, family, "rows").has_value();
  for (size_t i = 0; i < kScaleNames.size(); ++i) p.scales[i] = get(kScaleNames[i], 1);
  p.launch_s = get("launch_us", kernel_s_ * 1e6) * 1e-6;
  for (size_t size = 0; size < kSizeNames.size(); ++size) {
    p.low[size] = get(std::string("low_").append(kSizeNames[size]), 0.5);
    p.high[size] = get(std::string("high_").append(kSizeNames[size]), 2);
  }
  p.share = get("share", p.share);
  p.share_persistent = get("share_persistent", p.share_persistent);
  p.reread = get("reread", p.reread);
  p.rows_per_sm = get("rows_per_sm", p.rows_per_sm);
  p.elements_per_s = get("elements_per_clock", 0) * gpu_.sm_count * gpu_.boost_hz;
  p.step_s = get("step_ns", 0) * 1e-9;
  p.misaligned = get("misaligned", 0);
  p.narrow = get("misaligned_narrow", p.misaligned);
  p.block_s = get("block_ns", 0) * 1e-9;
  p.fma_rate = get("fma_rate", p.fma_rate);
  p.split_rate = get("split_rate", p.split_rate);
  p.block_bytes_per_s = get("block_GBps", 0) * 1e9;
  p.tiles = {get("tile_edge", 0), get("k_setup", 0), get("wave", 0), get("least_tile_rows", 0),
             get("least_tile_cols", 0)};
  p.rate = get("rate", p.rate);
  p.memory = get("memory", p.memory);
  p.strided_gradient = get("strided_gradient", p.strided_gradient);
  p.implicit_gemm_input = get("implicit_gemm_input", p.implicit_gemm_input);
  p.winograd.fused_rate = get("winograd_fused", p.winograd.fused_rate);
  p.winograd.fused_wave = get("winograd_fused_wave", p.winograd.fused_wave);
  p.winograd.fused_output = get("winograd_fused_output", p.winograd.fused_output);
  p.winograd.fused_filter = get("winograd_fused_filter", p.winograd.fused_filter);
  p.winograd.rate = get("winograd", p.winograd.rate);
  p.winograd.transform = get("winograd_transform", p.winograd.transform);
  p.winograd.filter = get("winograd_filter", p.winograd.filter);
  // Its products are a batch, for which the library has only the larger kernels.
  const auto least = [&](std::string_view name) { return calibration.Get(gpu_, "bmm_fp32", name).value_or(0); };
  p.winograd.tiles = {p.tiles.edge, get("winograd_k_setup", 0), get("winograd_wave", 0), least("least_tile_rows"),
                      least("least_tile_cols")};
  return p;
}

double ExpectedTimes::CeilTo(double value, double step) { return std::ceil(value / step) * step; }

double ExpectedTimes::Overlapped(double a, double b) {
  return std::pow(std::pow(a, kOverlap) + std::pow(b, kOverlap), 1 / kOverlap);
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
ExpectedTimes::Cut ExpectedTimes::ProductAtPeak(double batch, double m, double k, double n, double element_bytes,
                                                const Unit& unit, const Tiles& tiles, Choice choice) const {
  const double sms = gpu_.sm_count;
  const double sm_rate = unit.peak / sms;
  const double stride = 1 + unit.stride_slope * (std::clamp(k * element_bytes / kStrideUnit, 1.0, kStrideMost) - 1);
  const double block_k = element_bytes < 4 ? kBlockKTensor : kBlockK;
  Cut best{.seconds = std::numeric_limits<double>::infinity()};
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
      // The parts are written in FP32, and added up; scaled, because the caller divides by the share.
      if (split > 1) seconds += (choice.adds_up_s + batch * m * n * 4 * (split + 1) / bandwidth_) * unit.share;
      if (seconds < best.seconds) best = {.seconds = seconds, .parts = split};
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
  const Cut cut = ProductAtPeak(batch, m, op.k, op.n, op.element_bytes, unit, p.tiles,
                                {.wide_only = batched || IsTensor(op.precision), .adds_up_s = kernel_s_});
  const double latency = p.step_s * std::ceil(op.k / cut.parts / kBlockKTensor);
  const Misaligned misaligned = MisalignedOf(op);
  const double slower = misaligned.elements == 0 ? 1 : 1 + (misaligned.narrow ? p.narrow : p.misaligned);
  double traffic = Traffic(Bytes(op), p.memory);
  if (p.elements_per_s > 0) traffic = std::max(traffic, misaligned.elements / p.elements_per_s);
  // However few blocks there are, each waits for its steps; where there are many, others compute meanwhile.
  const double seconds = Overlapped(Overlapped(Sustained(cut.seconds, unit, p.rate) * slower, latency), traffic);
  return Overlapped(seconds, WarpTiles(op) / gpu_.sm_count * p.block_s);
}

// What the products and the softmax between them take.
double ExpectedTimes::AttentionProducts(const Operator& op, const Parameters& p, double flop) const {
  if (op.element_bytes < 4) {
    const Unit unit = UnitOf(op.precision);
    return Sustained(flop / unit.peak, unit, p.rate);
  }
  if (const Unit split = UnitOf(Precision::kTf32Tensor); split.peak > 0) {
    return Sustained(kSplitProducts * flop / split.peak, split, p.split_rate);
  }
  const Unit unit = UnitOf(op.precision);
  return Sustained(flop / unit.peak, unit, p.fma_rate);
}

// Blocks of queries go over the blocks of keys that they see.
double ExpectedTimes::AttentionSeconds(const Operator& op, const Parameters& p) const {
  const double rows = std::ceil(op.m / kAttentionRows), cols = std::ceil(op.n / kAttentionCols);
  const bool causal = op.kind == OperatorKind::kCausalAttention;
  const double keys = KeysSeen(op);
  const double seen = causal && op.m == op.n ? (rows + 1) / 2 : std::ceil(keys / kAttentionCols);
  const double whole = op.flop * (rows * kAttentionRows / op.m) * (seen * kAttentionCols / keys);
  return cols * p.step_s + Overlapped(AttentionProducts(op, p, whole), Traffic(op.bytes, p.share));
}

double ExpectedTimes::FromDram(double bytes) const {
  if (l2_share_ <= 0) return bytes;
  const double still_there = std::clamp((kL2Gone - bytes / gpu_.l2_bytes) / (kL2Gone - 1), 0.0, 1.0);
  return bytes * (1 - l2_share_ * still_there);
}

double ExpectedTimes::LeastSeconds(double dram_bytes, double seconds_at_peak) const {
  return std::max({kernel_s_, dram_bytes / gpu_.dram_bytes_per_s, seconds_at_peak});
}

double ExpectedTimes::Missed(double resident_bytes) const {
  return std::clamp(resident_bytes / gpu_.l2_bytes - 1, 0.0, 1.0);
}

// Rows are read once, and again where a row's second pass finds it neither in registers nor in the L2 cache.
double ExpectedTimes::RowSeconds(const Operator& op, const Parameters& p) const {
  if (op.kind == OperatorKind::kElementwise || op.kind == OperatorKind::kReduction ||
      op.kind == OperatorKind::kScatter) {
    return Traffic(op.bytes, p.share);
  }
  if (IsBatchNorm(op)) {
    const double bytes = op.bytes + op.reread_bytes * Missed(2 * op.reread_bytes);  // read and written
    const double traffic = Traffic(bytes, p.share);
    // Few channels are few blocks, and what a block has under way at a time is limited.
    if (op.rows == 0 || p.block_bytes_per_s == 0) return traffic;
    return Overlapped(traffic, bytes / (op.rows * p.block_bytes_per_s));
  }
  if (op.kind == OperatorKind::kOther) {
    const Unit unit = UnitOf(op.precision);
    return Overlapped(Sustained(op.flop / unit.peak, unit, 1), Traffic(op.bytes, p.share));
  }
  if (op.kind == OperatorKind::kReordering) {
    const double traffic = Traffic(op.bytes, p.share);
    return p.elements_per_s > 0 ? std::max(traffic, op.rows * op.cols / p.elements_per_s) : traffic;
  }
  if (op.kind == OperatorKind::kSoftmax && op.cols <= kPersistentCols) {
    return Traffic(op.bytes, p.share_persistent);
  }
  const double row_bytes = op.cols * op.element_bytes;
  const double resident = gpu_.sm_count * p.rows_per_sm * 2 * row_bytes;  // read and written
  const double traffic = Traffic(op.bytes + op.rows * row_bytes * p.reread * Missed(resident), p.share);
  // A block a row: an SM starts as many as it can hold, and reads others in part of the time that it waits for them.
  if (op.kind == OperatorKind::kLayerNorm) {
    const bool spread = op.rows > kSpreadRows && op.cols / kWarp < gpu_.sm_count / 2.0;
    const double block_s = spread ? Of(Family::kLayerNorm).block_s : p.block_s;
    return std::hypot(traffic, op.rows * block_s / gpu_.sm_count);
  }
  // A softmax of halves takes its elements one by one where its rows begin at odd places (seen: rows of 3137, and not
  // rows of 30,522); in FP32 the bytes take longer than the elements anyway.
  const bool several =
      op.kind == OperatorKind::kSoftmax && (op.element_bytes > 2 || std::fmod(row_bytes, kLeastAlignment) == 0);
  if (several || p.elements_per_s == 0) return traffic;
  return Overlapped(traffic, op.rows * op.cols / p.elements_per_s);
}

double ExpectedTimes::SecondsOf(const Operator& op, const Parameters& p, bool& winograd) const {
  switch (op.kind) {
    case OperatorKind::kProduct:
      return ProductSeconds(op, p);
    case OperatorKind::kAttention:
    case OperatorKind::kCausalAttention:
      return AttentionSeconds(op, p);
    case OperatorKind::kConvolution:
      return ConvolutionSeconds(op, p, winograd);
    default:
      return RowSeconds(op, p);
  }
}

ExpectedTime ExpectedTimes::Of(const Operator& op) const {
  ExpectedTime time;
  const double flop = Flop(op);
  const double peak = gpu_.peak[static_cast<size_t>(op.precision)];
  if (flop > 0 && !(peak > 0)) return time;
  time.dram_bytes = FromDram(Bytes(op));
  time.ideal_s = LeastSeconds(time.dram_bytes, flop > 0 ? flop / peak : 0);

  const Parameters& p = Of(FamilyOf(op));
  time.launch_s = p.launch_s;
  time.expected_s = p.launch_s + SecondsOf(op, p, time.winograd) * p.scales[static_cast<size_t>(ScaleKindOf(op))];
  const double executed = time.winograd ? flop / kWinogradSaves : flop;
  time.expected_s = std::max(time.expected_s, LeastSeconds(time.dram_bytes, flop > 0 ? executed / peak : 0));
  time.calibrated = p.own ? Calibrated::kGpu : Calibrated::kFamily;
  const size_t size = SizeOf(time.expected_s);
  time.low_s = time.expected_s * p.low[size];
  time.high_s = time.expected_s * p.high[size];
  time.group = ErrorGroupOf(FamilyOf(op));
  return time;
}

}  // namespace rfinject::cli
