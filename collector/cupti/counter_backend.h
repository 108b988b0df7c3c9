// File: counter_backend.h
//
// What can count the kernels of a step, one range a launch: the Range Profiler (CUPTI 12.6 update 2 and later) or, in
// time, the legacy profiler. All calls come from the thread that ends the steps.
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

  // Counts every kernel that the context launches from now on, at most `max_ranges`. A CUptiResult.
  virtual int Start(size_t group, size_t max_ranges) = 0;

  // Ends counting and waits for the context. `values` receives one row a range, in launch order, with one column a
  // metric of the group; `dropped` how many ranges found no room.
  virtual int Stop(std::vector<double>* values, size_t* ranges, size_t* dropped) = 0;

  // Ends counting and gives the device back without decoding: after a failure, or when the context goes away.
  virtual void Abandon() = 0;
};

// `context` is the CUcontext to profile. nullptr on failure, with its CUptiResult.
std::unique_ptr<CounterBackend> MakeRangeProfiler(const Api& api, void* context, int device,
                                                  const std::vector<std::string>& user_metrics, std::string* chip,
                                                  int* result);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_BACKEND_H_
