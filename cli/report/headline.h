// File: headline.h
//
// The first lines of every output: what a reader must know before looking at any number.
#ifndef RFINJECT_CLI_REPORT_HEADLINE_H_
#define RFINJECT_CLI_REPORT_HEADLINE_H_

#include <string>
#include <vector>

#include "cli/report/report.h"

namespace rfinject::cli {

// In this order, each left out when nothing is known of it: measured or estimated, on what; the precisions that the
// FLOP ran in; the shares attributed and counted; which bound holds the model back; backward against
// forward; DRAM bytes by PM sampling against those of the kernels; the layers with most time to win; where theory
// comes from. `layers` are the By::kLayer rows of the same run.
std::vector<std::string> MakeHeadline(const Report& report, const std::vector<Row>& layers);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_HEADLINE_H_
