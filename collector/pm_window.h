// File: pm_window.h
//
// What PM sampling saw of one step: sums over the step, and how they were spread over it.
#ifndef RFINJECT_COLLECTOR_PM_WINDOW_H_
#define RFINJECT_COLLECTOR_PM_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rfinject {

// Points of a window's time axis; neighbouring samples are added up until they fit.
inline constexpr size_t kMaxPmBins = 64;

struct PmWindow {
  uint64_t step = 0;
  int64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;  // that the samples cover
  uint64_t samples = 0;
  uint64_t dram_read_bytes = 0;  // of the whole device
  uint64_t dram_write_bytes = 0;
  bool has_tensor = false;
  uint64_t tensor_active_ns = 0;  // duration times the mean share in which the tensor pipes were active

  // The same over time: bins of bin_ns from the start, the last one shorter; at most kMaxPmBins.
  uint64_t bin_ns = 0;
  std::vector<uint64_t> bin_dram_bytes;
  std::vector<uint32_t> bin_tensor_permille;  // empty without has_tensor
};

// One sample as the hardware gives it.
struct PmSample {
  uint64_t start_ns = 0, end_ns = 0;  // CLOCK_REALTIME
  double dram_read_bytes = 0, dram_write_bytes = 0;
  double tensor_percent = 0;
};

// The samples as a window. Those whose numbers are not finite or whose times run backwards are left out; false when
// nothing is left.
bool FoldPmSamples(const std::vector<PmSample>& samples, bool has_tensor, PmWindow* window);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PM_WINDOW_H_
