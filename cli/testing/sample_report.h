// File: sample_report.h
//
// Reports for the tests of outputs, folded from the profiles of sample_profile.h.
#ifndef RFINJECT_CLI_TESTING_SAMPLE_REPORT_H_
#define RFINJECT_CLI_TESTING_SAMPLE_REPORT_H_

#include <vector>

#include "cli/report/report.h"

namespace rfinject::cli::testing {

// ResNet-18 estimated on one V100 and on one A100: two reports of about 60 rows by layer.
std::vector<Report> SampleReports(By by = By::kLayer);

// One report of a measured run: confidence intervals, launches without a layer, kernels without counters, a
// diagnostic, drops and an alarm.
Report SampleMeasuredReport(By by = By::kLayer);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_SAMPLE_REPORT_H_
