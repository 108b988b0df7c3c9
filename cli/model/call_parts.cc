#include "cli/model/call_parts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

using wire::Uint128;

// How long each of the kernels that have work took, in the order of `kernels`; 0 for the others.
std::vector<uint64_t> WorkingTimes(const CallShape& call, std::span<const KernelOfCall> kernels) {
  std::vector<KernelRole> roles;
  for (const KernelOfCall& kernel : kernels) roles.push_back(RoleOfKernel(kernel.name));
  const auto has = [&roles](KernelRole role) { return std::ranges::find(roles, role) != roles.end(); };
  const bool multiplies = call.multiplies && has(KernelRole::kMultiplies);
  const bool only_helpers = !has(KernelRole::kMultiplies) && !has(KernelRole::kUnknown);
  std::vector<uint64_t> times(kernels.size(), 0);
  uint64_t longest = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (multiplies ? roles[i] != KernelRole::kMultiplies : !only_helpers && roles[i] == KernelRole::kHelps) continue;
    times[i] = std::max<uint64_t>(kernels[i].ns, 1);
    longest = std::max(longest, times[i]);
  }
  // Of an operator that multiplies, and none of whose kernels says that it does, the longest is taken for the one.
  if (!call.multiplies || multiplies) return times;
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
WorkRange ExecutedOf(const CallShape& call, std::span<const KernelOfCall> kernels, const KernelOfCall& kernel) {
  using enum ConvolutionTiles::Algorithm;
  if (call.filter_h <= 0 || call.filter_w <= 0 || call.plane_h <= 0 || call.plane_w <= 0) return {};
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
  const int64_t size = tiles->size, h = call.filter_h, w = call.filter_w;
  const bool fourier = tiles->algorithm == kFourier;
  const int64_t rows = fourier ? size - h + 1 : size, columns = fourier ? size - w + 1 : size;
  if (rows <= 0 || columns <= 0) return {};
  const int64_t of_tile = fourier ? 4 * size * (size / 2 + 1) : (size + h - 1) * (size + w - 1);
  const auto count = [](int64_t all, int64_t each) { return static_cast<uint64_t>((all + each - 1) / each); };
  uint64_t executed = static_cast<uint64_t>(of_tile), defined = static_cast<uint64_t>(h);
  bool fits = !__builtin_mul_overflow(executed, count(call.plane_h, rows), &executed);
  fits = !__builtin_mul_overflow(executed, count(call.plane_w, columns), &executed) && fits;
  for (const int64_t size_of : {w, call.plane_h, call.plane_w}) {
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
std::vector<uint8_t> GroupsOf(const CallShape& call, std::span<const KernelOfCall> kernels,
                              std::span<const uint64_t> times) {
  constexpr int kBoth = 2;
  if (call.gradients < kBoth) return {};
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

std::vector<WorkPart> PartsOf(const CallShape& call, std::span<const KernelOfCall> kernels) {
  const std::vector<uint64_t> times = WorkingTimes(call, kernels);
  const std::vector<uint8_t> groups = GroupsOf(call, kernels, times);
  const auto group_of = [&groups](size_t i) { return groups.empty() ? 0 : groups[i]; };
  std::array<uint64_t, 2> sums{}, before{};
  for (size_t i = 0; i < kernels.size(); ++i) sums[group_of(i)] += times[i];
  std::vector<WorkPart> parts;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const uint64_t group = group_of(i), first = before[group];
    before[group] += times[i];
    const WorkRange own{first, before[group], std::max<uint64_t>(sums[group], 1)};
    parts.emplace_back(own, groups.empty() ? WorkRange{} : WorkRange{group, group + 1, 2},
                       ExecutedOf(call, kernels, kernels[i]));
  }
  return parts;
}

}  // namespace rfinject::cli
