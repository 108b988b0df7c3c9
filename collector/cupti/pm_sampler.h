// File: pm_sampler.h
//
// PM sampling of one device (CUPTI 12.6 and later, Turing and later): what the whole GPU does, sampled by its own
// clock while the program runs on. Nothing is serialised or waited for. The session is opened once and stays; a
// window of samples is Start and Stop, from wherever the host happens to be.
//
// Its memory is bounded: the hardware's buffer and the image that samples are decoded into stay below 64 MB together.
// All calls come from our own thread. Every int that is returned is a CUptiResult.
#ifndef RFINJECT_COLLECTOR_CUPTI_PM_SAMPLER_H_
#define RFINJECT_COLLECTOR_CUPTI_PM_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/metric_host.h"
#include "collector/cupti/sample_join.h"

namespace rfinject::cupti {

// The metrics to sample on a chip, proven to take one pass together: DRAM read and write, then the cycles of the
// tensor pipes, L2 bytes and last the cycles of the graphics clock, each where it has room beside those before. The
// result is empty where this chip's DRAM cannot be sampled.
std::vector<std::string> SelectSampledMetrics(MetricHost& host);

class PmSampler {
 public:
  // The most samples of a window.
  static constexpr uint32_t kSamples = 1800;
  // Samples go on for 0.4 ms after Stop was called; what was launched meanwhile may be missing in them.
  static constexpr uint64_t kAfterStopNs = 450'000;

  // Plans for the device. Returns nullptr on failure, with the CUptiResult in `*result`. No session may be active.
  // `api` must outlive the object.
  static std::unique_ptr<PmSampler> Plan(const Api& api, int device, int* result);

  // Opens the session: a sample about every `interval_ns`. It stays until Close.
  int Open(uint64_t interval_ns);
  bool is_open() const { return object_ != nullptr; }
  int Start();
  int Stop();
  // Decodes what was sampled between Start and Stop, without the first sample, which is no sample of the interval's
  // length, and without the last kAfterStopNs. `*overflow`: the buffer was full, which ends the session: it must be
  // closed.
  int Decode(SampleWindow* window, bool* overflow);
  void Close();

  // Of a SampleWindow. DRAM read and written come first.
  const std::vector<std::string>& metrics() const { return metrics_; }
  // The mean of the graphics clock over the window that was decoded last; 0: not sampled.
  double clock_hz() const { return clock_hz_; }
  uint64_t interval_ns() const { return interval_ns_; }
  // How long a window takes to fill the buffer.
  uint64_t capacity_ns() const { return interval_ns_ * kSamples; }

 private:
  PmSampler(const Api& api, int device) : api_(api), device_(device) {}
  int MakePlan();
  int Configure();

  const Api& api_;
  const int device_;
  bool by_time_ = true;  // the trigger; else by cycles (gpus/chips.h)
  uint64_t interval_ns_ = 0;
  std::unique_ptr<MetricHost> host_;
  std::vector<std::string> sampled_, metrics_;  // the cycles of the clock are not given to kernels
  double clock_hz_ = 0;
  std::vector<uint8_t> config_, image_;
  CUpti_PmSampling_Object* object_ = nullptr;
  bool running_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_PM_SAMPLER_H_
