#include "cli/import/torch/add_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/import/imported.h"
#include "gpus/kernel_names.h"
#include "operators/precision.h"

namespace rfinject::cli {

namespace {

// The FLOP of tensor cores of a type that has one unit of them.
std::optional<Precision> TensorUnitOf(DType type) {
  if (type == DType::kHalf || type == DType::kComplexHalf) return Precision::kFp16Tensor;
  if (type == DType::kBFloat16) return Precision::kBf16Tensor;
  return std::nullopt;
}

Precision VectorUnitOf(DType type) {
  return type == DType::kDouble || type == DType::kComplexDouble ? Precision::kFp64 : Precision::kFp32;
}

// The unit that multiplied. Operands of FP32 may have been multiplied in TF32, and those of FP64 by either unit: that
// the kernel's name says. Of other types it is the operands that decide.
Precision UnitOf(const OperatorWork& work, std::string_view kernel, const Gpu* gpu) {
  const std::optional<Precision> named = PrecisionOfKernel(kernel);
  const bool of_type = work.unit == estimate::Unit::kConvolution || work.unit == estimate::Unit::kMatmul;
  if (gpu == nullptr) {
    const std::optional<Precision> tensor = of_type ? TensorUnitOf(work.type) : std::nullopt;
    return tensor ? *tensor : named.value_or(VectorUnitOf(work.type));
  }
  const Precision unit = estimate::UnitFor(work.unit, work.type, *gpu, {.convolution_tf32 = false});
  const bool has_named = named && gpu->peak[static_cast<size_t>(*named)] > 0;
  return of_type && !TensorUnitOf(work.type) && has_named ? *named : unit;
}

}  // namespace

void AddWork(const OperatorWork& work, const WorkPart& part, const KernelOfCall& kernel, const WorkedGpu& gpu,
             LaunchStats* stats) {
  const auto add = [&](std::string_view metric, uint64_t value) { stats->metrics[std::string(metric)].Add(value); };
  add(kMetricModelFlop, part.Of(work.flop.model));
  if (work.flop.products != 0) add(kMetricProductFlop, part.Of(work.flop.products));
  if (work.flop.hidden != 0) add(kMetricHiddenFlop, part.Of(work.flop.hidden));
  add(kMetricCallPart, part.Of(kWholeCall));
  const uint64_t bytes = part.Of(work.bytes);
  add(kMetricCompulsoryBytes, bytes);
  const double most =
      gpu.board == nullptr ? HUGE_VAL : gpu.board->dram_bytes_per_s * static_cast<double>(kernel.ns) * 1e-9;
  add(kMetricDramBytes, static_cast<double>(bytes) > most ? static_cast<uint64_t>(most) : bytes);
  std::map<Precision, uint64_t> executed;
  if (work.flop.matrix != 0) executed[UnitOf(work, kernel.name, gpu.chip)] += part.OfExecuted(work.flop.matrix);
  if (work.flop.vector != 0) executed[VectorUnitOf(work.type)] += part.Of(work.flop.vector);
  for (const auto& [precision, flop] : executed) add(kMetricFlop[static_cast<size_t>(precision)], flop);
  if (executed.empty()) add(kMetricFlop[static_cast<size_t>(Precision::kFp32)], 0);
}

void ForgetIdleWork(Run* run) {
  for (auto& [key, stats] : run->launches) {
    const auto part = stats.metrics.find(std::string(kMetricCallPart));
    if (part == stats.metrics.end() || part->second.max > 0) continue;
    stats.metrics.erase(std::string(kMetricDramBytes));
    for (const std::string_view flop : kMetricFlop) stats.metrics.erase(std::string(flop));
  }
}

void DefineWork(Profile* profile) {
  DefineMetric(kMetricTime, "ns", profile);
  for (const std::string_view name : {kMetricModelFlop, kMetricProductFlop, kMetricHiddenFlop})
    DefineMetric(name, "FLOP", profile);
  DefineMetric(kMetricCompulsoryBytes, "byte", profile);
  DefineMetric(kMetricDramBytes, "byte", profile);
  DefineMetric(kMetricCallPart, "2^-20 call", profile);
  for (const std::string_view name : kMetricFlop) DefineMetric(name, "FLOP", profile);
}

std::string LackingWork::Text(uint64_t total_ns) const {
  std::vector<std::pair<uint64_t, std::string>> reasons;
  uint64_t lacking = 0;
  for (const auto& [what, ns] : ns_) {
    lacking += ns;
    reasons.emplace_back(ns, absl::StrCat(what.first, ": ", std::string(what.second)));
  }
  if (lacking == 0) return {};
  const auto share = [total_ns](uint64_t ns) {
    const double percent = total_ns == 0 ? 0 : 100 * static_cast<double>(ns) / static_cast<double>(total_ns);
    return percent >= 10 ? absl::StrFormat("%.0f %%", percent) : absl::StrFormat("%.2g %%", percent);
  };
  std::sort(reasons.rbegin(), reasons.rend());
  constexpr size_t kNamed = 3;
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(kNamed, reasons.size()); ++i) {
    named.push_back(absl::StrCat(reasons[i].second, " (", share(reasons[i].first), ")"));
  }
  return absl::StrCat("no FLOP and no bytes for ", share(lacking), " of the GPU's time. ", absl::StrJoin(named, "; "),
                      reasons.size() > kNamed ? "; …" : "");
}

}  // namespace rfinject::cli
