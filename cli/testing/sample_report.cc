#include "cli/testing/sample_report.h"

#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"

namespace rfinject::cli::testing {

std::vector<Report> SampleReports(By by) {
  std::vector<Report> reports;
  for (const Machine& machine : {SampleV100(), SampleA100()}) {
    const Profile profile = SampleResNet18(machine);
    reports.push_back(FoldRun(profile, profile.runs.begin()->second, machine, {.by = by}));
  }
  return reports;
}

Report SampleMeasuredReport(By by) {
  const Machine machine = SampleA100();
  const Profile profile = SampleMeasured(machine);
  Report report = FoldRun(profile, profile.runs.begin()->second, machine, {.by = by});
  report.alarms.push_back({.id = "R002",
                           .text = "aten::native_batch_norm of layer1.0.bn1 moves 1.71 TB/s, the memory 1.56 TB/s",
                           .causes = "bytes served by the L2 cache, or a time that does not belong to these bytes",
                           .where = "ResNet/layer1.0.bn1"});
  return report;
}

}  // namespace rfinject::cli::testing
