#include "cli/report/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/format/testing/written.h"
#include "cli/model/launch_queue.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/report/rows/roofs.h"
#include "cli/testing/sample_profile.h"
#include "cli/view/compare_views.h"

namespace rfinject::cli {
namespace {

// ResNet-18 on two machines, and "another network" on the second: the same with other arguments and parameters.
std::vector<Report> ThreeRuns() {
  std::vector<Report> reports;
  for (const Machine& machine : {testing::SampleV100(), testing::SampleA100()}) {
    const Profile profile = testing::SampleResNet18(machine, 2);
    reports.push_back(FoldRun(profile, profile.runs.begin()->second, machine, {.by = By::kModel}));
  }
  Report other = reports.back();
  other.run.parameters = 25557032;
  other.process.models = {{.class_name = "ResNet", .parameters = 25557032}};
  other.process.list.front().argv = {"python3", "main.py", "--arch=resnet50"};
  other.run.batch_size = 4;
  reports.push_back(other);
  return reports;
}

TEST(RunNameTest, TheProgramsOwnWordsCountFirst) {
  RunKey key;
  key.models = {"ResNet"};
  const auto name = [&](std::vector<std::string> argv) {
    return ModelName(key, {ProcessInfo{.argv = std::move(argv)}});
  };
  EXPECT_EQ(name({"main.py", "-a", "resnet18", "-b", "8"}), "resnet18");
  EXPECT_EQ(name({"main.py", "--model=vit_b_16"}), "vit_b_16");
  EXPECT_EQ(name({"main.py", "-a"}), "ResNet");
  EXPECT_EQ(name({"main.py", "-a", "--dummy"}), "ResNet");
  EXPECT_EQ(name({"main.py"}), "ResNet");
  key.models = {"Generator", "Discriminator"};
  EXPECT_EQ(name({"gan.py", "-a", "x"}), "Generator + Discriminator");
}

TEST(RunNameTest, OneNetworkUnderTwoNames) {
  const auto key = [](std::string model, uint64_t parameters) {
    RunKey made;
    made.models = {std::move(model)};
    made.parameters = parameters;
    return made;
  };
  const std::vector<ProcessInfo> none, resnet18 = {ProcessInfo{.argv = {"main.py", "-a", "resnet18"}}};
  EXPECT_TRUE(SameNetwork(key("ResNet", 11), resnet18, key("ResNet-18", 0), none));  // an import
  EXPECT_FALSE(SameNetwork(key("ResNet", 11), resnet18, key("ResNet", 25), none));
  EXPECT_TRUE(SameNetwork(key("ResNet", 11), resnet18, key("ResNet", 11), none));
}

TEST(SweepTest, TellsWhichAlarmsARunHas) {
  std::vector<Report> reports = ThreeRuns();
  reports[1].alarms = {{.id = "R009"}, {.id = "R004"}, {.id = "R004"}};
  const Sweep sweep = MakeSweep(reports);
  const auto with = std::find_if(sweep.runs.begin(), sweep.runs.end(),
                                 [](const SweepRun& run) { return !run.report->alarms.empty(); });
  ASSERT_NE(with, sweep.runs.end());
  EXPECT_EQ(TextOf(*with->report, "alarm_ids"), "R004 R009");
  const Document document = SweepDocument(reports);
  const std::string table = testing::Written(document, "table", {.width = 140});
  EXPECT_NE(table.find("R004 R009\n"), std::string::npos) << table;
  EXPECT_NE(testing::Written(document, "csv").find(",R004 R009,"), std::string::npos);
  EXPECT_NE(testing::Written(document, "json").find(R"("alarm_ids": ["R004", "R009"])"), std::string::npos);
  const std::string silent = testing::Written(SweepDocument(ThreeRuns()), "table", {.width = 140});
  EXPECT_EQ(silent.find("alarm"), std::string::npos);
}

TEST(SweepTest, OneRowARunGroupedByGpu) {
  const std::vector<Report> reports = ThreeRuns();
  const Sweep sweep = MakeSweep(reports);
  ASSERT_EQ(sweep.runs.size(), 3u);
  ASSERT_EQ(sweep.groups.size(), 2u);
  EXPECT_TRUE(sweep.several_batches);
  EXPECT_FALSE(sweep.several_modes);
  size_t members = 0;
  for (const SweepGroup& group : sweep.groups) {
    for (const size_t i : group.runs) EXPECT_EQ(sweep.runs[i].gpu, group.gpu);
    members += group.runs.size();
  }
  EXPECT_EQ(members, 3u);
}

TEST(SweepTest, NumbersAreThoseOfTheReport) {
  const std::vector<Report> reports = ThreeRuns();
  const Sweep sweep = MakeSweep(std::span(reports).first(1));
  const Report& report = reports.front();
  EXPECT_EQ(sweep.runs.front().model, "resnet18");
  EXPECT_EQ(NumberOf(report, "parameters"), 11689512);
  EXPECT_EQ(TextOf(report, "trains"), "training");
  // An estimate's wall time is another machine's.
  EXPECT_EQ(TextOf(report, "samples_per_s_over"), "gpu_time");
  EXPECT_EQ(report.clock.wall_ns, 0);
  EXPECT_DOUBLE_EQ(NumberOf(report, "samples_per_s"),
                   static_cast<double>(report.steps.samples) / (report.total.sums.time_ns() * 1e-9));
  double phases_ns = 0;
  for (const Row& row : report.phases) phases_ns += row.sums.time_ns();
  EXPECT_NEAR(NumberOf(report, "gpu_time_per_step_ns") * report.steps.divisor(), phases_ns, 1e-6 * phases_ns);
  EXPECT_GT(NumberOf(report, "forward_flop_per_step"), 0);
  EXPECT_NEAR(NumberOf(report, "backward_model_flop_per_forward_model_flop"), 1.935, 0.01);
}

TEST(SweepTest, MeasuredRunsAreHeldAgainstWallTime) {
  const Machine machine = testing::SampleA100();
  const Profile profile = testing::SampleMeasured(machine);
  const Report report = FoldRun(profile, profile.runs.begin()->second, machine, {.by = By::kModel});
  EXPECT_EQ(TextOf(report, "samples_per_s_over"), "wall_time");
  const double wall_ns = report.clock.wall_ns * report.steps.divisor();
  EXPECT_NEAR(NumberOf(report, "samples_per_s") * wall_ns * 1e-9, static_cast<double>(report.steps.samples), 1e-6);
}

// Between two kernels there is a gap, which is the GPU's.
TEST(SweepTest, AStepOfAnEstimateTakesTheLongerOfGpuAndHost) {
  const Machine machine = testing::SampleV100();
  const Profile profile = testing::SampleResNet18(machine, 2);
  const auto& only = profile.runs.begin()->second;
  const Report alone = FoldRun(profile, only, machine, {.by = By::kModel});
  EXPECT_EQ(alone.queue.step_ns, 0);
  EXPECT_FALSE(alone.queue.launch_bound);
  const double launches = static_cast<double>(alone.total.sums.launches) / alone.steps.divisor();
  const double gpu_ns = alone.clock.gpu_ns + launches * kKernelGapNs;
  for (const double host : {0.5, 2.0}) {  // of the GPU's time
    const double per_launch = host * gpu_ns / launches;
    const Report report = FoldRun(profile, only, machine, {.by = By::kModel, .host_ns_per_launch = per_launch});
    EXPECT_NEAR(report.queue.host_ns, host * gpu_ns, 1e-6 * gpu_ns);
    EXPECT_NEAR(report.queue.step_ns, std::max(host, 1.0) * gpu_ns, 1e-6 * gpu_ns);
    EXPECT_NEAR(report.queue.gpu_waits_share, host > 1 ? 0.5 : 0, 1e-6);
    EXPECT_EQ(report.queue.launch_bound, host > 1);
    EXPECT_NEAR(NumberOf(report, "samples_per_s"),
                static_cast<double>(report.steps.samples) / static_cast<double>(report.steps.count) /
                    report.queue.step_ns * 1e9,
                1e-6);
    const Document document = SweepDocument({report});
    const std::string csv = testing::Written(document, "csv");
    EXPECT_EQ(csv.find(",launch,") != std::string::npos, host > 1) << csv;
    const std::string table = testing::Written(document, "table", {.width = 200});
    EXPECT_NE(table.find("step's bound"), std::string::npos) << table;
  }
  // What was measured has a wall time.
  const Profile measured = testing::SampleMeasured(machine);
  EXPECT_EQ(FoldRun(measured, measured.runs.begin()->second, machine, {.host_ns_per_launch = 1e6}).queue.step_ns, 0);
}

TEST(SweepTest, FewRunsHaveNoRanks) {
  const std::vector<Report> reports = ThreeRuns();
  const Sweep sweep = MakeSweep(reports);
  for (const SweepGroup& group : sweep.groups) {
    for (const SweepCorrelation& one : group.correlations) EXPECT_FALSE(one.rho) << one.a << " " << one.b;
  }
}

TEST(SweepTest, CorrelationsFollowTheOrderOfTheColumns) {
  const std::vector<Report> base = ThreeRuns();
  std::vector<Report> reports;
  for (uint64_t i = 1; i <= 5; ++i) {
    Report report = base[1];
    report.process.models = {{.class_name = "ResNet", .parameters = i * 1000}};
    report.run.parameters = i * 1000;
    report.run.batch_size = 64 / i;
    reports.push_back(report);
  }
  const Sweep sweep = MakeSweep(reports);
  ASSERT_EQ(sweep.groups.size(), 1u);
  bool found = false;
  for (const SweepCorrelation& one : sweep.groups[0].correlations) {
    if (one.a != "batch_size" || one.b != "parameters") continue;
    found = true;
    ASSERT_TRUE(one.rho);
    EXPECT_DOUBLE_EQ(*one.rho, -1);
    EXPECT_EQ(one.runs, 5u);
  }
  EXPECT_TRUE(found);
}

// Two steps on a GPU with two tensor paths, all FLOP over the slower one.
Report OverTheLegacyPath() {
  Report report;
  report.run.source = SourceKind::kMeasured;
  report.run.gpu = report.device.name = "H100-SXM5-80GB";
  report.run.models = {"Net"};
  report.steps.count = 2;
  report.machine = MachineOf(*FindGpu("H100-SXM5-80GB"));
  report.total.sums.launches = 4;
  for (const QuantityInfo& quantity : AllQuantities()) {
    if (quantity.unit != "FLOP") report.total.sums[quantity.id] = 1000;
  }
  report.total.sums[FlopIn(Precision::kBf16Tensor)] = report.total.sums[LegacyFlopIn(Precision::kBf16Tensor)] = 1000;
  report.total.derived = Derive(report.total.sums);
  report.roofs = MakeRoofs(report.machine, report.total.sums, 0, {});
  return report;
}

TEST(SweepTest, PicturesDivideEveryQuantityByTheSteps) {
  const std::vector<Report> reports = {OverTheLegacyPath()};
  const Sums step = SweepPictures(MakeSweep(reports)).at(0).rows.at(0).sums;
  EXPECT_EQ(step.launches, 2u);
  for (const QuantityInfo& quantity : AllQuantities()) {
    EXPECT_EQ(step[quantity.id], reports[0].total.sums[quantity.id] / 2) << quantity.name;
  }
}

TEST(SweepTest, PicturesUseTheRoofsThatTheReportsUse) {
  const std::vector<Report> reports = {OverTheLegacyPath()};
  const Report picture = SweepPictures(MakeSweep(reports)).at(0);
  ASSERT_EQ(picture.roofs.size(), reports[0].roofs.size());
  size_t used = 0;
  for (size_t i = 0; i < picture.roofs.size(); ++i) {
    EXPECT_EQ(picture.roofs[i].used, reports[0].roofs[i].used) << i;
    used += picture.roofs[i].used && picture.roofs[i].peak_flop_per_s > 0;
  }
  EXPECT_EQ(used, 1u);
}

TEST(SweepTest, PicturesHaveOneStepOfEveryRun) {
  const std::vector<Report> reports = ThreeRuns();
  const Sweep sweep = MakeSweep(reports);
  const std::vector<Report> pictures = SweepPictures(sweep);
  ASSERT_EQ(pictures.size(), 2u);
  size_t rows = 0;
  for (const Report& picture : pictures) {
    rows += picture.rows.size();
    double share = 0;
    for (const Row& row : picture.rows) {
      share += row.time_share;
      EXPECT_LE(row.derived.performance_flop_per_s, row.derived.attainable_flop_per_s * (1 + 1e-9));
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_FALSE(picture.roofs.empty());
  }
  EXPECT_EQ(rows, 3u);
}

TEST(SweepEmitTest, TheTableFitsEightyColumns) {
  const std::string text = testing::Written(SweepDocument(ThreeRuns()), "table");
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_GT(count, 6u);
  EXPECT_NE(text.find("resnet50"), std::string::npos);
}

TEST(SweepEmitTest, EveryCsvLineHasAllColumns) {
  std::istringstream lines(testing::Written(SweepDocument(ThreeRuns()), "csv"));
  std::string head;
  std::getline(lines, head);
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(commas(line), commas(head)) << line;
}

}  // namespace
}  // namespace rfinject::cli
