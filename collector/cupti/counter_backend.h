// File: counter_backend.h
//
// CounterBackend counts the kernels of a step, in one range for each launch or in ranges of the caller's. The Range
// Profiler (CUPTI 12.6 update 2 and later) and the legacy profiler implement it; what they have in common is here.
// All calls but PushRange come from the thread that ends the steps. Every int that is returned is a CUptiResult.
//
// A range of the caller's is named by its ordinal. Ranges of one name would be one node of CUPTI's tree of ranges,
// and what comes of two passes through a node is not documented. Decoded ranges are put in order by their names,
// never by their place.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/planner.h"

namespace rfinject::cupti {

class CounterBackend {
 public:
  // `context` is the one to profile. A session that was never ended goes with the process: at that time the driver
  // may be gone already.
  CounterBackend(const Api& api, CUcontext context) noexcept : api_(api), context_(context) {}
  virtual ~CounterBackend() = default;

  // Plans the groups for the device, whose chip is then in `*chip` ("GV100"). Must succeed before all else. It is the
  // first call that shows a lack of permission, and must not be made while a session runs.
  int Open(int device, const std::vector<std::string>& user_metrics, std::string* chip);

  // The groups, planned for this device. Metrics stay valid with the object.
  const std::vector<CounterGroup>& groups() const { return plan_.groups; }
  const Plan& plan() const { return plan_; }
  const ChipMetrics& metrics() const { return metrics_; }

  // Whether the caller may open and close ranges around launches, which then stay asynchronous (counter_mode.h).
  virtual bool has_user_ranges() const = 0;
  // Counts every kernel that the context launches from now on, or, with ranges of the caller's, what is launched in
  // one; at most `max_ranges`.
  int Start(size_t group, size_t max_ranges, bool user_ranges);
  // Opens range `ordinal` (0, 1, 2, …) and closes the one that is open. Called from launch callbacks, one at a time,
  // in the context that is counted.
  int PushRange(size_t ordinal);

  // Ends counting and waits for the context. `values` receives one row for each range, in launch order (the caller's
  // ranges by ordinal), with one column for each metric of the group; `dropped` receives how many ranges found no
  // room.
  virtual int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) = 0;
  // Ends counting and gives the device back without decoding. Called after a failure, or when the context goes away.
  virtual void Abandon() = 0;

 protected:
  // Makes the host that plans and evaluates; null, with the reason in `*result`, on failure.
  virtual MetricHost* MakeHost(const std::string& chip, std::span<const uint8_t> availability, int* result) = 0;
  // Makes the configurations of all groups.
  virtual int Configure(const std::string& chip) = 0;
  virtual bool running() const = 0;
  // Starts to count `group_` in `ranges_`.
  virtual CUptiResult Begin(size_t max_ranges) = 0;
  virtual CUptiResult Push(const char* name) = 0;
  virtual CUptiResult Pop() = 0;
  // The name of a decoded range; false on failure.
  virtual bool RangeName(size_t range, std::string* name) const = 0;

  // Closes the range that is open, if there is one.
  CUptiResult PopRange();
  // Fills `values` from the first `ranges` ranges of `counter_data_`.
  CUptiResult Evaluate(size_t ranges, std::vector<double>* values) const;

  const Api& api_;
  const CUcontext context_;
  Plan plan_;
  std::vector<uint8_t> counter_data_;
  size_t group_ = 0;
  CUpti_ProfilerRange ranges_ = CUPTI_AutoRange;

 private:
  bool OrdinalOf(size_t range, size_t* ordinal) const;

  MetricHost* host_ = nullptr;
  ChipMetrics metrics_;
  bool range_open_ = false;
};

std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, CUcontext context);
std::unique_ptr<CounterBackend> MakeLegacyProfiler(const Api& api, CUcontext context);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
