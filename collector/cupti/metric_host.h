// File: metric_host.h
//
// MetricHost knows a chip's metrics and can schedule them. CUPTI's profiler host library (12.6 and later), Perfworks'
// library before that, and tests implement it. It needs no GPU. One object serves one thread.
#ifndef RFINJECT_COLLECTOR_CUPTI_METRIC_HOST_H_
#define RFINJECT_COLLECTOR_CUPTI_METRIC_HOST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rfinject::cupti {

struct Api;  // api.h

class MetricHost {
 public:
  virtual ~MetricHost() = default;

  // Names of all metrics, without roll-ups.
  virtual std::vector<std::string> BaseMetrics() = 0;

  // How many passes it takes to collect `metrics` (with roll-ups) together; 0 when one of them does not exist or
  // cannot be scheduled.
  virtual size_t Passes(std::span<const std::string> metrics) = 0;

  // The image that programs the GPU for `metrics`; empty on failure.
  virtual std::vector<uint8_t> ConfigImage(std::span<const std::string> metrics) = 0;

  // The values of `metrics` in range `range` of a decoded counter data image, one each; false on failure.
  virtual bool Evaluate(std::span<const uint8_t> counter_data, size_t range, std::span<const std::string> metrics,
                        std::span<double> values) = 0;
};

enum class HostKind : uint8_t { kRangeProfiler, kPmSampling };

// Initialises CUPTI's profiling, and asks which chip the device has ("GV100"). Returns a CUptiResult.
int OpenChip(const Api& api, int device, std::string* chip);

// Makes a host of CUPTI's own library for `chip` ("GA100"). `availability` is what the device said (empty: plan for
// the chip as such). Returns nullptr when CUPTI refuses; `*result` then holds its CUptiResult. `api` must outlive the
// object.
std::unique_ptr<MetricHost> MakeProfilerHost(const Api& api, const std::string& chip, HostKind kind,
                                             std::span<const uint8_t> availability, int* result);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_METRIC_HOST_H_
