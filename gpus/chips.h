// File: chips.h
//
// The chips of chips.csv and chip_counters.csv, compiled in, under CUPTI's names: which counters make executed FLOP,
// what the two tensor paths are called, the rates that check the data sheets' peaks, how PM sampling is triggered,
// the limits of a launch. A board, which is a chip with clocks and a memory of its own, is a row of gpus.csv
// (gpus.h).
//
//   for (const FlopTerm& term : FlopFormula("GA100"))
//     flop[size_t(term.precision)] += term.flop_per_count * sum_of(term.metric);
//
// It is pure: no CUPTI, no input, no output. The tests of collector/cupti ask CUPTI's host library whether it knows
// every counter that is named here.
#ifndef RFINJECT_GPUS_CHIPS_H_
#define RFINJECT_GPUS_CHIPS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gpus/counters.h"
#include "proto/wire/vocabulary.h"

namespace rfinject {

// The names of a chip's two tensor paths: the legacy one, and the one to which the tensor peaks of gpus.csv belong
// ("mma", "wgmma"). Both are empty for a chip with one path.
struct TensorPaths {
  std::string_view legacy, own;
};

// What triggers a sample of PM sampling.
enum class PmTrigger : uint8_t { kNone, kCycles, kTime };

struct Chip {
  std::string_view name = {};                // as cuptiDeviceGetChipName says it: "GA100"
  std::string_view compute_capability = {};  // "8.0"
  std::span<const FlopTerm> flop = {};       // empty: its counters are not known
  PmTrigger pm_trigger = PmTrigger::kTime;
  // FLOP per SM and cycle by Precision, a multiply-add as two; all 0: not verified.
  std::array<double, kPrecisionCount> flop_per_sm_and_cycle = {};
  // The data sheets give the tensor cores' peaks at a clock of their own; FP64's are at the scalar one.
  bool tensor_clock = false;
  TensorPaths paths = {};
  // The legacy path's peak relative to its own: kernels built for older chips cannot pass this share of the roof.
  double legacy_share = 1;
  double flop_per_tensor_instruction = 0;  // 0: instructions of several sizes share a counter
  // Limits of a launch: shared memory of an SM and the most that a block may ask for, in bytes; resident threads and
  // blocks of an SM.
  int shared_bytes_per_sm = 0, shared_bytes_per_block = 0;
  int threads_per_sm = 0, blocks_per_sm = 0;
};

// Every chip. Where several have one compute capability, a file that names only the capability means the first.
std::span<const Chip> AllChips() noexcept;

// The chip of that name; nullptr when there is none.
const Chip* FindChip(std::string_view name) noexcept;

// The first chip of "8.6" whose counters are known; nullptr when there is none.
const Chip* ChipOfComputeCapability(std::string_view capability) noexcept;

// Every counter that carries FLOP on `chip` ("GV100", "TU104", "GA100", …), scalar and tensor. A formula never has
// two counters of the same work: the dense `_sparsity_off` metrics are used where the chip has them. Empty for a chip
// that is not in the table.
std::span<const FlopTerm> FlopFormula(std::string_view chip) noexcept;

// Returns what a counter of another spelling, as other tools collect it, means in terms of FlopFormula: ncu's
// `derived__…_x2` forms and the metrics that hold dense and sparse work together. nullopt when `metric` is none of
// them, or is a term of the formula itself. The factor replaces the term's. A caller uses one spelling for each
// precision: the formula's own where it has both.
std::optional<FlopTerm> AlternativeTerm(std::string_view chip, std::string_view metric) noexcept;

// Returns the counter that an alternative spelling replaces: "…op_hfma_pred_on.sum" for ncu's
// "derived__…op_hfma_pred_on_x4.sum". Empty for every other metric.
std::string_view PlainSpelling(std::string_view metric) noexcept;

// The x512 rule of older rooflines: tensor instructions times 512. Right on GV100 only (its HMMA.884 does 512 FLOP a
// warp instruction); 0 for every other chip, where the same counter stands for instructions of several sizes.
double FlopPerTensorInstruction(std::string_view chip) noexcept;

// Returns empty names for a chip with one path, and for one that is not known.
TensorPaths TensorPathNames(std::string_view chip) noexcept;

// Whether the legacy path takes operands of this precision: GH100 and GB100 have it for TF32, FP16 and BF16.
bool HasLegacyPath(std::string_view chip, Precision precision) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_GPUS_CHIPS_H_
