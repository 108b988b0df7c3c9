#include "cli/model/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

std::vector<Probe> ProbesOf(const Gpu& gpu) {
  std::vector<Probe> probes = CalibrationProbes();
  std::erase_if(probes, [&](const Probe& probe) { return !HasUnitFor(gpu, probe); });
  return probes;
}

std::vector<double> TimesBy(const Gpu& gpu, const Calibration& calibration, const std::vector<Probe>& probes) {
  const ExpectedTimes model(gpu, calibration);
  std::vector<double> seconds;
  for (const Probe& probe : probes) seconds.push_back(model.Of(probe.op).expected_s);
  return seconds;
}

void Put(const Gpu& gpu, const std::vector<FittedParameter>& fitted, Calibration* calibration) {
  for (const FittedParameter& one : fitted) calibration->Set(gpu.name, one.family, one.parameter, one.value);
}

// A board that differs from the table's in what calibrate measures is found again, whichever the board.
TEST(FitToProbes, FindsTheParametersThatMadeTheTimes) {
  const std::map<std::string, double> truth = {
      {"gpu,memory_share", 0.61},
      {"softmax,share", 0.55},
      {"layer_norm,share", 0.9},
      {"batch_norm,share", 0.5},
      {"fp32,share", 0.7},
      {"bmm_fp32,rate", 0.8},
      {"softmax,share_persistent", 0.7},
      {"conv_fp32,rate", 0.75},
      {"conv_fp32_dgrad,rate", 0.6},
      {"conv_fp32_wgrad,rate", 0.5},
      {"tensor,share", 0.45},
      {"bmm_tensor,rate", 0.9},
      {"conv_tensor,rate", 0.8},
      {"conv_tensor_dgrad,rate", 0.7},
      {"conv_tensor_wgrad,rate", 0.65},
      {"fp32,burst_ms", 0},
  };
  for (const char* name : {"V100-SXM2-16GB", "T4", "H100-SXM5-80GB"}) {
    SCOPED_TRACE(name);
    const Gpu& gpu = *FindGpu(name);
    Calibration board = Calibration::Shipped();
    for (const auto& [key, value] : truth) {
      const size_t comma = key.find(',');
      board.Set(gpu.name, key.substr(0, comma), key.substr(comma + 1), value);
    }
    const std::vector<Probe> probes = ProbesOf(gpu);
    const std::vector<double> seconds = TimesBy(gpu, board, probes);
    const auto fitted = FitToProbes(gpu, Calibration::Shipped(), probes, seconds);
    Calibration own = Calibration::Shipped();
    Put(gpu, fitted, &own);
    for (const auto& [key, value] : truth) {
      const size_t comma = key.find(',');
      EXPECT_NEAR(*own.Own(name, key.substr(0, comma), key.substr(comma + 1)), value, 0.01 * value) << key;
    }
    const std::vector<double> again = TimesBy(gpu, own, probes);
    for (size_t i = 0; i < probes.size(); ++i) EXPECT_NEAR(again[i] / seconds[i], 1, 0.01) << probes[i].title;
  }
}

// Where 3x3 convolutions take longer than implicit GEMM would, nothing runs Winograd, and all convolutions of the
// pass say how fast implicit GEMM is: none is left out.
TEST(FitToProbes, TakesTheMeanOfAllConvolutionsWhereNoneIsWinograds) {
  for (const char* name : {"V100-SXM2-16GB", "T4", "H100-SXM5-80GB"}) {
    SCOPED_TRACE(name);
    const Gpu& gpu = *FindGpu(name);
    const std::vector<Probe> probes = ProbesOf(gpu);
    std::vector<double> seconds;
    const ExpectedTimes shipped(gpu, Calibration::Shipped());
    for (const Probe& probe : probes) seconds.push_back(shipped.Of(probe.op).ideal_s);
    Calibration own = Calibration::Shipped();
    Put(gpu, FitToProbes(gpu, own, probes, seconds), &own);
    const ExpectedTimes fitted(gpu, own);
    std::map<Pass, double> error;
    for (size_t i = 0; i < probes.size(); ++i) {
      if (probes[i].op.kind != OperatorKind::kConvolution || probes[i].op.precision != Precision::kFp32) continue;
      const ExpectedTime time = fitted.Of(probes[i].op);
      EXPECT_FALSE(time.winograd) << probes[i].title;
      EXPECT_NEAR(time.expected_s / seconds[i], 1, 0.35) << probes[i].title;
      error[probes[i].op.pass] += std::log(time.expected_s / seconds[i]);
    }
    ASSERT_EQ(error.size(), 3U);
    for (const auto& [pass, sum] : error) EXPECT_NEAR(sum, 0, 0.03) << static_cast<int>(pass);
  }
}

TEST(FitToProbes, SaysThatTheFamiliesAreTheGpusOwn) {
  const Gpu& gpu = *FindGpu("L4");
  const std::vector<Probe> probes = ProbesOf(gpu);
  const std::vector<double> seconds = TimesBy(gpu, Calibration::Shipped(), probes);
  Calibration own = Calibration::Shipped();
  Put(gpu, FitToProbes(gpu, own, probes, seconds), &own);
  const ExpectedTimes before(gpu, Calibration::Shipped()), after(gpu, own);
  for (const Probe& probe : probes) {
    EXPECT_EQ(before.Of(probe.op).calibrated, Calibrated::kFamily);
    EXPECT_EQ(after.Of(probe.op).calibrated, Calibrated::kGpu) << probe.title;
  }
}

// A chip without tensor cores has no times of them, and gets no parameters of them.
TEST(FitToProbes, LeavesOutUnitsThatTheGpuLacks) {
  const Gpu& gpu = *FindGpu("P100-PCIe-16GB");
  const std::vector<Probe> probes = ProbesOf(gpu);
  ASSERT_LT(probes.size(), CalibrationProbes().size());
  for (const FittedParameter& one :
       FitToProbes(gpu, Calibration::Shipped(), probes, TimesBy(gpu, Calibration::Shipped(), probes))) {
    EXPECT_EQ(one.family.find("tensor"), std::string_view::npos) << one.family;
  }
}

// Whatever the times are, what is written can be read; a GPU that nothing describes is no reason for nonsense.
TEST(FitToProbes, StaysWithinTheBoundsOfTheFile) {
  const Gpu& gpu = *FindGpu("A100-SXM4-80GB");
  const std::vector<Probe> probes = ProbesOf(gpu);
  for (const double seconds : {1e-9, 100.0}) {
    const auto fitted = FitToProbes(gpu, Calibration::Shipped(), probes, std::vector<double>(probes.size(), seconds));
    for (const FittedParameter& one : fitted) {
      if (one.parameter == "rows" || one.parameter == "burst_ms") continue;
      EXPECT_GE(one.value, kLeastShare) << one.family << " " << one.parameter;
      EXPECT_LE(one.value, kMostShare) << one.family << " " << one.parameter;
    }
  }
}

// The host launches ahead of a kernel that takes 0.05 ms or more; a minute is enough for all of them.
TEST(CalibrationProbes, AreNeitherShortNorLong) {
  for (const Gpu& gpu : AllGpus()) {
    if (!HasEstimates(gpu)) continue;
    const ExpectedTimes model(gpu, Calibration::Shipped());
    for (const Probe& probe : ProbesOf(gpu)) {
      const double seconds = model.Of(probe.op).expected_s;
      EXPECT_GT(seconds, 0.05e-3) << gpu.name << ": " << probe.title;
      EXPECT_LT(seconds, 0.15) << gpu.name << ": " << probe.title;
    }
  }
}

}  // namespace
}  // namespace rfinject::cli
