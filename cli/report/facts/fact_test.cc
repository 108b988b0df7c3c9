#include "cli/report/facts/fact.h"

#include <set>
#include <string>

#include "cli/report/facts/schemas.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/testing/sample_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

constexpr Schema kSchemas[] = {Schema::kSummary, Schema::kSideBySide,  Schema::kRuns,
                               Schema::kSql,     Schema::kOpenMetrics, Schema::kPage};

TEST(RunFacts, HaveANameOfTheirOwn) {
  std::set<std::string_view> names;
  for (const RunFact& fact : AllRunFacts()) {
    EXPECT_TRUE(names.insert(fact.info.name).second) << fact.info.name;
    EXPECT_TRUE(!fact.info.help.empty() || !fact.info.data) << fact.info.name;
  }
}

// What is no fact is the output's own; a name that is misspelled would be one more.
TEST(RunFacts, SchemasListFactsAndAFewOfTheirOwn) {
  std::set<std::string> own;
  for (const Schema schema : kSchemas) {
    std::set<std::string_view> names;
    for (const ListedFact& listed : FactsIn(schema)) {
      EXPECT_TRUE(names.insert(listed.name).second) << listed.name;
      if (listed.fact == nullptr) own.insert(std::string(listed.name));
    }
  }
  EXPECT_THAT(own, ::testing::UnorderedElementsAre("pm_sampling", "theory", "start_unix_ns", "ranks", "path", "job",
                                                   "trace_id", "started_unix_ns", "host", "pid", "rank", "world_size",
                                                   "torch_version", "source_text", "attributed_text", "counted_text",
                                                   "policy_text"));
}

// The clock of an estimate is that of the machine that ran the program.
TEST(RunFacts, AnEstimateHasNoWallTime) {
  const Report estimated = testing::SampleReports().front(), measured = testing::SampleMeasuredReport();
  for (const Schema schema : kSchemas) {
    for (const ListedFact& listed : FactsIn(schema)) {
      if (listed.fact == nullptr || listed.fact->info.title != "Wall time a step") continue;
      EXPECT_TRUE(std::holds_alternative<std::monostate>(listed.ValueIn(estimated))) << listed.name;
      EXPECT_GT(NumberIn(listed.ValueIn(measured)), 0) << listed.name;
    }
  }
}

// Export reads a run once for all of its groupings.
TEST(FoldRunBy, ReportsAreThoseOfEachGroupingAlone) {
  const Machine machine = testing::SampleA100();
  const Profile profile = testing::SampleMeasured(machine);
  const auto& run = profile.runs.begin()->second;
  constexpr By kBys[] = {By::kLayer, By::kKernel, By::kSource};
  const std::vector<Report> together = FoldRunBy(profile, run, machine, {}, kBys);
  ASSERT_EQ(together.size(), 3u);
  for (size_t i = 0; i < together.size(); ++i) {
    const Report alone = FoldRun(profile, run, machine, {.by = kBys[i]});
    EXPECT_EQ(together[i].rows.size(), alone.rows.size());
    EXPECT_EQ(together[i].layer_phases.size(), alone.layer_phases.size());
    EXPECT_EQ(together[i].group_phases.size(), alone.group_phases.size());
    EXPECT_EQ(together[i].alarms.size(), alone.alarms.size());
    for (const RunFact& fact : AllRunFacts()) EXPECT_EQ(fact.value(together[i]), fact.value(alone)) << fact.info.name;
  }
}

}  // namespace
}  // namespace rfinject::cli
