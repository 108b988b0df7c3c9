#include "cli/model/formulas.h"

#include <array>

namespace rfinject::cli {
namespace {

// CUPTI describes the SASS counters as "thread instructions": an FMA is one count and two FLOP. Half instructions are
// two lanes wide since Volta (HADD2, HMUL2, HFMA2), so one count is two or four FLOP; an upper bound, since scalar
// half code leaves a lane idle. With these factors the counters' own peaks give the datasheets' scalar rates: GV100
// 64 HFMA2 per SM and cycle x 80 x 1.53 GHz x 4 = 31.3 TFLOP/s.
#define RFINJECT_SASS_TERMS                                                           \
  {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", Precision::kFp32, 1},       \
      {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", Precision::kFp32, 1},   \
      {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", Precision::kFp32, 2},   \
      {"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", Precision::kFp64, 1},   \
      {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", Precision::kFp64, 1},   \
      {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", Precision::kFp64, 2},   \
      {"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", Precision::kFp16, 2},   \
      {"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", Precision::kFp16, 2}, { \
    "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", Precision::kFp16, 4        \
  }

// Tensor counters count "math ops", a multiply-add as two: they are FLOP already. GV100's peak is 1024 per SM and
// cycle = 8 tensor cores x 64 multiply-adds x 2.
constexpr FlopTerm kGv100[] = {
    RFINJECT_SASS_TERMS,
    {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_src_fp16_dst_fp32.sum", Precision::kFp16Tensor, 1},
};
// One name for three types; Turing's tensor cores run only FP16 of them.
constexpr FlopTerm kTu10x[] = {
    RFINJECT_SASS_TERMS,
    {"sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", Precision::kFp16Tensor, 1},
};
#define RFINJECT_AMPERE_TERMS                                                                                 \
  RFINJECT_SASS_TERMS, {"sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum", Precision::kBf16Tensor, 1}, \
      {"sm__ops_path_tensor_src_fp16_dst_fp16_sparsity_off.sum", Precision::kFp16Tensor, 1},                  \
      {"sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum", Precision::kFp16Tensor, 1},                  \
      {"sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum", Precision::kTf32Tensor, 1},                  \
      {"sm__ops_path_tensor_src_fp64.sum", Precision::kFp64Tensor, 1},                                        \
      {"sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on.sum", Precision::kBf16Tensor, 1, true},             \
      {"sm__ops_path_tensor_src_fp16_dst_fp16_sparsity_on.sum", Precision::kFp16Tensor, 1, true},             \
      {"sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_on.sum", Precision::kFp16Tensor, 1, true}, {           \
    "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_on.sum", Precision::kTf32Tensor, 1, true                  \
  }
constexpr FlopTerm kGa10x[] = {RFINJECT_AMPERE_TERMS};
constexpr FlopTerm kAd10x[] = {
    RFINJECT_AMPERE_TERMS,
    {"sm__ops_path_tensor_src_fp8_sparsity_off.sum", Precision::kFp8Tensor, 1},
    {"sm__ops_path_tensor_src_fp8_sparsity_on.sum", Precision::kFp8Tensor, 1, true},
};
// wgmma (op_hgmma) and the legacy mma.sync (op_hmma) are counted apart and have different peaks.
constexpr FlopTerm kGh100[] = {
    RFINJECT_SASS_TERMS,
    {"sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", Precision::kBf16Tensor, 1},
    {"sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum", Precision::kTf32Tensor, 1},
    {"sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum", Precision::kBf16Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum", Precision::kFp16Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum", Precision::kFp16Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_off.sum", Precision::kTf32Tensor, 1, false, true},
    {"sm__ops_path_tensor_src_fp64.sum", Precision::kFp64Tensor, 1},
    {"sm__ops_path_tensor_src_fp8_sparsity_off.sum", Precision::kFp8Tensor, 1},
    {"sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_on.sum", Precision::kBf16Tensor, 1, true},
    {"sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_on.sum", Precision::kFp16Tensor, 1, true},
    {"sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_on.sum", Precision::kTf32Tensor, 1, true},
    {"sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_on.sum", Precision::kBf16Tensor, 1, true, true},
    {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_on.sum", Precision::kFp16Tensor, 1, true, true},
    {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_on.sum", Precision::kFp16Tensor, 1, true, true},
    {"sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_on.sum", Precision::kTf32Tensor, 1, true, true},
    {"sm__ops_path_tensor_src_fp8_sparsity_on.sum", Precision::kFp8Tensor, 1, true},
};
// GB100 calls the legacy path op_hmma and its own op_utchmma; FP8, FP6 and FP4 share one pipe and one counter.
constexpr FlopTerm kGb100[] = {
    RFINJECT_SASS_TERMS,
    {"sm__ops_path_tensor_op_utchmma_src_bf16_dst_fp32_sparsity_off.sum", Precision::kBf16Tensor, 1},
    {"sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp16_sparsity_off.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp32_sparsity_off.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32_sparsity_off.sum", Precision::kTf32Tensor, 1},
    {"sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum", Precision::kBf16Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum", Precision::kFp16Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum", Precision::kFp16Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_off.sum", Precision::kTf32Tensor, 1, false, true},
    {"sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp16_sparsity_off.sum", Precision::kFp8Tensor, 1},
    {"sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off.sum", Precision::kFp8Tensor, 1},
    {"sm__ops_path_tensor_src_fp64.sum", Precision::kFp64Tensor, 1},
};

struct ChipFormula {
  std::string_view chip;
  std::span<const FlopTerm> terms;
};
constexpr ChipFormula kFormulas[] = {
    {"GV100", kGv100}, {"TU102", kTu10x}, {"TU104", kTu10x}, {"TU106", kTu10x}, {"GA100", kGa10x}, {"GA102", kGa10x},
    {"GA104", kGa10x}, {"AD102", kAd10x}, {"AD104", kAd10x}, {"GH100", kGh100}, {"GB100", kGb100},
};

// Spellings of ncu for the packed half instructions, factors included in the name.
constexpr FlopTerm kDerivedHalf[] = {
    {"derived__smsp__sass_thread_inst_executed_op_hadd_pred_on_x2.sum", Precision::kFp16, 1},
    {"derived__smsp__sass_thread_inst_executed_op_hmul_pred_on_x2.sum", Precision::kFp16, 1},
    {"derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4.sum", Precision::kFp16, 1},
    {"derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2.sum", Precision::kFp32, 1},
    {"derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2.sum", Precision::kFp64, 1},
    // The older form of hfma doubles once where the hardware doubles twice.
    {"derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2.sum", Precision::kFp16, 2},
};
// Dense and sparse in one counter.
constexpr FlopTerm kTensorTotals[] = {
    {"sm__ops_path_tensor_src_bf16_dst_fp32.sum", Precision::kBf16Tensor, 1},
    {"sm__ops_path_tensor_src_fp16.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_src_fp16_dst_fp32.sum", Precision::kFp16Tensor, 1},
    {"sm__ops_path_tensor_src_tf32_dst_fp32.sum", Precision::kTf32Tensor, 1},
    {"sm__ops_path_tensor_src_fp8.sum", Precision::kFp8Tensor, 1},
};

}  // namespace

std::string_view FormulaSource() {
  return "CUPTI metric descriptions (thread instructions; math ops, multiply-add = 2) and .peak_sustained constants, "
         "which times SMs and boost clock give the datasheet peaks";
}

std::span<const FlopTerm> FlopFormula(std::string_view chip) {
  for (const ChipFormula& formula : kFormulas) {
    if (formula.chip == chip) return formula.terms;
  }
  return {};
}

std::optional<FlopTerm> AlternativeTerm(std::string_view chip, std::string_view metric) {
  for (const FlopTerm& term : FlopFormula(chip)) {
    if (term.metric == metric) return std::nullopt;  // the formula's own spelling
  }
  for (const FlopTerm& term : kDerivedHalf) {
    if (term.metric == metric) return term;
  }
  for (const FlopTerm& term : kTensorTotals) {
    if (term.metric == metric) return term;
  }
  return std::nullopt;
}

double FlopPerTensorInstruction(std::string_view chip) { return chip == "GV100" ? 512 : 0; }

double LegacyTensorPathShare(std::string_view chip) {
  if (chip == "GH100") return 2.0 / 3.0;
  if (chip == "GB100") return 1.0 / 4.0;
  return 1;
}

TensorPaths TensorPathNames(std::string_view chip) {
  if (chip == "GH100") return {"mma", "wgmma"};
  if (chip == "GB100") return {"mma", "tcgen05"};
  return {};
}

bool HasLegacyPath(std::string_view chip, Precision precision) {
  return LegacyTensorPathShare(chip) < 1 &&
         (precision == Precision::kTf32Tensor || precision == Precision::kFp16Tensor ||
          precision == Precision::kBf16Tensor);
}

}  // namespace rfinject::cli
