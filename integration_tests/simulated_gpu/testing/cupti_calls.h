// File: cupti_calls.h
//
// Calls of CUPTI as a test of the simulated one makes them: a range profiler's session, a session of PM sampling, and
// activity records, each with as few words as can be.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_CUPTI_CALLS_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_CUPTI_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/metric_host.h"

namespace rfinject {

// User ranges. Every call but Pop and Disable returns a CUptiResult.
class RangeSession {
 public:
  RangeSession(const cupti::Api& api, cupti::MetricHost& host) : api_(api), host_(host) {}
  int Enable(CUcontext context);
  int Configure(std::vector<std::string> metrics, size_t ranges, bool automatic = false);
  int Start();
  int Stop();
  int Push(const std::string& name);
  int Pop();
  int Disable();
  // Decodes, and has the values of each range's metrics by its name.
  std::map<std::string, std::vector<double>> Values();

 private:
  const cupti::Api& api_;
  cupti::MetricHost& host_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  std::vector<std::string> metrics_;
  std::vector<uint8_t> config_, image_;
};

struct SampleOf {
  uint64_t start, end;
  std::vector<double> values;
};

class SamplingSession {
 public:
  SamplingSession(const cupti::Api& api, cupti::MetricHost& host, size_t device = 0)
      : api_(api), host_(host), device_(device) {}
  int Enable();
  int Configure(std::vector<std::string> metrics, uint64_t interval, uint32_t samples, size_t hardware_bytes);
  int Start();
  int Stop();
  int Disable();
  struct Decoded {
    int result = 0;
    bool overflow = false;
    int stop_reason = 0;
    std::vector<SampleOf> samples;
  };
  Decoded Decode();
  size_t image_bytes() const { return image_.size(); }

 private:
  const cupti::Api& api_;
  cupti::MetricHost& host_;
  const size_t device_;
  CUpti_PmSampling_Object* object_ = nullptr;
  std::vector<std::string> metrics_;
  std::vector<uint8_t> config_, image_;
};

// Starts to record kernels; there is one such recording in a process.
void RecordKernels(const cupti::Api& api);
struct KernelOf {
  std::string name;
  uint64_t start, end;
};
// What is handed back, by start.
std::vector<KernelOf> FlushKernels(const cupti::Api& api, bool forced);

}  // namespace rfinject

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_TESTING_CUPTI_CALLS_H_
