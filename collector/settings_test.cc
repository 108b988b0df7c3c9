#include "collector/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "collector/output_path.h"

namespace rfinject {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  Settings settings;
  std::string errors;
};

Result Parse(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  Result result;
  result.settings = ParseSettings(environment.data(), &result.errors);
  return result;
}

TEST(Settings, DefaultsWhereNothingIsSet) {
  const Result r = Parse({"PATH=/bin", "HOME=/root"});
  EXPECT_EQ(r.errors, "");
  EXPECT_THAT(r.settings.output, StartsWith("/"));
  EXPECT_THAT(r.settings.output, EndsWith("/rfinject-out/"));
  EXPECT_EQ(r.settings.skip, 0u);
  EXPECT_EQ(r.settings.steps, 0u);
  EXPECT_EQ(r.settings.overhead_percent, 1);
  EXPECT_EQ(r.settings.verbosity, 0);
  EXPECT_FALSE(r.settings.kill);
  EXPECT_FALSE(r.settings.disabled);
}

TEST(Settings, EverythingIsRead) {
  const Result r = Parse({"RFINJECT_OUTPUT=/o/%p.rfx", "RFINJECT_ESTIMATE=V100-SXM2-16GB", "RFINJECT_SKIP=2",
                          "RFINJECT_STEPS=18446744073709551615", "RFINJECT_KILL=1", "RFINJECT_OVERHEAD=2.25",
                          "RFINJECT_LOG=verbose", "RFINJECT_METRICS=a,b", "RFINJECT_TIER=D", "RFINJECT_MODE=range",
                          "RFINJECT_OPERATORS=all", "RFINJECT_DISABLE=1", "RFINJECT_LATEST=1", "RFINJECT_JOB=a.1",
                          "RFINJECT_RANKS=0,12", "RFINJECT_LAUNCHED=77", "RFINJECT_LIBRARY=/lib/librfinject.so"});
  EXPECT_EQ(r.errors, "");
  EXPECT_EQ(r.settings.output, "/o/%p.rfx");
  EXPECT_EQ(r.settings.estimate, "V100-SXM2-16GB");
  EXPECT_EQ(r.settings.skip, 2u);
  EXPECT_EQ(r.settings.steps, UINT64_MAX);
  EXPECT_TRUE(r.settings.kill);
  EXPECT_EQ(r.settings.overhead_percent, 2.25);
  EXPECT_EQ(r.settings.verbosity, 1);
  EXPECT_EQ(r.settings.metrics, "a,b");
  EXPECT_EQ(r.settings.tier, "D");
  EXPECT_EQ(r.settings.operators, "all");
  EXPECT_EQ(r.settings.mode, "range");
  EXPECT_TRUE(r.settings.disabled);
  EXPECT_TRUE(r.settings.link_latest);
  EXPECT_EQ(r.settings.job, "a.1");
  EXPECT_EQ(r.settings.ranks, "0,12");
  EXPECT_EQ(r.settings.launched, 77u);
}

TEST(Settings, BadValuesKeepTheDefaultAndAreNamed) {
  for (const char* bad : {"RFINJECT_SKIP=-1",
                          "RFINJECT_SKIP= 1",
                          "RFINJECT_SKIP=1x",
                          "RFINJECT_STEPS=0x10",
                          "RFINJECT_STEPS=99999999999999999999",
                          "RFINJECT_KILL=yes",
                          "RFINJECT_OVERHEAD=-1",
                          "RFINJECT_OVERHEAD=1,5",
                          "RFINJECT_OVERHEAD=.",
                          "RFINJECT_OVERHEAD=101",
                          "RFINJECT_LOG=loud",
                          "RFINJECT_TIER=G",
                          "RFINJECT_TIER=AB",
                          "RFINJECT_MODE=fast",
                          "RFINJECT_OPERATORS=some",
                          "RFINJECT_DISABLE=2",
                          "RFINJECT_STEP=3",
                          "RFINJECT_RANKS=0,",
                          "RFINJECT_RANKS=0;1",
                          "RFINJECT_RANKS=4294967296",
                          "RFINJECT_RANKS=none"}) {
    const Result r = Parse({bad});
    EXPECT_THAT(r.errors, StartsWith(std::string(bad) + ": ")) << bad;
    EXPECT_EQ(r.settings.skip, 0u) << bad;
    EXPECT_EQ(r.settings.steps, 0u) << bad;
    EXPECT_EQ(r.settings.overhead_percent, 1) << bad;
    EXPECT_EQ(r.settings.verbosity, 0) << bad;
    EXPECT_EQ(r.settings.tier + r.settings.mode, "") << bad;
    EXPECT_FALSE(r.settings.kill || r.settings.disabled) << bad;
  }
}

TEST(Settings, OneLineForEachError) {
  const Result r = Parse({"RFINJECT_SKIP=a", "RFINJECT_NONSENSE=1"});
  EXPECT_EQ(r.errors,
            "RFINJECT_SKIP=a: a number of steps is wanted\n"
            "RFINJECT_NONSENSE=1: no such setting");
}

TEST(Settings, AnEmptyValueIsAnUnsetOne) {
  const Result r = Parse({"RFINJECT_OUTPUT=", "RFINJECT_SKIP=", "RFINJECT_KILL=", "RFINJECT_OVERHEAD=",
                          "RFINJECT_LOG=", "RFINJECT_TIER=", "RFINJECT_MODE=", "RFINJECT_DISABLE="});
  EXPECT_EQ(r.errors, "");
  EXPECT_THAT(r.settings.output, EndsWith("/rfinject-out/"));
  EXPECT_EQ(r.settings.overhead_percent, 1);
}

TEST(Settings, LogIsAWordOrANumber) {
  EXPECT_EQ(Parse({"RFINJECT_LOG=quiet"}).settings.verbosity, -1);
  EXPECT_EQ(Parse({"RFINJECT_LOG=-1"}).settings.verbosity, -1);
  EXPECT_EQ(Parse({"RFINJECT_LOG=0"}).settings.verbosity, 0);
  EXPECT_EQ(Parse({"RFINJECT_LOG=debug"}).settings.verbosity, 2);
  EXPECT_EQ(Parse({"RFINJECT_LOG=2"}).settings.verbosity, 2);
}

// The program may go elsewhere before the trace begins; a % in the folder's name is no placeholder.
TEST(Settings, ARelativeOutputIsMadeAbsolute) {
  char here[4096];
  ASSERT_NE(getcwd(here, sizeof here), nullptr);
  const Result r = Parse({"RFINJECT_OUTPUT=sub/%p.rfx"});
  EXPECT_EQ(r.settings.output, EscapeOutput(here) + "/sub/%p.rfx");
}

TEST(SetSettings, TakesThePlaceOfTheEnvironment) {
  const Settings& settings = GetSettings();
  EXPECT_FALSE(settings.attached);
  const char* const entries[] = {"RFINJECT_OUTPUT=/x/", "RFINJECT_STEPS=5", "RFINJECT_SECONDS=60", "RFINJECT_SKIP=2",
                                 nullptr};
  ASSERT_TRUE(SetSettings(entries));
  EXPECT_EQ(&GetSettings(), &settings);
  EXPECT_TRUE(settings.attached);
  EXPECT_EQ(settings.output, "/x/");
  EXPECT_EQ(settings.steps, 5u);
  EXPECT_EQ(settings.seconds, 60u);
  EXPECT_EQ(settings.skip, 3u);  // and the step that runs
  const char* const wrong[] = {"RFINJECT_SECONDS=soon", nullptr};
  ASSERT_TRUE(SetSettings(wrong));
  EXPECT_EQ(settings.steps, 0u);
  EXPECT_NE(SettingsErrors().find("RFINJECT_SECONDS"), std::string::npos);
}

}  // namespace
}  // namespace rfinject
