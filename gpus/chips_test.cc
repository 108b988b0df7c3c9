#include "gpus/chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "gpus/gpus.h"

namespace rfinject {
namespace {

using ::testing::Contains;

const FlopTerm* TermOf(std::string_view chip, std::string_view metric) {
  for (const FlopTerm& term : FlopFormula(chip)) {
    if (term.metric == metric) return &term;
  }
  return nullptr;
}

TEST(Chips, EveryBoardHasItsChip) {
  for (const Gpu& gpu : AllGpus()) {
    SCOPED_TRACE(std::string(gpu.name));
    const Chip* const chip = FindChip(gpu.chip);
    if (!HasEstimates(gpu)) continue;  // CUPTI has no name for AMD's chips
    ASSERT_NE(chip, nullptr);
    EXPECT_EQ(chip->compute_capability, std::to_string(gpu.cc_major) + "." + std::to_string(gpu.cc_minor));
  }
}

TEST(Chips, NothingStandsTwice) {
  std::set<std::string_view> names;
  for (const Chip& chip : AllChips()) {
    SCOPED_TRACE(std::string(chip.name));
    EXPECT_TRUE(names.insert(chip.name).second);
    std::set<std::string_view> metrics;
    for (const FlopTerm& term : chip.flop) {
      EXPECT_TRUE(metrics.insert(term.metric).second) << term.metric;
      EXPECT_TRUE(term.metric.ends_with(".sum")) << term.metric;
      EXPECT_GT(term.flop_per_count, 0);
    }
    const bool has_legacy = std::ranges::any_of(chip.flop, &FlopTerm::legacy_path);
    EXPECT_EQ(has_legacy, chip.legacy_share < 1);
    EXPECT_EQ(has_legacy, !chip.paths.legacy.empty());
    EXPECT_EQ(has_legacy, !chip.paths.own.empty());
  }
}

// A sparse counter without its dense one, or the total beside the dense one, would be a mistake in the table.
TEST(Chips, SparseCountersHaveADenseOneAndNoTotalBesideThem) {
  for (const Chip& chip : AllChips()) {
    for (const FlopTerm& term : chip.flop) {
      const size_t suffix = term.metric.rfind("_sparsity_");
      if (suffix == std::string_view::npos) {
        EXPECT_FALSE(term.sparse) << term.metric;
        continue;
      }
      const std::string stem(term.metric.substr(0, suffix));
      EXPECT_EQ(term.sparse, term.metric.ends_with("_on.sum")) << term.metric;
      const FlopTerm* const dense = TermOf(chip.name, stem + "_sparsity_off.sum");
      ASSERT_NE(dense, nullptr) << term.metric;
      EXPECT_EQ(dense->precision, term.precision);
      EXPECT_EQ(dense->legacy_path, term.legacy_path);
      EXPECT_EQ(TermOf(chip.name, stem + ".sum"), nullptr);
    }
  }
}

TEST(Chips, PackedFp32OfBlackwellCounts) {
  const FlopTerm* const ffma2 = TermOf("GB100", "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum");
  ASSERT_NE(ffma2, nullptr);
  EXPECT_EQ(ffma2->precision, Precision::kFp32);
  EXPECT_EQ(ffma2->flop_per_count, 4);
}

// Alarm R011 looks whether sparse operands ran, which it cannot on a chip whose formula has no sparse terms.
TEST(Chips, SparseTermsOnEveryChipWithSparseTensorCores) {
  for (const Chip& chip : AllChips()) {
    const bool has_tensor_cores_for_them = std::stod(std::string(chip.compute_capability)) >= 8;
    EXPECT_EQ(has_tensor_cores_for_them, std::ranges::any_of(chip.flop, &FlopTerm::sparse)) << chip.name;
  }
}

TEST(Chips, AlternativesStandForTermsOfSomeChip) {
  std::set<std::string_view> terms;
  for (const Chip& chip : AllChips()) {
    for (const FlopTerm& term : chip.flop) terms.insert(term.metric);
  }
  for (const AlternativeCounter& counter : kAlternativeCounters) {
    if (!counter.stands_for.empty()) {
      EXPECT_THAT(terms, Contains(counter.stands_for));
      // "…op_hfma_pred_on_x4" is "…op_hfma_pred_on".
      const std::string_view stem = counter.stands_for.substr(0, counter.stands_for.size() - 4);
      EXPECT_NE(counter.term.metric.find(stem), std::string_view::npos) << counter.term.metric;
    }
  }
  EXPECT_EQ(PlainSpelling("derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4.sum"),
            "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum");
  EXPECT_EQ(PlainSpelling("sm__ops_path_tensor_src_fp8.sum"), "");
  EXPECT_EQ(AlternativeTerm("GV100", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"), std::nullopt);  // its own
  ASSERT_TRUE(AlternativeTerm("GA100", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"));
  EXPECT_EQ(AlternativeTerm("GA100", "sm__ops_path_tensor_src_fp16_dst_fp32.sum")->precision, Precision::kFp16Tensor);
  EXPECT_EQ(AlternativeTerm("GA100", "lts__t_bytes.sum"), std::nullopt);
}

TEST(Chips, OfComputeCapability) {
  const auto name = [](std::string_view capability) {
    const Chip* const chip = ChipOfComputeCapability(capability);
    return chip != nullptr ? chip->name : std::string_view();
  };
  EXPECT_EQ(name("7.5"), "TU104");
  EXPECT_EQ(name("8.6"), "GA102");
  EXPECT_EQ(name("12.0"), "GB202");
  EXPECT_EQ(name("6.0"), "");  // no counters
  EXPECT_EQ(name(""), "");
  EXPECT_EQ(name("8"), "");
}

TEST(Chips, UnknownOnesHaveNothing) {
  EXPECT_TRUE(FlopFormula("XX100").empty());
  EXPECT_TRUE(FlopFormula("").empty());
  EXPECT_EQ(FlopPerTensorInstruction("XX100"), 0);
  EXPECT_EQ(FlopPerTensorInstruction("GV100"), 512);
  EXPECT_TRUE(TensorPathNames("XX100").legacy.empty());
  EXPECT_FALSE(HasLegacyPath("GA100", Precision::kFp16Tensor));
  EXPECT_TRUE(HasLegacyPath("GH100", Precision::kFp16Tensor));
  EXPECT_FALSE(HasLegacyPath("GH100", Precision::kFp8Tensor));
}

}  // namespace
}  // namespace rfinject
