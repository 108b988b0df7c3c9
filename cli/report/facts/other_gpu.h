// File: other_gpu.h
//
// What a measured or recorded run would take on another GPU (--on): its operators' expected time there, longer by as
// much as the run takes longer here than is expected here.
#ifndef RFINJECT_CLI_REPORT_FACTS_OTHER_GPU_H_
#define RFINJECT_CLI_REPORT_FACTS_OTHER_GPU_H_

#include <span>
#include <string>

#include "cli/report/keys/quantity.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

// Times are of a step.
struct OtherGpu {
  std::string name;  // empty: none was asked for
  // 0: no operators of the run are known, or this GPU is in no table.
  double step_ns = 0, low_ns = 0, high_ns = 0;
  double here_ns = 0;      // of the same operators
  double over_usual = 0;   // how much longer they take than is expected, here and so there
  double known_share = 0;  // of the GPU's time, what these operators take
};

// `total` has the sums of all keys.
OtherGpu OtherGpuOf(std::string name, const Sums& total, double steps);

// Makes the times of rows on the other GPU longer by that much.
void ScaleOther(const OtherGpu& other, std::span<Row> rows);

// "On an A100-SXM4-80GB a step of these operators is expected to take 12.1 ms (8.6 to 17 ms), 0.81 times as long:
// what such work usually takes there, times 1.1 as here"; why it is not known; empty where none was asked for.
std::string OtherGpuText(const OtherGpu& other);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_OTHER_GPU_H_
