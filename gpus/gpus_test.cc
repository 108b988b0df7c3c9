#include "gpus/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gpus/chips.h"

namespace rfinject {
namespace {

double Peak(const Gpu& gpu, Precision precision) { return gpu.peak[static_cast<size_t>(precision)]; }

std::vector<std::string> Nearest(std::string_view name, size_t count) {
  std::vector<const Gpu*> out(count);
  std::vector<std::string> names;
  for (const Gpu* gpu : NearestGpus(name, out)) names.emplace_back(gpu->name);
  return names;
}

TEST(GpusTest, EveryRowIsParsed) {
  std::ifstream csv(RFINJECT_GPUS_CSV_PATH);
  size_t rows = 0;
  for (std::string line; std::getline(csv, line);) rows += !line.empty() && line[0] != '#' && line[0] != 'g';
  ASSERT_GT(rows, 0u);
  EXPECT_EQ(AllGpus().size(), rows);
  std::set<std::string_view> names;
  for (const Gpu& gpu : AllGpus()) {
    SCOPED_TRACE(std::string(gpu.name));
    EXPECT_TRUE(names.insert(gpu.name).second) << "two rows of one name";
    EXPECT_GE(gpu.cc_major, 6);
    EXPECT_GT(gpu.sm_count, 30);
    EXPECT_GT(gpu.boost_hz, 1e9);
    EXPECT_LT(gpu.boost_hz, 3e9);
    EXPECT_GT(Peak(gpu, Precision::kFp32), 1e12);
    EXPECT_GT(gpu.dram_bytes_per_s, 1e11);
    EXPECT_GT(gpu.l2_bytes, 1e6);
    EXPECT_GT(gpu.pcie_bytes_per_s, 15e9);
    EXPECT_LT(gpu.pcie_bytes_per_s, 64e9);
    // A card has NVLink only by a bridge, which NVL boards are sold with.
    const auto is = [&gpu](std::string_view form) { return gpu.name.find(form) != std::string_view::npos; };
    const bool has_links = is("SXM") || is("DGXS") || is("NVL");
    EXPECT_EQ(gpu.nvlink_bytes_per_s > gpu.pcie_bytes_per_s, has_links);
    EXPECT_EQ(HasEstimates(gpu), gpu.name.find("MI") != 0);
    EXPECT_FALSE(gpu.link_source.empty());
    EXPECT_THAT(std::string(gpu.check), testing::AnyOf("ok", "ok*", "no"));
    EXPECT_FALSE(gpu.source.empty());
    if (!HasEstimates(gpu)) continue;
    // Tensor cores came with Volta, TF32, BF16 and FP64 ones with Ampere.
    EXPECT_EQ(Peak(gpu, Precision::kFp16Tensor) > 0, gpu.cc_major >= 7);
    EXPECT_EQ(Peak(gpu, Precision::kBf16Tensor) > 0, gpu.cc_major >= 8);
    EXPECT_EQ(Peak(gpu, Precision::kTf32Tensor) > 0, gpu.cc_major >= 8);
    EXPECT_EQ(Peak(gpu, Precision::kFp8Tensor) > 0, gpu.cc_major * 10 + gpu.cc_minor >= 89);
  }
}

TEST(GpusTest, NumbersAreExact) {
  const Gpu* gpu = FindGpu("A100-SXM4-40GB");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->chip, "GA100");
  EXPECT_EQ(gpu->cc_major, 8);
  EXPECT_EQ(gpu->cc_minor, 0);
  EXPECT_EQ(gpu->sm_count, 108);
  EXPECT_EQ(gpu->boost_hz, 1410e6);
  EXPECT_EQ(gpu->peak, (std::array<double, kPrecisionCount>{9.7e12, 19.5e12, 78e12, 156e12, 312e12, 312e12, 0,
                                                            19.5e12, 624e12}));
  EXPECT_EQ(gpu->dram_bytes_per_s, 1555e9);
  EXPECT_EQ(gpu->l2_bytes, 41943040);
  EXPECT_DOUBLE_EQ(gpu->pcie_bytes_per_s, 16 * 16e9 / 8 * 128 / 130);
  EXPECT_EQ(gpu->nvlink_bytes_per_s, 300e9);
  EXPECT_EQ(gpu->check, "ok");
  EXPECT_EQ(gpu->source, "A;L;M;C");
  EXPECT_EQ(gpu->note, "624 / 312(TF32) are the sparse numbers");
}

TEST(GpusTest, WhatBenchmarksReachedIsBelowTheDatasheet) {
  size_t known = 0;
  for (const Gpu& gpu : AllGpus()) {
    SCOPED_TRACE(std::string(gpu.name));
    bool any = false;
    const auto check = [&](double reached, double datasheet) {
      if (reached <= 0) return;
      any = true;
      ++known;
      EXPECT_LT(reached, datasheet);
      // AMD's matrix units come to three fifths of their peak, for power (mag-/gpu_benchmark).
      EXPECT_GT(reached, (gpu.chip.starts_with("gfx") ? 0.5 : 0.7) * datasheet);
    };
    for (size_t p = 0; p < kPrecisionCount; ++p) check(gpu.empirical_peak[p], gpu.peak[p]);
    check(gpu.empirical_dram_bytes_per_s, gpu.dram_bytes_per_s);
    check(gpu.empirical_l1_bytes_per_s, gpu.l1_bytes_per_cycle * gpu.sm_count * gpu.boost_hz);
    if (gpu.empirical_l2_bytes_per_s > 0) {
      EXPECT_GT(gpu.empirical_l2_bytes_per_s, gpu.dram_bytes_per_s);
      EXPECT_LT(gpu.empirical_l2_bytes_per_s, gpu.l1_bytes_per_cycle * gpu.sm_count * gpu.boost_hz);
    }
    EXPECT_EQ(any || gpu.empirical_l2_bytes_per_s > 0, !gpu.empirical_source.empty());
  }
  EXPECT_GT(known, 12u);
  EXPECT_EQ(FindGpu("H200-SXM-141GB")->empirical_l2_bytes_per_s, 10.2e12);
}

TEST(GpusTest, FindIgnoresCaseAndNothingElse) {
  EXPECT_EQ(FindGpu("v100-sxm2-16gb"), FindGpu("V100-SXM2-16GB"));
  ASSERT_NE(FindGpu("t4"), nullptr);
  EXPECT_EQ(FindGpu("t4")->name, "T4");
  EXPECT_EQ(FindGpu("A100"), nullptr);
  EXPECT_EQ(FindGpu(""), nullptr);
  EXPECT_EQ(FindGpu("T4 "), nullptr);
}

TEST(GpusTest, AKindOfBoardMeansTheCommonest) {
  const auto board = [](std::string_view name) {
    const Gpu* gpu = FindBoard(name);
    return gpu != nullptr ? std::string(gpu->name) : std::string("none");
  };
  EXPECT_EQ(board("A100"), "A100-SXM4-40GB");
  EXPECT_EQ(board("v100"), "V100-SXM2-16GB");
  EXPECT_EQ(board("H100"), "H100-SXM5-80GB");
  EXPECT_EQ(board("h100-pcie"), "H100-PCIe-80GB");
  EXPECT_EQ(board("B200"), "B200-SXM-180GB");
  EXPECT_EQ(board("T4"), "T4");
  EXPECT_EQ(board("V100-PCIe"), "V100-PCIe");
  EXPECT_EQ(board("A10"), "A10");
  EXPECT_EQ(board("A"), "none");
  EXPECT_EQ(board("A100-SXM4-"), "none");
  EXPECT_EQ(board(""), "none");
}

TEST(GpusTest, WhatIsUnlikeAllIsNearNone) {
  EXPECT_THAT(Nearest("foo", 3), testing::IsEmpty());
  EXPECT_THAT(Nearest("", 3), testing::IsEmpty());
  EXPECT_THAT(Nearest("T5", 3), testing::Contains("T4"));
}

TEST(GpusTest, PartOfANameIsNearest) {
  EXPECT_THAT(Nearest("A100", 4),
              testing::ElementsAre("A100-SXM4-40GB", "A100-SXM4-80GB", "A100-PCIe-40GB", "A100-PCIe-80GB"));
  EXPECT_THAT(Nearest("v100-sxm", 2), testing::ElementsAre("V100-SXM2-16GB", "V100-SXM2-32GB"));
  // Marketing names put words around ours.
  EXPECT_THAT(Nearest("NVIDIA GeForce RTX 4090", 1), testing::ElementsAre("RTX4090"));
  EXPECT_THAT(Nearest("Tesla T4", 1), testing::ElementsAre("T4"));
}

TEST(GpusTest, TypingErrorsFindTheirRow) {
  EXPECT_THAT(Nearest("H10O-SXM5-80GB", 1), testing::ElementsAre("H100-SXM5-80GB"));
  EXPECT_THAT(Nearest("A100-SMX4-80GB", 1), testing::ElementsAre("A100-SXM4-80GB"));
  EXPECT_THAT(Nearest("b20-sxm-180gb", 1), testing::ElementsAre("B200-SXM-180GB"));
}

TEST(GpusTest, NearestTakesAnyInput) {
  EXPECT_LE(Nearest(std::string(100000, 'x'), 3).size(), 3u);
  EXPECT_LE(Nearest("A100", 1000).size(), AllGpus().size());
  EXPECT_TRUE(Nearest("A100", 0).empty());
}

// FLOP per compute unit and cycle of the matrix cores (gpus.csv): FP16 1024 and 2048, FP64 and FP32 256.
TEST(GpusTest, PeaksOfAmdFollowFromUnitsAndClock) {
  size_t checked = 0;
  for (const Gpu& gpu : AllGpus()) {
    if (HasEstimates(gpu)) continue;
    SCOPED_TRACE(std::string(gpu.name));
    const double units = gpu.sm_count * gpu.boost_hz;
    EXPECT_NEAR(Peak(gpu, Precision::kFp16Tensor) / units, gpu.chip == "gfx942" ? 2048 : 1024, 3);
    EXPECT_EQ(Peak(gpu, Precision::kBf16Tensor), Peak(gpu, Precision::kFp16Tensor));
    EXPECT_NEAR(Peak(gpu, Precision::kFp32) / units, 256, 1);
    EXPECT_NEAR(Peak(gpu, Precision::kFp64Tensor) / units, 256, 1);
    EXPECT_NEAR(Peak(gpu, Precision::kFp64) / units, 128, 1);
    EXPECT_EQ(Peak(gpu, Precision::kFp8Tensor) > 0, gpu.chip == "gfx942");
    ++checked;
  }
  EXPECT_EQ(checked, 5u);
}

// The boards' peaks follow from the chips' rates (chips.h). A row of a known chip needs nothing here: rows marked
// "ok*" may differ in the two ways that data sheets have, which the row itself tells.
TEST(GpusTest, PeaksFollowFromSmsAndClock) {
  size_t checked = 0;
  for (const Gpu& gpu : AllGpus()) {
    if (gpu.check == "no") continue;
    SCOPED_TRACE(std::string(gpu.name));
    const Chip* const chip = FindChip(gpu.chip);
    ASSERT_NE(chip, nullptr);
    const auto& per_cycle = chip->flop_per_sm_and_cycle;
    if (per_cycle[static_cast<size_t>(Precision::kFp32)] == 0) continue;  // not verified: nothing to derive from
    const auto derived = [&](Precision precision) {
      return per_cycle[static_cast<size_t>(precision)] * gpu.sm_count * gpu.boost_hz;
    };
    double tensor_factor = 1;
    if (gpu.check == "ok*") {
      tensor_factor = Peak(gpu, Precision::kFp16Tensor) / derived(Precision::kFp16Tensor);
      if (chip->tensor_clock) {
        // A clock of their own, which one precision tells and the others must agree with.
        EXPECT_GT(tensor_factor, 0.8);
        EXPECT_LT(tensor_factor, 1);
      } else {
        EXPECT_NEAR(tensor_factor, 0.5, 0.01);  // GeForce halves the rate with FP32 accumulation
        tensor_factor = 0.5;
      }
    }
    for (size_t p = 0; p < kPrecisionCount; ++p) {
      SCOPED_TRACE(kPrecisionNames[p]);
      const auto precision = static_cast<Precision>(p);
      // The FP64 tensor peaks are quoted at the scalar clock.
      const bool tensor = precision >= Precision::kTf32Tensor && precision != Precision::kFp64Tensor;
      // GeForce halves floating point alone.
      const bool whole = precision == Precision::kInt8Tensor && !chip->tensor_clock;
      const double expected = derived(precision) * (tensor && !whole ? tensor_factor : 1);
      if (expected == 0) {
        EXPECT_EQ(gpu.peak[p], 0);
        continue;
      }
      // 2 %: the datasheets round to two or three digits.
      EXPECT_NEAR(gpu.peak[p] / expected, 1, 0.02) << gpu.peak[p] << " in the table, derived " << expected;
      ++checked;
    }
  }
  EXPECT_GT(checked, 80u);
}

}  // namespace
}  // namespace rfinject
