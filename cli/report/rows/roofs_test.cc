#include "cli/report/rows/roofs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/report/rows/picture_data.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHmma[] = "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum";
constexpr char kHgmma[] = "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum";
constexpr double kH100Bf16 = 989.4e12;

struct Counted {
  const char* metric;
  uint64_t value;
};

// One launch of one kernel with these counters.
Report Measured(const char* gpu, std::initializer_list<Counted> counters, const RoofOptions& roofs = {}) {
  Profile profile;
  cli::Run run;
  run.key.source = SourceKind::kImported;
  run.key.gpu = gpu;
  run.devices = {DeviceInfo{.name = gpu, .chip = std::string(FindGpu(gpu)->chip)}};
  run.steps.steps = 1;
  LaunchKey key;
  key.kernel = "k";
  key.layer = LayerKey{"Net", "conv"};
  LaunchStats& stats = run.launches[key];
  stats.launches = 1;
  for (const Counted& counter : counters) {
    stats.metrics[counter.metric].Add(counter.value);
    profile.metrics[counter.metric] = MetricInfo{.name = counter.metric, .unit = "", .scale = 1};
  }
  return FoldRun(profile, run, MachineFor(run), {.roofs = roofs});
}

const RoofLine* Find(const std::vector<RoofLine>& roofs, RoofKind kind, MemoryLevel level, Precision precision,
                     std::string_view path = {}) {
  const auto found = std::find_if(roofs.begin(), roofs.end(), [&](const RoofLine& roof) {
    return roof.kind == kind && roof.level == level && roof.path == path &&
           (roof.peak_flop_per_s > 0 ? roof.precision == precision : level != MemoryLevel::kDram);
  });
  return found == roofs.end() ? nullptr : &*found;
}

std::vector<std::string> Ids(const Report& report) {
  std::vector<std::string> ids;
  for (const Alarm& alarm : report.alarms) ids.push_back(alarm.id);
  return ids;
}

TEST(Roofs, FlopOverTheLegacyPathAreHeldAgainstThatPathsPeak) {
  // 1 ms at 600 TFLOP/s: 61 % of the wgmma peak, 91 % of the mma peak.
  const Report wgmma = Measured("H100-SXM5-80GB", {{kHgmma, 600'000'000'000}, {"gpu__time_duration.sum", 1'000'000}});
  const Report mma = Measured("H100-SXM5-80GB", {{kHmma, 600'000'000'000}, {"gpu__time_duration.sum", 1'000'000}});
  EXPECT_NEAR(wgmma.total.derived.attainable_flop_per_s, kH100Bf16, 1);
  EXPECT_NEAR(mma.total.derived.attainable_flop_per_s, kH100Bf16 * 2 / 3, 1);
  EXPECT_EQ(wgmma.total.sums.total_legacy_flop(), 0);
  EXPECT_EQ(mma.total.sums.total_legacy_flop(), 6e11);
  EXPECT_EQ(mma.total.sums.total_flop(), 6e11);
  EXPECT_THAT(FactsText(mma)[1], HasSubstr("100 % of it over the mma path"));
  EXPECT_THAT(FactsText(wgmma)[1], Not(HasSubstr("path")));
  const RoofLine* own = Find(mma.roofs, RoofKind::kDatasheet, MemoryLevel::kDram, Precision::kBf16Tensor, "wgmma");
  const RoofLine* legacy = Find(mma.roofs, RoofKind::kDatasheet, MemoryLevel::kDram, Precision::kBf16Tensor, "mma");
  ASSERT_NE(own, nullptr);
  ASSERT_NE(legacy, nullptr);
  EXPECT_FALSE(own->used);
  EXPECT_TRUE(legacy->used);
  EXPECT_EQ(RoofTitle(*legacy) + ", " + RoofRate(*legacy), "BF16 tensor (mma), 659.6 TFLOP/s");
  EXPECT_EQ(RoofTitle(*own) + ", " + RoofRate(*own), "BF16 tensor (wgmma), 989.4 TFLOP/s");
}

TEST(Roofs, TheTwoPathsTakeTurnsOnOneUnit) {
  // Half a ms of work for each path needs a whole one.
  const Report report = Measured(
      "H100-SXM5-80GB", {{kHgmma, 494'700'000'000}, {kHmma, 329'800'000'000}, {"gpu__time_duration.sum", 2'000'000}});
  EXPECT_NEAR(report.total.sums.least_ns(), 1e6, 1);
  EXPECT_THAT(report.alarms, IsEmpty());
}

TEST(Roofs, AboveTheLegacyPeakIsAnAlarmThoughBelowTheOther) {
  const Report report = Measured(
      "H100-SXM5-80GB",
      {{kHmma, 800'000'000'000}, {"gpu__time_duration.sum", 1'000'000}, {"dram__bytes_read.sum", 1'000'000'000}});
  EXPECT_THAT(Ids(report), ::testing::ElementsAre("R001", "R003"));
  EXPECT_THAT(report.alarms[1].text, HasSubstr("over the mma path at 800 TFLOP/s, 121 % of that path's peak"));
}

TEST(Roofs, ChipsWithOnePathHaveOneRoofAPrecision) {
  for (const char* gpu : {"V100-SXM2-16GB", "A100-SXM4-40GB", "RTX4090"}) {
    const Machine machine = MachineOf(*FindGpu(gpu));
    EXPECT_EQ(machine.legacy_share, 1);
    for (const RoofLine& roof : MakeRoofs(machine, {}, 0, {})) EXPECT_THAT(roof.path, IsEmpty());
  }
}

TEST(Roofs, KindsAreKeptApart) {
  RoofOptions options;
  EXPECT_TRUE(ParseRoofKinds("all", &options).ok());
  const Report report = Measured("A100-SXM4-40GB",
                                 {{"gpu__time_duration.sum", 1'000'000},
                                  {"gpc__cycles_elapsed.max", 1'128'000},
                                  {"lts__t_bytes.sum", 5'000'000},
                                  {"l1tex__t_bytes.sum", 6'000'000},
                                  {"dram__bytes_read.sum", 1'000'000}},
                                 options);
  EXPECT_NEAR(report.device.sm_hz, 1.128e9, 1);  // 80 % of the boost clock
  const auto peak = [&](RoofKind kind) {
    const RoofLine* roof = Find(report.roofs, kind, MemoryLevel::kDram, Precision::kFp32);
    return roof == nullptr ? 0 : roof->peak_flop_per_s;
  };
  EXPECT_EQ(peak(RoofKind::kDatasheet), 19.5e12);
  EXPECT_NEAR(peak(RoofKind::kMeasuredClock), 0.8 * 19.5e12, 1e6);
  EXPECT_EQ(peak(RoofKind::kEmpirical), 19.1e12);
  EXPECT_EQ(Find(report.roofs, RoofKind::kEmpirical, MemoryLevel::kDram, Precision::kFp32)->bytes_per_s, 1360e9);
  // L1: 128 bytes per SM and cycle. No datasheet tells L2's bandwidth.
  EXPECT_NEAR(Find(report.roofs, RoofKind::kDatasheet, MemoryLevel::kL1, {})->bytes_per_s, 128 * 108 * 1.41e9, 1);
  EXPECT_NEAR(Find(report.roofs, RoofKind::kMeasuredClock, MemoryLevel::kL1, {})->bytes_per_s, 128 * 108 * 1.128e9,
              1);
  EXPECT_EQ(Find(report.roofs, RoofKind::kDatasheet, MemoryLevel::kL2, {}), nullptr);
}

TEST(Roofs, LevelsAreDrawnWhereTheRunHasTheirBytes) {
  RoofOptions options;
  EXPECT_TRUE(ParseRoofKinds("datasheet,empirical", &options).ok());
  const Machine machine = MachineOf(*FindGpu("H200-SXM-141GB"));
  Sums sums;
  sums[Quantity::kDramBytes] = 1;
  EXPECT_EQ(Find(MakeRoofs(machine, sums, 0, options), RoofKind::kEmpirical, MemoryLevel::kL2, {}), nullptr);
  sums[Quantity::kL2Bytes] = 1;
  EXPECT_EQ(Find(MakeRoofs(machine, sums, 0, options), RoofKind::kDatasheet, MemoryLevel::kL1, {}), nullptr);
  const std::vector<RoofLine> roofs = MakeRoofs(machine, sums, 0, options);
  const RoofLine* const l2 = Find(roofs, RoofKind::kEmpirical, MemoryLevel::kL2, {});
  ASSERT_NE(l2, nullptr);
  EXPECT_EQ(RoofTitle(*l2) + ", " + RoofRate(*l2), "L2, 10.2 TB/s");
}

TEST(Roofs, TheClockOfHoppersTensorCoresIsTheirOwn) {
  RoofOptions options;
  EXPECT_TRUE(ParseRoofKinds("clock", &options).ok());
  const std::vector<RoofLine> roofs = MakeRoofs(MachineOf(*FindGpu("H100-SXM5-80GB")), {}, 1830e6, options);
  // 4096 FLOP per SM and cycle, on 132 SMs.
  EXPECT_NEAR(
      Find(roofs, RoofKind::kMeasuredClock, MemoryLevel::kDram, Precision::kBf16Tensor, "wgmma")->peak_flop_per_s,
      4096 * 132 * 1.83e9, 1e6);
  EXPECT_NEAR(Find(roofs, RoofKind::kMeasuredClock, MemoryLevel::kDram, Precision::kFp32)->peak_flop_per_s,
              256 * 132 * 1.83e9, 0.001 * 61e12);
  EXPECT_EQ(Find(roofs, RoofKind::kDatasheet, MemoryLevel::kDram, Precision::kFp32), nullptr);
  // No clock, no roofs at it.
  EXPECT_THAT(MakeRoofs(MachineOf(*FindGpu("H100-SXM5-80GB")), {}, 0, options), IsEmpty());
}

TEST(Roofs, WhatTheUserMeasuredReplacesWhatOthersDid) {
  RoofOptions options;
  EXPECT_TRUE(ParseUserRoofs("fp32=18.5T, dram=1.4 TB/s,tf32_tc=1.3e14", &options).ok());
  EXPECT_TRUE(options.datasheet);
  const std::vector<RoofLine> roofs = MakeRoofs(MachineOf(*FindGpu("A100-SXM4-40GB")), {}, 0, options);
  EXPECT_EQ(Find(roofs, RoofKind::kEmpirical, MemoryLevel::kDram, Precision::kFp32)->peak_flop_per_s, 18.5e12);
  EXPECT_EQ(Find(roofs, RoofKind::kEmpirical, MemoryLevel::kDram, Precision::kTf32Tensor)->peak_flop_per_s, 130e12);
  EXPECT_EQ(Find(roofs, RoofKind::kEmpirical, MemoryLevel::kDram, Precision::kTf32Tensor)->bytes_per_s, 1.4e12);
  EXPECT_EQ(Find(roofs, RoofKind::kDatasheet, MemoryLevel::kDram, Precision::kFp32)->peak_flop_per_s, 19.5e12);
}

TEST(Roofs, AGpuThatNobodyKnowsHasTheUsersRoofs) {
  RoofOptions options;
  EXPECT_TRUE(ParseUserRoofs("fp32=10T,dram=500G", &options).ok());
  const std::vector<RoofLine> roofs = MakeRoofs(Machine{}, {}, 0, options);
  ASSERT_THAT(roofs, SizeIs(1));
  EXPECT_EQ(roofs[0].kind, RoofKind::kEmpirical);
  EXPECT_EQ(RidgeOf(roofs[0]), 20);
}

TEST(Roofs, BytesUnderTheirNewerNamesCount) {
  const Report report = Measured(
      "H100-SXM5-80GB",
      {{"dram__bytes_op_read.sum", 3'000}, {"dram__bytes_op_write.sum", 350}, {"gpu__time_duration.sum", 1'000}});
  EXPECT_EQ(report.total.sums.dram_bytes(), 3350);
}

TEST(Roofs, MistypedOptionsSayWhatIsMeant) {
  RoofOptions options;
  EXPECT_THAT(ParseRoofKinds("datasheet,clocks", &options).message(), HasSubstr("'clocks'"));
  EXPECT_THAT(ParseRoofKinds("", &options).message(), HasSubstr("there are datasheet"));
  for (const char* text : {"fp33=1T", "dram", "=1", ""}) {
    EXPECT_THAT(ParseUserRoofs(text, &options).message(), HasSubstr("NAME is one of fp64, fp32")) << text;
  }
  for (const char* text : {"dram=", "dram=x", "dram=1Q", "dram=-1T", "dram=0", "dram=1 TFLOP/s", "fp32=1TB/s",
                           "dram=1e400", "dram=inf", "dram=nan", "dram=1TT"}) {
    EXPECT_THAT(ParseUserRoofs(text, &options).message(), HasSubstr("SI prefix")) << text;
  }
}

}  // namespace
}  // namespace rfinject::cli
