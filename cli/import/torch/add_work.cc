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

// How long each of the kernels that have work took, in the order of `kernels`; 0 for the others.
std::vector<uint64_t> WorkingTimes(const OperatorWork& work, std::span<const KernelOfCall> kernels) {
  std::vector<KernelRole> roles;
  for (const KernelOfCall& kernel : kernels) roles.push_back(RoleOfKernel(kernel.name));
  const auto has = [&roles](KernelRole role) { return std::ranges::find(roles, role) != roles.end(); };
  const bool multiplies = work.flop.matrix > 0 && has(KernelRole::kMultiplies);
  const bool only_helpers = !has(KernelRole::kMultiplies) && !has(KernelRole::kUnknown);
  std::vector<uint64_t> times(kernels.size(), 0);
  uint64_t longest = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (multiplies ? roles[i] != KernelRole::kMultiplies : !only_helpers && roles[i] == KernelRole::kHelps) continue;
    times[i] = std::max<uint64_t>(kernels[i].ns, 1);
    longest = std::max(longest, times[i]);
  }
  // Of an operator that multiplies, and none of whose kernels says that it does, the longest is taken for the one.
  if (work.flop.matrix == 0 || multiplies) return times;
  const auto main = std::ranges::find(times, longest);
  for (auto time = times.begin(); time != times.end(); ++time) {
    if (time != main) *time = 0;
  }
  return times;
}

// How many multiplications a kernel of a convolution executes, of those that the definition has. Winograd's algorithm
// needs (m + k - 1)^2 for m x m results of a k x k filter (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015). Fourier's has for a tile of t x t inputs, which gives (t - k + 1)^2 results, t * (t / 2 + 1)
// products of complex numbers, four multiplications each.
WorkRange ExecutedOf(const OperatorWork& work, std::span<const KernelOfCall> kernels, const KernelOfCall& kernel) {
  using enum ConvolutionTiles::Algorithm;
  if (work.filter_h <= 0 || work.filter_w <= 0 || work.plane_h <= 0 || work.plane_w <= 0) return {};
  const bool complex = MultipliesComplex(kernel.name);
  std::optional<ConvolutionTiles> tiles = TilesOfKernel(kernel.name);
  // Where transforms are kernels of their own, a product between them has the name of every other.
  for (const KernelOfCall& other : kernels) {
    if (tiles || GradientOfKernel(kernel.name) != GradientOf::kUnknown) break;
    const std::optional<ConvolutionTiles> of_other = TilesOfKernel(other.name);
    if (of_other && RoleOfKernel(other.name) == KernelRole::kHelps && (of_other->algorithm == kFourier) == complex) {
      tiles = of_other;
    }
  }
  if (!tiles) return {};
  const int64_t size = tiles->size, h = work.filter_h, w = work.filter_w;
  const bool fourier = tiles->algorithm == kFourier;
  const int64_t rows = fourier ? size - h + 1 : size, columns = fourier ? size - w + 1 : size;
  if (rows <= 0 || columns <= 0) return {};
  const int64_t of_tile = fourier ? 4 * size * (size / 2 + 1) : (size + h - 1) * (size + w - 1);
  const auto count = [](int64_t all, int64_t each) { return static_cast<uint64_t>((all + each - 1) / each); };
  uint64_t executed = static_cast<uint64_t>(of_tile), defined = static_cast<uint64_t>(h);
  bool fits = !__builtin_mul_overflow(executed, count(work.plane_h, rows), &executed);
  fits = !__builtin_mul_overflow(executed, count(work.plane_w, columns), &executed) && fits;
  for (const int64_t size_of : {w, work.plane_h, work.plane_w}) {
    fits = !__builtin_mul_overflow(defined, static_cast<uint64_t>(size_of), &defined) && fits;
  }
  return fits && executed < defined ? WorkRange{0, executed, defined} : WorkRange{};
}

// Which gradient of a convolution each kernel is known to compute. A product between transforms is of the gradient
// that these have in their names.
std::vector<GradientOf> GradientsOf(std::span<const KernelOfCall> kernels) {
  std::vector<GradientOf> gradients;
  GradientOf transformed = GradientOf::kUnknown;
  for (const KernelOfCall& kernel : kernels) {
    gradients.push_back(GradientOfKernel(kernel.name));
    if (RoleOfKernel(kernel.name) == KernelRole::kHelps && TilesOfKernel(kernel.name) &&
        gradients.back() != GradientOf::kUnknown) {
      transformed = gradients.back();
    }
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (gradients[i] == GradientOf::kUnknown && !MultipliesComplex(kernels[i].name)) gradients[i] = transformed;
  }
  return gradients;
}

// Whether a kernel is of the one gradient or of the other, where both are computed and names tell them apart; empty
// where they do not.
std::vector<uint8_t> GroupsOf(const OperatorWork& work, std::span<const KernelOfCall> kernels,
                              std::span<const uint64_t> times) {
  constexpr int kBoth = 2;
  if (work.gradients < kBoth) return {};
  const std::vector<GradientOf> gradients = GradientsOf(kernels);
  for (const GradientOf wanted : {GradientOf::kWeight, GradientOf::kInput}) {
    std::vector<uint8_t> groups;
    std::array<bool, kBoth> works{};
    for (size_t i = 0; i < kernels.size(); ++i) {
      groups.push_back(gradients[i] == wanted ? 0 : 1);
      works[groups[i]] = works[groups[i]] || times[i] > 0;
    }
    if (works[0] && works[1]) return groups;
  }
  return {};
}

uint64_t Between(uint64_t value, const WorkRange& range) {
  const auto until = [&](uint64_t part) {
    return static_cast<uint64_t>(static_cast<Uint128>(value) * part / range.of);
  };
  return until(range.last) - until(range.first);
}

}  // namespace

uint64_t WorkPart::Of(uint64_t value) const { return Between(Between(value, group_), own_); }
uint64_t WorkPart::OfExecuted(uint64_t value) const { return Between(Of(value), executed_); }

std::vector<WorkPart> PartsOf(const OperatorWork& work, std::span<const KernelOfCall> kernels) {
  const std::vector<uint64_t> times = WorkingTimes(work, kernels);
  const std::vector<uint8_t> groups = GroupsOf(work, kernels, times);
  const auto group_of = [&groups](size_t i) { return groups.empty() ? 0 : groups[i]; };
  std::array<uint64_t, 2> sums{}, before{};
  for (size_t i = 0; i < kernels.size(); ++i) sums[group_of(i)] += times[i];
  std::vector<WorkPart> parts;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const uint64_t group = group_of(i), first = before[group];
    before[group] += times[i];
    const WorkRange own{first, before[group], std::max<uint64_t>(sums[group], 1)};
    parts.emplace_back(own, groups.empty() ? WorkRange{} : WorkRange{group, group + 1, 2},
                       ExecutedOf(work, kernels, kernels[i]));
  }
  return parts;
}

void AddWork(const OperatorWork& work, const WorkPart& part, const KernelOfCall& kernel, const WorkedGpu& gpu,
             LaunchStats* stats) {
  const auto add = [&](std::string_view metric, uint64_t value) { stats->metrics[std::string(metric)].Add(value); };
  add(kMetricModelFlop, part.Of(work.flop.model));
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
  DefineMetric(kMetricModelFlop, "FLOP", profile);
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
