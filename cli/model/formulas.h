// File: formulas.h
//
// From hardware counters to FLOP and bytes, per chip: the one table of what each counter counts. Pure data; the sums
// are made by whoever holds the counters.
//
//   for (const FlopTerm& term : FlopFormula("GA100"))
//     flop[size_t(term.precision)] += term.flop_per_count * sum_of(term.metric);
#ifndef RFINJECT_CLI_MODEL_FORMULAS_H_
#define RFINJECT_CLI_MODEL_FORMULAS_H_

#include <optional>
#include <span>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// One counter's part in the executed FLOP of a kernel.
struct FlopTerm {
  std::string_view metric;  // as CUPTI names it, with ".sum"
  Precision precision;
  double flop_per_count;
  // A term of the metric set that stands for FLOP on 2:4 sparse operands. Not executed arithmetic in the dense sense;
  // R011 asks for it to be 0.
  bool sparse = false;
  // Counted over the legacy mma.sync path of a chip that has a faster one (LegacyTensorPathShare).
  bool legacy_path = false;
};

// Why the factors are what they are, for reports and docs; one line each.
std::string_view FormulaSource();

// Every counter that carries FLOP on `chip` ("GV100", "TU104", "GA100", …), scalar and tensor. Alternatives that
// count the same work twice never stand in one formula: the dense `_sparsity_off` metrics are used where the chip has
// them. Empty for a chip that is not in the table.
std::span<const FlopTerm> FlopFormula(std::string_view chip);

// The counters of other spellings, which other tools collect, that mean a term of FlopFormula: ncu's `derived__…_x2`
// forms and the metrics that hold dense and sparse work together. nullopt when `metric` is none of them. The factor
// replaces the term's; a caller uses one spelling a precision, the formula's own where both are there.
std::optional<FlopTerm> AlternativeTerm(std::string_view chip, std::string_view metric);

// The x512 rule of older rooflines: tensor instructions times 512. Right on GV100 only (its HMMA.884 does 512 FLOP a
// warp instruction); 0 for every other chip, where the same counter stands for instructions of several sizes.
double FlopPerTensorInstruction(std::string_view chip);

// Counters that are summed to bytes at a level, and the one that is GPU time in ns.
inline constexpr std::string_view kDramReadMetric = "dram__bytes_read.sum";
inline constexpr std::string_view kDramWriteMetric = "dram__bytes_write.sum";
inline constexpr std::string_view kL2BytesMetric = "lts__t_bytes.sum";
inline constexpr std::string_view kL1BytesMetric = "l1tex__t_bytes.sum";
inline constexpr std::string_view kGpuTimeMetric = "gpu__time_duration.sum";
inline constexpr std::string_view kSmClockMetric = "sm__cycles_elapsed.avg.per_second";

// Peak of GH100's legacy mma.sync path relative to wgmma (2730.67 / 4096 FLOP per SM and cycle), and of GB100's
// (2048 / 8192): kernels built for older chips cannot pass this share of the tensor roof. 1 for chips with one path.
double LegacyTensorPathShare(std::string_view chip);

// What the two paths of such a chip are called: the legacy one, and the one that the tensor peaks of gpus.csv are of
// ("mma", "wgmma"). Both empty for chips with one path.
struct TensorPaths {
  std::string_view legacy, own;
};
TensorPaths TensorPathNames(std::string_view chip);
// Whether the legacy path takes operands of this precision: GH100 and GB100 have it for TF32, FP16 and BF16.
bool HasLegacyPath(std::string_view chip, Precision precision);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_FORMULAS_H_
