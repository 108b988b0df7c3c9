#include "gpus/chips.h"

#include <algorithm>

#include "gpus/csv.h"

namespace rfinject {
namespace {

constexpr std::string_view kChipsCsv =
#include "gpus/chips.csv.inc"
    ;
constexpr std::string_view kChipsHeader =
    "chip,cc,counters,packed_fp32,pm_trigger,fp64,fp32,fp16_scalar,tf32_tc,fp16_tc,bf16_tc,fp8_tc,fp64_tc,"
    "int8_tc,tensor_clock,legacy_path,own_path,legacy_share,flop_per_tensor_instruction,shared_KiB_sm,shared_KiB_block,"
    "threads_sm,blocks_sm,process,process_energy,lanes";
constexpr std::string_view kCountersCsv =
#include "gpus/chip_counters.csv.inc"
    ;
constexpr std::string_view kCountersHeader = "set,precision,path,dense,sparse";

using csv::TakeField;

constexpr Precision PrecisionOf(std::string_view name) {
  const auto at = std::ranges::find(kPrecisionNames, name);
  if (at == kPrecisionNames.end()) csv::MalformedCsv();
  return static_cast<Precision>(at - kPrecisionNames.begin());
}

constexpr PmTrigger TriggerOf(std::string_view name) {
  if (name == "none") return PmTrigger::kNone;
  if (name == "cycles") return PmTrigger::kCycles;
  if (name != "time") csv::MalformedCsv();
  return PmTrigger::kTime;
}

// "2/3"; empty: 1.
constexpr double Share(std::string_view text) {
  if (text.empty()) return 1;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) csv::MalformedCsv();
  return csv::Decimal(text.substr(0, slash)) / csv::Decimal(text.substr(slash + 1));
}

// A row of chips.csv. Chips of one set of counters share a formula: `counters` finds it.
struct Row {
  Chip chip;
  std::string_view counters;
  bool packed_fp32 = false;
};

constexpr Row ParseRow(std::string_view line) {
  Row row;
  Chip& chip = row.chip;
  chip.name = TakeField(line);
  chip.compute_capability = TakeField(line);
  row.counters = TakeField(line);
  row.packed_fp32 = csv::Flag(TakeField(line));
  chip.pm_trigger = TriggerOf(TakeField(line));
  for (double& rate : chip.flop_per_sm_and_cycle) rate = csv::Decimal(TakeField(line));  // in Precision's order
  chip.tensor_clock = csv::Flag(TakeField(line));
  chip.paths.legacy = TakeField(line);
  chip.paths.own = TakeField(line);
  chip.legacy_share = Share(TakeField(line));
  chip.flop_per_tensor_instruction = csv::Decimal(TakeField(line));
  chip.shared_bytes_per_sm = csv::Integer(TakeField(line)) << 10;
  chip.shared_bytes_per_block = csv::Integer(TakeField(line)) << 10;
  chip.threads_per_sm = csv::Integer(TakeField(line));
  chip.blocks_per_sm = csv::Integer(TakeField(line));
  if (chip.name.empty() || chip.compute_capability.empty() || chip.shared_bytes_per_block == 0 ||
      chip.threads_per_sm == 0 || chip.blocks_per_sm == 0) {
    csv::MalformedCsv();
  }
  return row;
}

constexpr size_t kChipCount = csv::CountRows(kChipsCsv, kChipsHeader);
constexpr auto kRows = [] {
  std::array<Row, kChipCount> rows{};
  size_t count = 0;
  csv::ForRows(kChipsCsv, kChipsHeader, [&](std::string_view line) { rows[count++] = ParseRow(line); });
  return rows;
}();

// Every formula, one after the other: of a chip the scalar terms, the dense terms of the tensor path, and its sparse
// ones.
struct Formulas {
  std::array<FlopTerm, 512> terms{};
  size_t size = 0;
  std::array<size_t, kChipCount> begin{}, end{};
};

constexpr void AddTensorTerms(std::string_view set, bool sparse, Formulas* formulas) {
  csv::ForRows(kCountersCsv, kCountersHeader, [&](std::string_view line) {
    if (TakeField(line) != set) return;
    const Precision precision = PrecisionOf(TakeField(line));
    const std::string_view path = TakeField(line);
    if (!path.empty() && path != "legacy") csv::MalformedCsv();
    const std::string_view dense = TakeField(line);
    const std::string_view metric = sparse ? line : dense;
    if (!metric.empty()) formulas->terms[formulas->size++] = {metric, precision, 1, sparse, !path.empty()};
  });
}

constexpr Formulas kFormulas = [] {
  Formulas formulas;
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].counters.empty()) continue;
    size_t same = 0;
    while (kRows[same].counters != kRows[i].counters || kRows[same].packed_fp32 != kRows[i].packed_fp32) ++same;
    formulas.begin[i] = same < i ? formulas.begin[same] : formulas.size;
    if (same == i) {
      for (const FlopTerm& term : kScalarFlop) formulas.terms[formulas.size++] = term;
      if (kRows[i].packed_fp32) {
        for (const FlopTerm& term : kPackedFp32Flop) formulas.terms[formulas.size++] = term;
      }
      const size_t scalar_end = formulas.size;
      AddTensorTerms(kRows[i].counters, false, &formulas);
      AddTensorTerms(kRows[i].counters, true, &formulas);
      if ((formulas.size == scalar_end) != (kRows[i].counters == "scalar")) csv::MalformedCsv();  // no such set
    }
    formulas.end[i] = same < i ? formulas.end[same] : formulas.size;
  }
  return formulas;
}();

constexpr auto kChips = [] {
  std::array<Chip, kChipCount> chips{};
  for (size_t i = 0; i < kRows.size(); ++i) {
    chips[i] = kRows[i].chip;
    chips[i].flop = {kFormulas.terms.data() + kFormulas.begin[i], kFormulas.end[i] - kFormulas.begin[i]};
  }
  return chips;
}();

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

TensorPaths TensorPathNames(std::string_view chip) noexcept {
  const Chip* const known = FindChip(chip);
  return known != nullptr ? known->paths : TensorPaths{};
}

bool HasLegacyPath(std::string_view chip, Precision precision) noexcept {
  return std::ranges::any_of(FlopFormula(chip),
                             [&](const FlopTerm& term) { return term.legacy_path && term.precision == precision; });
}

}  // namespace rfinject
