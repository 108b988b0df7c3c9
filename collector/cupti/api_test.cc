#include "collector/cupti/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "collector/cupti/real_cupti.h"

namespace rfinject::cupti {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(VersionName, KnowsOldAndNewNumbers) {
  EXPECT_EQ(VersionName(18), "11.8");
  EXPECT_EQ(VersionName(24), "12.6");
  EXPECT_EQ(VersionName(130000), "13.0");
  EXPECT_EQ(VersionName(130001), "13.0.1");
  EXPECT_EQ(VersionName(130200), "13.2");
  EXPECT_EQ(VersionName(99), "API 99");
  EXPECT_EQ(VersionName(0), "unknown");
}

TEST(FeatureNames, AreJoined) {
  EXPECT_EQ(FeatureNames(0), "");
  EXPECT_EQ(FeatureNames(kCallbacks | kRangeProfiler), "callbacks+range-profiler");
}

TEST(KernelRecord, TimesThatMeanNothingAreRecognised) {
  KernelRecordPrefix record = {};
  EXPECT_FALSE(HasValidTime(record));
  record.start = 10;
  record.end = 9;
  EXPECT_FALSE(HasValidTime(record));
  record.end = 10;
  EXPECT_TRUE(HasValidTime(record));
  record.end = UINT64_MAX;
  EXPECT_FALSE(HasValidTime(record));
}

// Runs before anything has loaded a libcupti: gtest_discover_tests gives every test a process of its own.
TEST(LoadApi, AMajorThatIsNotThereIsNotReplacedByAnother) {
  LoadOptions options;
  options.cuda_major = 77;
  if (!RealCuptiFolder().empty()) options.folders = {RealCuptiFolder()};
  LoadResult result = LoadApi(options);
  EXPECT_EQ(result.status, LoadStatus::kNotFound);
  EXPECT_THAT(result.error, HasSubstr("77"));
}

TEST(LoadApi, FillsTheTableFromTheToolkit) {
  const Api* api = RealCupti();
  if (api == nullptr) GTEST_SKIP() << "no libcupti.so.13 on this machine";
  EXPECT_THAT(api->path, EndsWith("/libcupti.so.13"));
  EXPECT_GE(api->version, 130000u);
  EXPECT_TRUE(api->has(kCallbacks | kActivity | kProfilerHost | kRangeProfiler | kPmSampling | kLegacyProfiler |
                       kPerfworksHost | kSubscribeV2))
      << FeatureNames(api->features);
  EXPECT_EQ(api->perfworks_remark, "");

  // The second time it is resident, and the same one is found although no folder is given.
  LoadResult again = LoadApi({});
  EXPECT_EQ(again.status, LoadStatus::kOk);
  EXPECT_EQ(again.api.path, api->path);
  EXPECT_EQ(again.api.version, 0u);  // nothing of CUPTI is called unless the driver is ready
  EXPECT_EQ(again.api.features, api->features);
}

// Exit status and stdout of loader_probe without the loader's cache and paths.
std::pair<int, std::string> Probe(const char* mode) {
  std::string command =
      "LD_LIBRARY_PATH= LD_PRELOAD= " RFINJECT_TEST_LD_SO " --inhibit-cache " RFINJECT_TEST_PROBE " ";
  command += mode;
  command += " '" + RealCuptiFolder() + "/libcupti.so.13'";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, ""};
  std::string out;
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe) != nullptr) out += buffer;
  int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

TEST(LoadApi, OpensPerfworksWhereTheLoaderWouldNotFindIt) {
  if (RealCuptiFolder().empty()) GTEST_SKIP() << "no libcupti.so.13 on this machine";
  auto [bare_status, bare] = Probe("bare");
  if (bare_status == 3) GTEST_SKIP() << "libnvperf_host.so lies in the loader's default folders and cannot be hidden";
  ASSERT_EQ(bare_status, 0);
  EXPECT_EQ(bare, "15\n") << "the trap is gone: CUPTI finds libnvperf_host.so beside itself";
  auto [status, ours] = Probe("ours");
  ASSERT_EQ(status, 0);
  EXPECT_EQ(ours, "0\n");
}

}  // namespace
}  // namespace rfinject::cupti
