// File: synthetic_report.h
//
// Makes reports that real runs seldom give: thousands of launch keys, names that try to break out of the markup, and
// a run without anything.
#ifndef RFINJECT_CLI_FORMAT_TESTING_SYNTHETIC_REPORT_H_
#define RFINJECT_CLI_FORMAT_TESTING_SYNTHETIC_REPORT_H_

#include <cstddef>

#include "cli/testing/sample_report.h"

namespace rfinject::cli::testing {

// By layer, seven rows on an A100 that show one thing each: a compute-bound and a memory-bound layer with confidence
// intervals, an optimizer, a copy without FLOP, a kernel without counters, and a point above its roof. One empirical
// and one measured-clock roof beside those of the datasheet.
Report SmallReport();

// The same after 9,000 steps. One kernel ran in the first steps only, and took less than 1 ns a step.
Report LongReport();

// By kernel, `rows` of them, with a long tail of times, every phase and precision of an A100. The same for every
// call.
Report LargeReport(size_t rows);

// By layer, a network of hundreds of them: ResNet-18 whose first block is there `blocks` times more.
Report DeepReport(size_t blocks);

// By layer, a few rows whose names hold markup, script ends, quotes, control characters and direction marks.
Report HostileReport();

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_FORMAT_TESTING_SYNTHETIC_REPORT_H_
