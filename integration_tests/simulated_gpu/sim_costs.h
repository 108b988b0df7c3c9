// File: sim_costs.h
//
// What calls and launches cost, as recorded on an H100 (CUPTI 13.0.1, driver 580.159). One table; the last column
// names the files of the recording. calls/ has a line a call of four runs, pm/ what experiments timed. A cost that
// depends on something is a straight line through what was recorded. What is not listed costs nothing: it was not
// recorded (the legacy profiler), or takes less than 10 us.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_COSTS_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_COSTS_H_

#include <cstdint>
#include <string_view>

namespace sim {

struct Cost {
  std::string_view of;  // a function, or what is done once or again in one
  uint64_t ns;
  uint64_t each_ns;
  const char* each;
  const char* recorded;
};

// clang-format off
inline constexpr Cost kCosts[] = {
    // Once.
    {"cuptiProfilerInitialize, first",              16'200'000, 0, "", "calls/*: 12.6 to 23.2 ms"},
    {"cuptiProfilerGetCounterAvailability, image", 118'000'000, 0, "", "calls/*: 117 to 122 ms"},
    {"cuptiPmSamplingGetCounterAvailability, image", 146'000'000, 0, "", "calls/*: 141 to 146 ms"},
    {"cuptiProfilerHostInitialize",                    340'000, 0, "", "calls/*"},
    {"cuptiProfilerHostConfigAddMetrics",            3'900'000, 0, "", "calls/*: 3.3 to 4.4 ms, 65 questions"},
    {"cuptiProfilerHostDeinitialize",                   20'000, 0, "", "calls/*"},
    {"cuptiProfilerHostEvaluateToGpuValues",                 0, 2'500, "metric", "pm/sessions_and_sampling.txt: D, 4 metrics; calls/*"},
    // Activity records.
    {"cuptiActivityEnable",                             12'000, 0, "", "calls/*: the first 69 us"},
    {"cuptiActivityDisable",                             4'600, 0, "", "calls/*"},
    {"cuptiActivityEnable_v2",                          12'000, 0, "", "taken to cost what cuptiActivityEnable does"},
    {"cuptiActivityDisable_v2",                          4'600, 0, "", "taken to cost what cuptiActivityDisable does"},
    {"cuptiActivityFlushAll",                           60'000, 600, "record", "calls/*: 0.27 (349), 0.46 (600), 0.80 ms (1238)"},
    // Ranges. Start once after Enable: 155 ms (4), 159 (16), 215 (64), 534 (436), 609 (512), 867 (750), 1497 ms (1547).
    {"cuptiRangeProfilerStart",                      5'900'000, 0, "", "pm/sessions_and_sampling.txt: C, again without Disable"},
    {"cuptiRangeProfilerStart, after Enable",      149'000'000, 950'000, "range", "pm/ranges.txt: A; calls/*"},
    {"cuptiRangeProfilerStop",                       6'200'000, 72'000, "range that was counted", "pm/*.txt: A; calls/*"},
    {"cuptiRangeProfilerDisable",                   11'000'000, 170'000, "range", "pm/ranges.txt: A; calls/*"},
    {"cuptiRangeProfilerGetCounterDataSize",         2'200'000, 0, "", "calls/*"},
    {"cuptiRangeProfilerCounterDataImageInitialize",         0, 1'600, "range and metric", "pm/ranges.txt: A"},
    {"cuptiRangeProfilerSetConfig",                     30'000, 0, "", "calls/*"},
    {"cuptiRangeProfilerDecodeData",                    30'000, 0, "", "calls/*"},
    {"cuptiRangeProfilerPushRange",                      7'000, 450'000, "range beyond DRAM", "pm/sessions_and_sampling.txt: B; calls/r18-user; h200"},
    {"cuptiRangeProfilerPopRange",                       7'000, 650'000, "range beyond DRAM", "pm/sessions_and_sampling.txt: B; calls/r18-user; h200"},
    {"a launch that is a range",                        22'000, 1'150'000, "range beyond DRAM", "pm/ranges.txt: A, user 0; calls/r18-range: 1.2 ms"},
    // PM sampling.
    {"cuptiPmSamplingSetConfig",                    66'000'000, 450'000, "MiB of hardware buffer", "calls/*: 64, pm/sessions_and_sampling.txt: D, 256"},
    {"cuptiPmSamplingGetCounterDataSize",            2'200'000, 0, "", "calls/*"},
    {"cuptiPmSamplingCounterDataImageInitialize",            0, 7'800, "sample of capacity", "pm/sessions_and_sampling.txt: D"},
    {"cuptiPmSamplingStart",                           550'000, 0, "", "pm/sessions_and_sampling.txt: D"},
    {"cuptiPmSamplingStop",                          1'800'000, 0, "", "pm/sessions_and_sampling.txt: D"},
    {"cuptiPmSamplingDecodeData",                            0, 20'000, "sample", "pm/sessions_and_sampling.txt: D"},
    {"cuptiPmSamplingDisable",                      43'000'000, 0, "", "calls/*"},
    // The program's.
    {"a launch",                                        25'000, 0, "", "pm/ranges.txt: 9.5 ms of the host for 377 launches"},
    // On the GPU.
    {"a range on the GPU",                              26'000, 0, "", "pm/sessions_and_sampling.txt: B, 52 us at both its ends together"},
    {"a kernel with SASS metrics",                   1'200'000, 0, "", "calls/r18-range: third group, 519 ms; pm/sass_ranges.txt: B"},
};
// clang-format on
// Launches on any thread wait until these have ended: docs/measurements/h200. The program launches on during all
// others, cuptiPmSamplingSetConfig (90 ms) and cuptiPmSamplingDecodeData among them.
inline constexpr std::string_view kHoldLaunches[] = {"cuptiRangeProfilerStart", "cuptiRangeProfilerStop",
                                                     "cuptiRangeProfilerDisable"};

constexpr bool HoldsLaunches(std::string_view function) {
  for (const std::string_view one : kHoldLaunches) {
    if (one == function) return true;
  }
  return false;
}

// A kernel with SASS metrics takes this many times its time, and the above.
inline constexpr uint64_t kSassTimes = 6;

// Nothing where it is not listed.
constexpr Cost CostOf(std::string_view of) {
  for (const Cost& cost : kCosts) {
    if (cost.of == of) return cost;
  }
  return {of, 0, 0, "", ""};
}

}  // namespace sim

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_COSTS_H_
