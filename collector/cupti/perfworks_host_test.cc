// File: perfworks_host_test.cc
//
// Tests against the real libnvperf_host.so, which needs no GPU: the legacy profiler must plan what the Range Profiler
// would, in one pass a group.
#include "collector/cupti/perfworks_host.h"

#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "collector/cupti/backend_choice.h"
#include "collector/cupti/planner.h"
#include "collector/cupti/real_cupti.h"

#ifdef __SANITIZE_ADDRESS__
// With the host libraries of both APIs in a process, LeakSanitizer itself crashes while it walks thread-local
// storage.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace rfinject::cupti {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class RealPerfworks : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    api_ = RealCupti();
    if (api_ == nullptr) GTEST_SKIP() << "no libcupti.so.13 on this machine";
    int result = 0;
    host_ = MakePerfworksHost(*api_, GetParam(), {}, &result);
    ASSERT_NE(host_, nullptr) << GetParam() << ": " << result;
  }

  const Api* api_ = nullptr;
  std::unique_ptr<PerfworksHost> host_;
};

TEST_P(RealPerfworks, PlansTheSameGroupsAsCuptisOwnHost) {
  PlanRequest request;
  request.metrics = SelectMetrics(host_->BaseMetrics(), GetParam());
  Plan plan = MakePlan(*host_, request);
  ASSERT_THAT(plan.groups, Not(IsEmpty()));
  for (const CounterGroup& group : plan.groups) {
    EXPECT_EQ(host_->Passes(group.metrics), 1u);
    EXPECT_THAT(host_->ConfigImage(group.metrics), Not(IsEmpty()));
    EXPECT_THAT(host_->CounterDataPrefix(group.metrics), Not(IsEmpty()));
  }

  int result = 0;
  auto other = MakeProfilerHost(*api_, GetParam(), HostKind::kRangeProfiler, {}, &result);
  ASSERT_NE(other, nullptr) << result;
  PlanRequest same;
  same.metrics = SelectMetrics(other->BaseMetrics(), GetParam());
  EXPECT_EQ(request.metrics.tensor, same.metrics.tensor);
  Plan theirs = MakePlan(*other, same);
  ASSERT_THAT(plan.groups, SizeIs(theirs.groups.size()));
  for (size_t i = 0; i < plan.groups.size(); ++i) EXPECT_EQ(plan.groups[i].metrics, theirs.groups[i].metrics);
}

TEST_P(RealPerfworks, CountsPassesBeyondTheFirst) {
  EXPECT_EQ(host_->Passes(std::vector<std::string>{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                                                   "dram__bytes_read.sum"}),
            2u);
}

TEST_P(RealPerfworks, AMetricThatIsNotThereTakesNoPasses) {
  const std::vector<std::string> unknown = {"dram__bytes_read.sum", "no_such_metric.sum"};
  EXPECT_EQ(host_->Passes(unknown), 0u);
  EXPECT_THAT(host_->ConfigImage(unknown), IsEmpty());
  EXPECT_THAT(host_->CounterDataPrefix(unknown), IsEmpty());
  EXPECT_EQ(host_->Passes({}), 0u);
}

INSTANTIATE_TEST_SUITE_P(Chips, RealPerfworks, ::testing::Values("GV100", "TU104", "GA100", "GH100", "GB100"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PerfworksHost, AnUnknownChipIsNamedAsOne) {
  const Api* api = RealCupti();
  if (api == nullptr) GTEST_SKIP() << "no libcupti.so.13 on this machine";
  int result = 0;
  EXPECT_EQ(MakePerfworksHost(*api, "XX999", {}, &result), nullptr);
  EXPECT_EQ(result, CUPTI_ERROR_INVALID_CHIP_NAME);
}

TEST(PerfworksHost, WithoutItsLibraryThereIsNone) {
  int result = 0;
  EXPECT_EQ(MakePerfworksHost(Api(), "GV100", {}, &result), nullptr);
  EXPECT_EQ(result, CUPTI_ERROR_NOT_INITIALIZED);
}

// The folder of a CUPTI without a host library of its own: RFINJECT_TEST_OLD_CUPTI, else that of a torch of CUDA 12.4
// which scripts/torch_venv has fetched (into its cache, below lib/pythonX/site-packages); empty when there is none.
std::string OldCuptiFolder() {
  if (const char* folder = getenv("RFINJECT_TEST_OLD_CUPTI")) return folder;
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  const std::string root = cache != nullptr ? cache : std::string(home != nullptr ? home : "") + "/.cache";
  glob_t found = {};
  std::string folder;
  if (glob((root + "/rfinject/torch-2.6-*/lib/python*/site-packages/nvidia/cuda_cupti/lib").c_str(), 0, nullptr,
           &found) == 0) {
    folder = found.gl_pathv[0];
  }
  globfree(&found);
  return folder;
}

// Its library and the toolkit's have one SONAME, so this test needs a process of its own, as gtest_discover_tests
// gives it.
TEST(OldPerfworks, PlansInSinglePasses) {
  const std::string folder = OldCuptiFolder();
  if (folder.empty())
    GTEST_SKIP() << "no CUPTI 12.4 (scripts/torch_venv 2.6), and RFINJECT_TEST_OLD_CUPTI is not set";
  LoadOptions options;
  options.folders = {folder};
  options.cuda_major = access((options.folders[0] + "/libcupti.so.12").c_str(), R_OK) == 0 ? 12 : 11;
  LoadResult loaded = LoadApi(options);
  ASSERT_EQ(loaded.status, LoadStatus::kOk) << loaded.error;
  ASSERT_EQ(loaded.api.path.rfind(folder, 0), 0u) << loaded.api.path;
  EXPECT_TRUE(loaded.api.has(kLegacyProfiler | kPerfworksHost)) << FeatureNames(loaded.api.features);
  for (const char* chip : {"GV100", "GA100", "GH100"}) {
    int result = 0;
    auto host = MakePerfworksHost(loaded.api, chip, {}, &result);
    // CUPTI 11.7 is older than that GPU.
    if (chip == std::string("GH100") && result == CUPTI_ERROR_INVALID_CHIP_NAME) continue;
    ASSERT_NE(host, nullptr) << chip << ": " << result;
    PlanRequest request;
    request.metrics = SelectMetrics(host->BaseMetrics(), chip);
    EXPECT_THAT(request.metrics.base, SizeIs(6)) << chip;
    EXPECT_THAT(request.metrics.scalar, SizeIs(9)) << chip;
    // On GV100 there always is one; elsewhere none before 12.2 update 2.
    EXPECT_TRUE(chip != std::string("GV100") || !request.metrics.tensor.empty());
    Plan plan = MakePlan(*host, request);
    EXPECT_GE(plan.groups.size(), 2u);
    for (const CounterGroup& group : plan.groups) {
      EXPECT_EQ(host->Passes(group.metrics), 1u) << chip;
      EXPECT_THAT(host->ConfigImage(group.metrics), Not(IsEmpty())) << chip;
      EXPECT_THAT(host->CounterDataPrefix(group.metrics), Not(IsEmpty())) << chip;
    }
  }
}

TEST(ChooseBackend, TakesTheRangeProfilerWhereItIsDocumented) {
  constexpr uint32_t kLegacy = kLegacyProfiler | kPerfworksHost;
  constexpr uint32_t kBoth = kLegacy | kRangeProfiler | kProfilerHost;
  auto kind = [](uint32_t features, int major, int minor, const char* mode) {
    return ChooseBackend(features, major, minor, mode).kind;
  };
  EXPECT_EQ(kind(kBoth, 8, 0, "auto"), BackendKind::kRangeProfiler);
  EXPECT_EQ(kind(kBoth, 7, 5, "auto"), BackendKind::kRangeProfiler);
  EXPECT_EQ(kind(kBoth, 7, 0, "auto"), BackendKind::kLegacyProfiler);
  EXPECT_EQ(kind(kBoth, 7, 0, "range"), BackendKind::kRangeProfiler);
  EXPECT_EQ(kind(kBoth, 0, 0, ""), BackendKind::kRangeProfiler);  // the driver did not say which GPU it is
  EXPECT_EQ(kind(kBoth, 9, 0, "legacy"), BackendKind::kLegacyProfiler);
  EXPECT_EQ(kind(kLegacy, 9, 0, "auto"), BackendKind::kLegacyProfiler);
  EXPECT_EQ(kind(kLegacy, 9, 0, "range"), BackendKind::kLegacyProfiler);
  EXPECT_EQ(kind(kLegacyProfiler, 7, 0, "auto"), BackendKind::kNone);
  EXPECT_EQ(kind(kRangeProfiler | kProfilerHost, 7, 0, "auto"), BackendKind::kRangeProfiler);
  EXPECT_EQ(kind(kRangeProfiler | kProfilerHost, 8, 0, "legacy"), BackendKind::kNone);
  EXPECT_EQ(kind(0, 8, 0, "auto"), BackendKind::kNone);
  // A reason is given where the choice is not the usual one.
  EXPECT_STREQ(ChooseBackend(kBoth, 8, 0, "auto").reason, "");
  EXPECT_STRNE(ChooseBackend(kBoth, 7, 0, "auto").reason, "");
  EXPECT_STRNE(ChooseBackend(0, 8, 0, "auto").reason, "");
}

TEST(CuptiResultOf, KeepsWhatHasAConditionOfItsOwn) {
  EXPECT_EQ(CuptiResultOf(NVPA_STATUS_SUCCESS), CUPTI_SUCCESS);
  EXPECT_EQ(CuptiResultOf(NVPA_STATUS_NOT_LOADED), CUPTI_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(CuptiResultOf(NVPA_STATUS_INSUFFICIENT_PRIVILEGE), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  EXPECT_EQ(CuptiResultOf(NVPA_STATUS_RESOURCE_UNAVAILABLE), CUPTI_ERROR_HARDWARE_BUSY);
  EXPECT_EQ(CuptiResultOf(NVPA_STATUS_UNSUPPORTED_GPU), CUPTI_ERROR_INVALID_CHIP_NAME);
  EXPECT_EQ(CuptiResultOf(999), CUPTI_ERROR_UNKNOWN);
}

}  // namespace
}  // namespace rfinject::cupti
