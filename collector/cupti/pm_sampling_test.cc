// File: pm_sampling_test.cc
//
// Tests which metrics are sampled on which chip, with the real CUPTI host library, which needs no GPU. The rest is
// tested on the simulated GPU (integration_tests/simulated_gpu).
#include "collector/cupti/pm_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collector/cupti/real_cupti.h"
#include "gpus/chips.h"

namespace rfinject::cupti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kTensor = kTensorActiveMetric;

std::vector<std::string> Selected(const char* chip, int* result) {
  const std::unique_ptr<MetricHost> host = MakeProfilerHost(*RealCupti(), chip, HostKind::kPmSampling, {}, result);
  if (host == nullptr) return {};
  std::vector<std::string> metrics = SelectPmMetrics(*host);
  if (metrics.empty()) return {};
  EXPECT_EQ(host->Passes(metrics), 1u) << chip;
  EXPECT_FALSE(host->ConfigImage(metrics).empty()) << chip;
  for (const std::string& metric : metrics) EXPECT_EQ(metric.find("ops_path"), std::string::npos) << "never FLOP";
  return metrics;
}

TEST(SelectPmMetrics, OnePassOnEachChip) {
  if (RealCupti() == nullptr) GTEST_SKIP() << "no CUPTI here";
  int result = 0;
  for (const char* chip : {"GA100", "GA102", "AD102", "GH100", "GB100"}) {
    EXPECT_THAT(Selected(chip, &result), ElementsAre("dram__bytes_read.sum", "dram__bytes_write.sum", kTensor))
        << chip;
  }
  EXPECT_THAT(Selected("TU104", &result), ElementsAre("dram__bytes_read.sum", "dram__bytes_write.sum"));
  EXPECT_THAT(Selected("GB202", &result),
              ElementsAre("dram__bytes_op_read.sum", "dram__bytes_op_write.sum", kTensor));
  for (const Chip& chip : AllChips()) {
    if (chip.pm_trigger == PmTrigger::kNone) continue;
    EXPECT_FALSE(Selected(std::string(chip.name).c_str(), &result).empty()) << chip.name;
  }
#ifndef __SANITIZE_ADDRESS__
  // (CUPTI 13.0 leaks a megabyte where it refuses a chip.)
  EXPECT_THAT(Selected("GV100", &result), IsEmpty());
  EXPECT_EQ(result, CUPTI_ERROR_NOT_SUPPORTED);
#endif
}

TEST(PmSampling, AnOldCuptiIsRefusedWithoutACall) {
  Api api;
  int result = 0;
  EXPECT_EQ(PmSampling::Open(api, 0, &result), nullptr);
  EXPECT_EQ(result, CUPTI_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace rfinject::cupti
