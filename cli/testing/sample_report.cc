#include "cli/testing/sample_report.h"

#include "cli/report/alarms/findings.h"
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
  report.alarms.push_back(
      AlarmOf(AboveBandwidth{1.71e12, 1.56e12, machine.name},
              AlarmPlace{"ResNet", "layer1.0.bn1", Phase::kForward, "cudnn::bn_fw_tr_1C11_kernel_NCHW"}));
  return report;
}

}  // namespace rfinject::cli::testing
