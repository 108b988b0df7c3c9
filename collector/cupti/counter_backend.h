// File: counter_backend.h
//
// CounterBackend counts the kernels of a step, in one range for each launch or in ranges of the caller's. The Range
// Profiler (CUPTI 12.6 update 2 and later) and the legacy profiler implement it. All calls but PushRange and PopRange
// come from the thread that ends the steps.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/planner.h"

namespace rfinject::cupti {

struct Api;

class CounterBackend {
 public:
  virtual ~CounterBackend() = default;

  // The groups, planned for this device. Labels and metrics stay valid with the object.
  virtual const std::vector<CounterGroup>& groups() const = 0;
  virtual const Plan& plan() const = 0;
  virtual const ChipMetrics& metrics() const = 0;

  // Counts every kernel that the context launches from now on, at most `max_ranges`. Returns a CUptiResult.
  virtual int Start(size_t group, size_t max_ranges) = 0;

  // Whether the caller may open and close ranges around launches, which then stay asynchronous (counter_mode.h), and
  // the Start for that: only what is launched in a range is counted.
  virtual bool has_user_ranges() const { return false; }
  virtual int StartUserRanges(size_t group, size_t max_ranges) {
    (void)group;
    (void)max_ranges;
    return 27;  // CUPTI_ERROR_NOT_SUPPORTED
  }
  // Opens range `ordinal` (0, 1, 2, …) and closes the one that is open. Called from launch callbacks, one at a time,
  // in the context that is counted. Returns a CUptiResult.
  virtual int PushRange(size_t ordinal) {
    (void)ordinal;
    return 27;
  }
  // Closes the range that is open, if there is one.
  virtual int PopRange() { return 0; }

  // Ends counting and waits for the context. `values` receives one row for each range, in launch order (the caller's
  // ranges by ordinal), with one column for each metric of the group; `dropped` receives how many ranges found no
  // room.
  virtual int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) = 0;

  // Ends counting and gives the device back without decoding. Called after a failure, or when the context goes away.
  virtual void Abandon() = 0;
};

// `context` is the CUcontext to profile. Returns nullptr on failure, with the CUptiResult in `*result`.
std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, void* context, int device,
                                                  const std::vector<std::string>& user_metrics, std::string* chip,
                                                  int* result);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
