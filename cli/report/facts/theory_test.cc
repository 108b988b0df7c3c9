#include "cli/report/facts/theory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

constexpr uint64_t kMeasuredSteps = 10, kTheorySteps = 3;

// A measured run as hardware gives it: without model FLOP and compulsory bytes.
Profile Measurement() {
  Profile profile = testing::SampleMeasured(testing::SampleA100(), kMeasuredSteps);
  for (auto& [key, run] : profile.runs) {
    for (auto& [launch, stats] : run.launches) {
      stats.metrics.erase(std::string(kMetricModelFlop));
      stats.metrics.erase(std::string(kMetricCompulsoryBytes));
    }
  }
  return profile;
}

Report WithTheory(By by, const Profile& profile, const Profile& theory) {
  return FoldRun(profile, profile.runs.begin()->second, testing::SampleA100(), {.by = by, .theory = &theory});
}

Row RowOf(double model, double executed, std::string class_name = "Linear") {
  Row row;
  row.class_name = std::move(class_name);
  row.sums[Quantity::kModelFlop] = model;
  row.sums[FlopIn(Precision::kFp32)] = executed;
  return row;
}

TEST(TheoryTest, ReasonsHaveClasses) {
  EXPECT_EQ(ReasonOf(RowOf(0, 5)), "");
  EXPECT_EQ(ReasonOf(RowOf(100, 0)), "not counted");
  EXPECT_EQ(ReasonOf(RowOf(100, 20)), "not counted");
  EXPECT_EQ(ReasonOf(RowOf(100, 44, "Conv2d")), "Winograd, FFT");
  EXPECT_EQ(ReasonOf(RowOf(100, 44)), "fewer");
  EXPECT_EQ(ReasonOf(RowOf(100, 101)), "as the model");
  EXPECT_EQ(ReasonOf(RowOf(100, 130)), "padding");
  EXPECT_EQ(ReasonOf(RowOf(100, 200)), "recomputation");
  EXPECT_EQ(ReasonOf(RowOf(100, 500)), "unexplained");
}

TEST(TheoryTest, AnotherNetworkIsSaid) {
  const Profile measured = Measurement();
  const Profile theory = testing::SampleResNet18(testing::SampleA100(), kTheorySteps);
  const auto warns = [](const Report& report) {
    const std::vector<DiagnosticInfo> diagnostics = DiagnosticsText(report);
    return std::any_of(diagnostics.begin(), diagnostics.end(),
                       [](const DiagnosticInfo& d) { return d.id == "theory-of-another-network"; });
  };
  const Report fitting = WithTheory(By::kPhase, measured, theory);
  EXPECT_TRUE(TheoryText(fitting).starts_with("Theory: ")) << TheoryText(fitting);
  EXPECT_FALSE(warns(fitting));
  // The same, but every layer has another name.
  Profile other = theory;
  for (auto& [key, run] : other.runs) {
    std::map<LaunchKey, LaunchStats> launches;
    for (const auto& [launch, stats] : run.launches) {
      LaunchKey renamed = launch;
      if (!renamed.layer.path.empty()) renamed.layer.path = "features." + renamed.layer.path;
      launches.emplace(renamed, stats);
    }
    run.launches = std::move(launches);
  }
  for (const By by : {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel}) {
    const Report report = WithTheory(by, measured, other);
    EXPECT_TRUE(TheoryText(report).starts_with("WARNING: ")) << TheoryText(report);
    EXPECT_NE(TheoryText(report).find("another network"), std::string::npos);
    EXPECT_TRUE(warns(report));
    EXPECT_EQ(HeadlineText(report).back(), TheoryText(report));
  }
}

TEST(TheoryTest, FillsWhatTheMeasurementLacksForItsOwnNumberOfSteps) {
  const Profile measured = Measurement(), theory = testing::SampleResNet18(testing::SampleV100(), kTheorySteps);
  const Report alone = FoldRun(measured, measured.runs.begin()->second, testing::SampleA100(), {});
  EXPECT_EQ(alone.total.sums.model_flop(), 0);
  EXPECT_EQ(alone.theory.state, TheoryUse::State::kNone);
  const Report exact = FoldRun(theory, theory.runs.begin()->second, testing::SampleV100(), {});
  for (const By by : {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel}) {
    const Report report = WithTheory(by, measured, theory);
    EXPECT_EQ(report.theory.state, TheoryUse::State::kApplied);
    EXPECT_NEAR(report.total.sums.model_flop() / kMeasuredSteps, exact.total.sums.model_flop() / kTheorySteps,
                1e-9 * exact.total.sums.model_flop());
    // Rows and phases still add up to the total.
    for (const std::vector<Row>* rows : {&report.rows, &report.phases}) {
      double flop = 0, bytes = 0, time = 0;
      for (const Row& row : *rows) {
        flop += row.sums.model_flop();
        bytes += row.sums.compulsory_bytes();
        time += row.sums.time_ns();
      }
      EXPECT_NEAR(flop, report.total.sums.model_flop(), 1e-9 * flop) << static_cast<int>(by);
      EXPECT_NEAR(bytes, report.total.sums.compulsory_bytes(), 1e-9 * bytes) << static_cast<int>(by);
      EXPECT_NEAR(time, report.total.sums.time_ns(), 1e-9 * time);
    }
    EXPECT_TRUE(std::none_of(report.alarms.begin(), report.alarms.end(),
                             [](const Alarm& alarm) { return alarm.id == "R006" || alarm.id == "R005"; }));
    EXPECT_NEAR(NumberOf(report, "backward_model_flop_per_forward_model_flop"), 1.935, 0.01);
  }
}

TEST(TheoryTest, KeepsWhatARunHasItself) {
  const Profile own = testing::SampleResNet18(testing::SampleA100(), 2);
  const Report report = WithTheory(By::kLayer, own, testing::SampleResNet18(testing::SampleV100(), 3));
  EXPECT_EQ(report.theory.state, TheoryUse::State::kNone);
}

// FLOP on a path that was not counted: R009, with the layers that lack them.
TEST(TheoryTest, KeepsBytesOfARunWithoutModelFlop) {
  Profile profile = testing::SampleResNet18(testing::SampleA100(), kTheorySteps);
  double compulsory = 0;
  for (auto& [key, run] : profile.runs) {
    for (auto& [launch, stats] : run.launches) {
      stats.metrics.erase(std::string(kMetricModelFlop));
      compulsory += static_cast<double>(stats.metrics.at(std::string(kMetricCompulsoryBytes)).sum);
    }
  }
  ASSERT_GT(compulsory, 0);
  const Profile theory = testing::SampleResNet18(testing::SampleA100(), 5 * kTheorySteps);
  for (const By by : {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel}) {
    const Report report = WithTheory(by, profile, theory);
    EXPECT_GT(report.total.sums.model_flop(), 0);
    EXPECT_NEAR(report.total.sums.compulsory_bytes(), compulsory, 1e-9 * compulsory);
    double rows = 0;
    for (const Row& row : report.rows) rows += row.sums.compulsory_bytes();
    EXPECT_NEAR(rows, compulsory, 1e-9 * compulsory);
  }
}

TEST(TheoryTest, ARunThatNamesNoNetworkGetsTheTheorysRows) {
  Profile measured = Measurement();
  for (auto& [key, run] : measured.runs) run.key.models.clear();
  const Profile theory = testing::SampleResNet18(testing::SampleA100(), kTheorySteps);
  const Report report = WithTheory(By::kLayer, measured, theory);
  const auto added =
      std::find_if(report.rows.begin(), report.rows.end(), [](const Row& row) { return row.sums.model_flop() > 0; });
  ASSERT_NE(added, report.rows.end());
  EXPECT_EQ(added->model, theory.runs.begin()->second.key.models.front());
}

TEST(TheoryTest, UncountedTensorCoresAreFound) {
  Profile measured = Measurement();
  for (auto& [key, run] : measured.runs) {
    for (auto& [launch, stats] : run.launches) {
      stats.metrics.erase(std::string(kMetricFlop[static_cast<size_t>(Precision::kTf32Tensor)]));
    }
  }
  const Profile theory = testing::SampleResNet18(testing::SampleA100(), kTheorySteps);
  const Report report = WithTheory(By::kLayer, measured, theory);
  EXPECT_TRUE(
      std::any_of(report.alarms.begin(), report.alarms.end(), [](const Alarm& alarm) { return alarm.id == "R009"; }));
  const auto conv = std::find_if(report.rows.begin(), report.rows.end(),
                                 [](const Row& row) { return row.layer == "layer1.0.conv1"; });
  ASSERT_NE(conv, report.rows.end());
  EXPECT_EQ(ReasonOf(*conv), "not counted");
}

TEST(TheoryTest, AnotherNetworksTheoryIsNotUsed) {
  const Profile measured = Measurement();
  Profile theory = testing::SampleResNet18(testing::SampleA100(), 1);
  auto node = theory.runs.extract(theory.runs.begin());
  for (const uint64_t parameters : {1u, 2u}) {
    rfinject::cli::Run run = node.mapped();
    run.key.parameters = parameters;
    run.key.models = {"Other"};
    run.process_list.clear();
    RunKey key = run.key;
    theory.runs.emplace(key, run);
  }
  const Report report = WithTheory(By::kLayer, measured, theory);
  EXPECT_EQ(report.total.sums.model_flop(), 0);
  EXPECT_EQ(report.theory.state, TheoryUse::State::kMissing);
}

}  // namespace
}  // namespace rfinject::cli
