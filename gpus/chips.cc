#include "gpus/chips.h"

#include <algorithm>

namespace rfinject {
namespace {

// A tensor counter of a chip. Where dense and sparse work have a counter each, a formula takes the dense one.
struct TensorCounter {
  std::string_view dense;
  std::string_view sparse;  // empty: the tensor path of this type takes no sparse operands
  Precision precision;
  bool legacy_path = false;
};
#define DENSE_AND_SPARSE(stem) stem "_sparsity_off.sum", stem "_sparsity_on.sum"

template <size_t kSize>
struct Formula {
  std::array<FlopTerm, kSize> terms{};
  size_t size = 0;
  constexpr void Add(const FlopTerm& term) { terms[size++] = term; }
  constexpr std::span<const FlopTerm> span() const { return {terms.data(), size}; }
};

// Concatenates the scalar terms, the dense terms of the tensor path, and the sparse ones.
template <size_t kScalar, size_t kTensor>
consteval auto MakeFormula(const std::array<FlopTerm, kScalar>& scalar, const TensorCounter (&tensor)[kTensor]) {
  Formula<kScalar + 2 * kTensor> formula;
  for (const FlopTerm& term : scalar) formula.Add(term);
  for (const TensorCounter& counter : tensor) {
    formula.Add({counter.dense, counter.precision, 1, false, counter.legacy_path});
  }
  for (const TensorCounter& counter : tensor) {
    if (!counter.sparse.empty()) formula.Add({counter.sparse, counter.precision, 1, true, counter.legacy_path});
  }
  return formula;
}

constexpr TensorCounter kGv100Tensor[] = {
    {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", {}, Precision::kFp16Tensor},
    {"sm__ops_path_tensor_src_fp16_dst_fp32.sum", {}, Precision::kFp16Tensor},
};
constexpr auto kGv100 = MakeFormula(kScalarFlop, kGv100Tensor);

// The counter's name has three types; Turing's tensor cores run only FP16 of these.
constexpr TensorCounter kTu10xTensor[] = {
    {"sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum", {}, Precision::kFp16Tensor},
    {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", {}, Precision::kFp16Tensor},
};
constexpr auto kTu10x = MakeFormula(kScalarFlop, kTu10xTensor);

#define AMPERE_TENSOR                                                                        \
  {DENSE_AND_SPARSE("sm__ops_path_tensor_src_bf16_dst_fp32"), Precision::kBf16Tensor},       \
      {DENSE_AND_SPARSE("sm__ops_path_tensor_src_fp16_dst_fp16"), Precision::kFp16Tensor},   \
      {DENSE_AND_SPARSE("sm__ops_path_tensor_src_fp16_dst_fp32"), Precision::kFp16Tensor},   \
      {DENSE_AND_SPARSE("sm__ops_path_tensor_src_tf32_dst_fp32"), Precision::kTf32Tensor}, { \
    "sm__ops_path_tensor_src_fp64.sum", {}, Precision::kFp64Tensor                           \
  }
constexpr TensorCounter kGa10xTensor[] = {AMPERE_TENSOR};
constexpr auto kGa10x = MakeFormula(kScalarFlop, kGa10xTensor);

constexpr TensorCounter kAd10xTensor[] = {
    AMPERE_TENSOR,
    {DENSE_AND_SPARSE("sm__ops_path_tensor_src_fp8"), Precision::kFp8Tensor},
};
constexpr auto kAd10x = MakeFormula(kScalarFlop, kAd10xTensor);

// The instructions of mma.sync, on chips that have a faster path beside them.
#define LEGACY_TENSOR                                                                                      \
  {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32"), Precision::kBf16Tensor, true},       \
      {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16"), Precision::kFp16Tensor, true},   \
      {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32"), Precision::kFp16Tensor, true}, { \
    DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32"), Precision::kTf32Tensor, true        \
  }

// wgmma (op_hgmma) and mma.sync (op_hmma) are counted apart and have different peaks.
constexpr TensorCounter kGh100Tensor[] = {
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32"), Precision::kBf16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hgmma_src_fp16"), Precision::kFp16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32"), Precision::kTf32Tensor},
    LEGACY_TENSOR,
    {"sm__ops_path_tensor_src_fp64.sum", {}, Precision::kFp64Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_src_fp8"), Precision::kFp8Tensor},
};
constexpr auto kGh100 = MakeFormula(kScalarFlop, kGh100Tensor);

// tcgen05 is op_utchmma; FP8, FP6 and FP4 share one pipe and one counter.
constexpr TensorCounter kGb100Tensor[] = {
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_utchmma_src_bf16_dst_fp32"), Precision::kBf16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp16"), Precision::kFp16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp32"), Precision::kFp16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32"), Precision::kTf32Tensor},
    LEGACY_TENSOR,
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp16"), Precision::kFp8Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32"), Precision::kFp8Tensor},
    {"sm__ops_path_tensor_src_fp64.sum", {}, Precision::kFp64Tensor},
};
constexpr std::array<FlopTerm, kScalarFlop.size() + kPackedFp32Flop.size()> kGb100Scalar = [] {
  std::array<FlopTerm, kScalarFlop.size() + kPackedFp32Flop.size()> terms{};
  std::ranges::copy(kPackedFp32Flop, std::ranges::copy(kScalarFlop, terms.begin()).out);
  return terms;
}();
constexpr auto kGb100 = MakeFormula(kGb100Scalar, kGb100Tensor);

// GeForce's Blackwell has no path but mma.sync.
constexpr TensorCounter kGb20xTensor[] = {
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32"), Precision::kBf16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16"), Precision::kFp16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32"), Precision::kFp16Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32"), Precision::kTf32Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_src_fp8_dst_fp16"), Precision::kFp8Tensor},
    {DENSE_AND_SPARSE("sm__ops_path_tensor_src_fp8_dst_fp32"), Precision::kFp8Tensor},
    {"sm__ops_path_tensor_src_fp64.sum", {}, Precision::kFp64Tensor},
};
constexpr auto kGb20x = MakeFormula(kScalarFlop, kGb20xTensor);

#undef LEGACY_TENSOR
#undef AMPERE_TENSOR
#undef DENSE_AND_SPARSE

// FLOP per SM and cycle, in Precision's order, from CUPTI 13's host library: `.avg.peak_sustained` of the chip's
// metrics (sm__ops_path_tensor_* for the tensor cores; for the CUDA cores the peaks of
// smsp__sass_thread_inst_executed_op_* times 2 for a multiply-add, times 4 for the packed HFMA2). FP64 of the chips
// without a full FP64 unit is 1/64 of FP32 (GA102 and Ada whitepapers), 1/32 on Turing. CUPTI does not know GP100;
// its rates are those of the CUDA programming guide's table of arithmetic throughput.
using Rates = std::array<double, kPrecisionCount>;
constexpr Rates kGp100Rates = {64, 128, 256};
constexpr Rates kGv100Rates = {64, 128, 256, 0, 1024, 0, 0, 0};
constexpr Rates kTu10xRates = {4, 128, 256, 0, 1024, 0, 0, 0};
constexpr Rates kGa100Rates = {64, 128, 512, 1024, 2048, 2048, 0, 128};
constexpr Rates kGa10xRates = {4, 256, 256, 512, 1024, 1024, 0, 0};
constexpr Rates kAd10xRates = {4, 256, 256, 512, 1024, 1024, 2048, 0};
constexpr Rates kGh100Rates = {128, 256, 512, 2048, 4096, 4096, 8192, 256};

// Volta has no PM sampling; Turing and GA100 have its trigger by cycles only (cupti_pmsampling.h).
constexpr Chip kChips[] = {
    {.name = "GP100",
     .compute_capability = "6.0",
     .pm_trigger = PmTrigger::kNone,
     .flop_per_sm_and_cycle = kGp100Rates},
    {.name = "GV100",
     .compute_capability = "7.0",
     .flop = kGv100.span(),
     .pm_trigger = PmTrigger::kNone,
     .flop_per_sm_and_cycle = kGv100Rates,
     .flop_per_tensor_instruction = 512},
    {"TU104", "7.5", kTu10x.span(), PmTrigger::kCycles, kTu10xRates},
    {"TU102", "7.5", kTu10x.span(), PmTrigger::kCycles, kTu10xRates},
    {"TU106", "7.5", kTu10x.span(), PmTrigger::kCycles, kTu10xRates},
    {"TU116", "7.5", kScalarFlop, PmTrigger::kCycles},  // without tensor cores
    {"TU117", "7.5", kScalarFlop, PmTrigger::kCycles},
    {"GA100", "8.0", kGa10x.span(), PmTrigger::kCycles, kGa100Rates},
    {"GA102", "8.6", kGa10x.span(), PmTrigger::kTime, kGa10xRates},
    {"GA103", "8.6", kGa10x.span(), PmTrigger::kTime, kGa10xRates},
    {"GA104", "8.6", kGa10x.span(), PmTrigger::kTime, kGa10xRates},
    {"GA106", "8.6", kGa10x.span(), PmTrigger::kTime, kGa10xRates},
    {"GA107", "8.6", kGa10x.span(), PmTrigger::kTime, kGa10xRates},
    {"AD102", "8.9", kAd10x.span(), PmTrigger::kTime, kAd10xRates},
    {"AD103", "8.9", kAd10x.span(), PmTrigger::kTime, kAd10xRates},
    {"AD104", "8.9", kAd10x.span(), PmTrigger::kTime, kAd10xRates},
    {"AD106", "8.9", kAd10x.span(), PmTrigger::kTime, kAd10xRates},
    {"AD107", "8.9", kAd10x.span(), PmTrigger::kTime, kAd10xRates},
    // mma.sync reaches 2730.67 of wgmma's 4096 FLOP per SM and cycle.
    {.name = "GH100",
     .compute_capability = "9.0",
     .flop = kGh100.span(),
     .flop_per_sm_and_cycle = kGh100Rates,
     .tensor_clock = true,
     .paths = {"mma", "wgmma"},
     .legacy_share = 2.0 / 3.0},
    // The legacy path reaches 2048 of 8192 FLOP per SM and cycle.
    {.name = "GB100",
     .compute_capability = "10.0",
     .flop = kGb100.span(),
     .paths = {"mma", "tcgen05"},
     .legacy_share = 1.0 / 4.0},
    {"GB202", "12.0", kGb20x.span()},
    {"GB203", "12.0", kGb20x.span()},
    {"GB205", "12.0", kGb20x.span()},
    {"GB206", "12.0", kGb20x.span()},
    {"GB207", "12.0", kGb20x.span()},
};

}  // namespace

std::span<const Chip> AllChips() noexcept { return kChips; }

const Chip* FindChip(std::string_view name) noexcept {
  for (const Chip& chip : kChips) {
    if (chip.name == name) return &chip;
  }
  return nullptr;
}

const Chip* ChipOfComputeCapability(std::string_view capability) noexcept {
  for (const Chip& chip : kChips) {
    if (chip.compute_capability == capability && !chip.flop.empty()) return &chip;
  }
  return nullptr;
}

std::span<const FlopTerm> FlopFormula(std::string_view chip) noexcept {
  const Chip* const known = FindChip(chip);
  return known != nullptr ? known->flop : std::span<const FlopTerm>();
}

std::optional<FlopTerm> AlternativeTerm(std::string_view chip, std::string_view metric) noexcept {
  for (const FlopTerm& term : FlopFormula(chip)) {
    if (term.metric == metric) return std::nullopt;  // the formula's own spelling
  }
  for (const AlternativeCounter& counter : kAlternativeCounters) {
    if (counter.term.metric == metric) return counter.term;
  }
  return std::nullopt;
}

std::string_view PlainSpelling(std::string_view metric) noexcept {
  for (const AlternativeCounter& counter : kAlternativeCounters) {
    if (counter.term.metric == metric) return counter.stands_for;
  }
  return {};
}

double FlopPerTensorInstruction(std::string_view chip) noexcept {
  const Chip* const known = FindChip(chip);
  return known != nullptr ? known->flop_per_tensor_instruction : 0;
}

double LegacyTensorPathShare(std::string_view chip) noexcept {
  const Chip* const known = FindChip(chip);
  return known != nullptr ? known->legacy_share : 1;
}

TensorPaths TensorPathNames(std::string_view chip) noexcept {
  const Chip* const known = FindChip(chip);
  return known != nullptr ? known->paths : TensorPaths{};
}

bool HasLegacyPath(std::string_view chip, Precision precision) noexcept {
  return std::ranges::any_of(FlopFormula(chip),
                             [&](const FlopTerm& term) { return term.legacy_path && term.precision == precision; });
}

}  // namespace rfinject
