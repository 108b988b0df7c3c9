// File: counter_backend.h
//
// CounterBackend counts what is launched in ranges that its caller opens and closes, in a session that stays started.
// The Range Profiler (CUPTI 12.6 update 2 and later) and the legacy profiler implement it; what they have in common
// is here. Kernels are never replayed: every group is planned to take one pass. With one pass no mode replays
// anything; UserReplay is asked for, because in it CUPTI could not replay by itself.
//
// All calls but Push and Pop come from our own thread, with the context current. Every int that is returned is a
// CUptiResult. A range is named by its ordinal: ranges of one name would be added up.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_

#include <atomic>
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

  // Plans the groups for the device, whose chip is then in `*chip` ("GV100"). `bytes`: a group counts DRAM bytes,
  // too. Must succeed before all else. It is the first call that shows a lack of permission, and must not be made
  // while a session runs.
  int Open(int device, const std::vector<std::string>& user_metrics, bool bytes, std::string* chip);

  // The groups, planned for this device. Metrics stay valid with the object.
  const std::vector<CounterGroup>& groups() const { return plan_.groups; }
  const Plan& plan() const { return plan_; }
  const ChipMetrics& metrics() const { return metrics_; }

  // Begins a session that counts `group`. None may have been begun.
  int Start(size_t group, size_t max_ranges);
  bool started() const { return started_; }
  // Opens range `ordinal` (0, 1, 2, …), and closes it. Called from launch callbacks, one at a time, in the context
  // that is counted.
  int Push(size_t ordinal);
  virtual int Pop() = 0;
  // Stops counting and reads what the first `ranges` ranges counted: a row each, with a column for each metric of the
  // group. A range that found no room, or that CUPTI has lost, is a row of NaN.
  int Collect(size_t ranges, std::vector<double>* values);
  // Goes on counting the same group after Collect, in new ranges.
  virtual int Restart() = 0;
  // Ends the session. It may be called whatever has failed before.
  virtual int Close() = 0;

 protected:
  // Makes the host that plans and evaluates; null, with the reason in `*result`, on failure.
  virtual MetricHost* MakeHost(const std::string& chip, std::span<const uint8_t> availability, int* result) = 0;
  // Makes the configurations of all groups.
  virtual int Configure(const std::string& chip) = 0;
  // Starts to count `group_` in at most `max_ranges_`.
  virtual int Begin() = 0;
  virtual int PushName(const char* name) = 0;
  // Stops and decodes; `found` receives how many ranges `counter_data_` has.
  virtual int Decode(size_t* found) = 0;
  // The name of a decoded range; false on failure.
  virtual bool RangeName(size_t range, std::string* name) const = 0;

  const Api& api_;
  const CUcontext context_;
  Plan plan_;
  std::vector<uint8_t> counter_data_;
  size_t group_ = 0, max_ranges_ = 0;
  std::atomic<bool> started_{false};

 private:
  MetricHost* host_ = nullptr;
  ChipMetrics metrics_;
};

std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, CUcontext context);
std::unique_ptr<CounterBackend> MakeLegacyProfiler(const Api& api, CUcontext context);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
