#include "cli/report/advice/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_replace.h"
#include "cli/model/estimated_kernel.h"
#include "cli/report/facts/queue.h"
#include "cli/report/keys/expect.h"

namespace rfinject::cli {
namespace {

constexpr std::array kFullPrecisions = {Precision::kFp64, Precision::kFp64Tensor, Precision::kFp32,
                                        Precision::kTf32Tensor};

FlopByPrecision Moved(FlopByPrecision flop, Precision to) {
  double moved = 0;
  for (const Precision from : kFullPrecisions) {
    moved += flop[static_cast<size_t>(from)];
    flop[static_cast<size_t>(from)] = 0;
  }
  flop[static_cast<size_t>(to)] += moved;
  return flop;
}

// The same with the memory format as it was: of halves the other one is said (operators/signature.h).
std::string WithFormatOf(std::string_view full, std::string signature) {
  if (!full.starts_with("f32") && !full.starts_with("f64")) return signature;
  constexpr std::string_view kLast = ":nhwc", kFirst = ":nchw";
  if (const size_t at = signature.find(kLast); at != std::string::npos) return signature.erase(at, kLast.size());
  if (const size_t at = signature.find('['); at != std::string::npos) signature.insert(at, kFirst);
  return signature;
}

// The signature of the same operands in the type that `to` has in memory.
std::string Retyped(const std::string& signature, Precision to) {
  switch (to) {
    case Precision::kFp16Tensor:
    case Precision::kFp16:
      return WithFormatOf(signature, absl::StrReplaceAll(signature, {{"f32", "f16"}, {"f64", "f16"}}));
    case Precision::kBf16Tensor:
      return WithFormatOf(signature, absl::StrReplaceAll(signature, {{"f32", "bf16"}, {"f64", "bf16"}}));
    default:
      return absl::StrReplaceAll(signature, {{"f64", "f32"}});
  }
}

double ElementBytes(Precision precision) {
  switch (precision) {
    case Precision::kFp16Tensor:
    case Precision::kFp16:
    case Precision::kBf16Tensor:
      return 2;
    default:
      return 4;
  }
}

}  // namespace

double WhatIf::BeyondExpected(const EstimatedKernel& kernel, const Sums& sums) const {
  if (!measured_) return 1;
  const double expected_ns = ExpectedTimeOf(kernel, *model_).expected_s * 1e9 * static_cast<double>(sums.launches);
  return expected_ns > 0 ? sums.time_ns() / expected_ns : 1;
}

double WhatIf::InPrecision(const LaunchKey& key, const Sums& sums, Precision to, double bytes_ratio) const {
  if (sums.launches == 0) return 0;
  if (model_ != nullptr) {
    EstimatedKernel kernel = KernelOf(key, sums);
    const double beyond = BeyondExpected(kernel, sums);
    const std::string signature = Retyped(key.signature, to);
    kernel.signature = signature;
    kernel.bytes *= bytes_ratio;
    kernel.flop = Moved(kernel.flop, to);
    const double ns = beyond * ExpectedTimeOf(kernel, *model_).expected_s * 1e9 * static_cast<double>(sums.launches);
    return ns > 0 ? std::min(ns, sums.time_ns()) : sums.time_ns();
  }
  if (!(sums.least_ns() > 0)) return sums.time_ns();
  const MinimalTime least =
      LeastTime(machine_, {.flop = Moved(sums.flop(), to), .dram_bytes = sums.dram_bytes() * bytes_ratio});
  const double ratio = least.total_s() * 1e9 / sums.least_ns();
  // A launch takes its time whatever it does.
  const double floor_ns = kLaunchFloorNs * static_cast<double>(sums.launches);
  return std::min(sums.time_ns(), std::max(floor_ns, sums.time_ns() * ratio));
}

std::optional<double> WhatIf::WithAlignedChannels(const LaunchKey& key, const Sums& sums) const {
  constexpr double kAlignment = 8;
  if (model_ == nullptr || sums.launches == 0) return std::nullopt;
  bool changed = false;
  double seconds = 0;
  const EstimatedKernel kernel = KernelOf(key, sums);
  const OperatorList operators = OperatorsOf(kernel);
  for (Operator op : operators.span()) {
    const bool tensor = op.precision != Precision::kFp32 && op.precision != Precision::kFp64;
    if (op.kind != OperatorKind::kConvolution || !tensor || op.groups != 1 || op.c_in < kAlignment)
      return std::nullopt;
    const double in = std::ceil(op.c_in / kAlignment) * kAlignment,
                 out = std::ceil(op.c_out / kAlignment) * kAlignment;
    changed = changed || in != op.c_in || out != op.c_out;
    op.c_in = in, op.c_out = out;
    seconds += model_->Of(op).expected_s;
  }
  if (!changed) return std::nullopt;
  const double ns = seconds * 1e9 * static_cast<double>(sums.launches);
  return std::min(sums.time_ns(), BeyondExpected(kernel, sums) * ns);
}

std::optional<double> WhatIf::WithBatch(const LaunchKey& key, const Sums& sums, double times) const {
  if (model_ == nullptr || sums.launches == 0) return std::nullopt;
  double seconds = 0;
  const EstimatedKernel kernel = KernelOf(key, sums);
  const OperatorList operators = OperatorsOf(kernel);
  for (Operator op : operators.span()) {
    if (op.kind == OperatorKind::kConvolution) {
      op.images *= times;
    } else if (op.kind == OperatorKind::kProduct) {
      // Of a gradient of weights it is the inner dimension that grows; the work is the same.
      (op.shared_right ? op.m : op.batch) *= times;
    } else {
      op.bytes *= times, op.reread_bytes *= times, op.flop *= times;
      if (!IsBatchNorm(op)) op.rows *= times;  // its rows are channels
    }
    seconds += model_->Of(op).expected_s;
  }
  return BeyondExpected(kernel, sums) * seconds * 1e9 * static_cast<double>(sums.launches);
}

double WhatIf::FusedAttention(bool backward, Precision precision, double flop, double bytes, double keys) const {
  if (model_ != nullptr) {
    return model_
               ->Of({.kind = OperatorKind::kAttention,
                     .pass = backward ? Pass::kDgrad : Pass::kForward,
                     .precision = precision,
                     .element_bytes = ElementBytes(precision),
                     .m = keys,
                     .n = keys,
                     .bytes = bytes,
                     .flop = flop})
               .expected_s *
           1e9;
  }
  Work work{.dram_bytes = bytes};
  work.flop[static_cast<size_t>(precision)] = flop;
  return std::max(kLaunchFloorNs, LeastTime(machine_, work).total_s() * 1e9);
}

double WhatIf::Elementwise(double bytes) const {
  if (model_ != nullptr) return model_->Of({.kind = OperatorKind::kElementwise, .bytes = bytes}).expected_s * 1e9;
  return kLaunchFloorNs + (machine_.dram_bytes_per_s > 0 ? bytes / machine_.dram_bytes_per_s * 1e9 : 0);
}

}  // namespace rfinject::cli
