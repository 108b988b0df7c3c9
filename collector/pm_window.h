// File: pm_window.h
//
// What PM sampling saw of one step: sums over the step, and how they were spread over it.
#ifndef RFINJECT_COLLECTOR_PM_WINDOW_H_
#define RFINJECT_COLLECTOR_PM_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject {

// Points of a window's time axis; neighbouring samples are added up until they fit.
inline constexpr size_t kMaxPmBins = 64;

// The writer sets `run`. bin_tensor_permille is empty without has_tensor.
using PmWindow = trace::PmWindow;

// One sample as the hardware gives it.
struct PmSample {
  uint64_t start_ns = 0, end_ns = 0;  // CLOCK_REALTIME
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double tensor_percent = 0;
};

// Makes a window of the samples. Those whose numbers are not finite or whose times run backwards are left out;
// returns false when nothing is left.
bool FoldPmSamples(const std::vector<PmSample>& samples, bool has_tensor, PmWindow* window);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PM_WINDOW_H_
