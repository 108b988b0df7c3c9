// File: perfworks_host.h
//
// Perfworks' host library (libnvperf_host.so, NVPW_*) as a MetricHost. It planned and evaluated counters before CUPTI
// had a host library of its own (12.6), and still does for the legacy profiler. It needs no GPU.
#ifndef RFINJECT_COLLECTOR_CUPTI_PERFWORKS_HOST_H_
#define RFINJECT_COLLECTOR_CUPTI_PERFWORKS_HOST_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collector/cupti/metric_host.h"

namespace rfinject::cupti {

class PerfworksHost : public MetricHost {
 public:
  // What a counter data image that is to hold `metrics` begins with; empty on failure.
  virtual std::vector<uint8_t> CounterDataPrefix(std::span<const std::string> metrics) = 0;

  // How many ranges a counter data image holds; false on failure.
  virtual bool Ranges(std::span<const uint8_t> counter_data, size_t* ranges) = 0;

  // The name of one of them, the innermost where ranges nest; false on failure.
  virtual bool RangeName(std::span<const uint8_t> counter_data, size_t range, std::string* name) = 0;

  // Tells the evaluator the device that `counter_data` comes from. Must be called once for each image, before
  // Evaluate; returns false on failure.
  virtual bool SetDevice(std::span<const uint8_t> counter_data) = 0;
};

// Makes a host for `chip` ("GV100"). `availability` is what the device said (empty: plan for the chip as such).
// Returns nullptr when Perfworks refuses; `*result` then holds the CUptiResult that is nearest to its NVPA_Status.
// `api` must outlive the object.
std::unique_ptr<PerfworksHost> MakePerfworksHost(const Api& api, const std::string& chip,
                                                 std::span<const uint8_t> availability, int* result);

// Returns the CUptiResult that is nearest to an NVPA_Status, so that one table of conditions serves both.
int CuptiResultOf(int nvpa_status);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_PERFWORKS_HOST_H_
