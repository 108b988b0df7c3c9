// File: pm_sampling.h
//
// PM sampling (CUPTI 12.6 and later, A100 and later): what the whole device does, sampled by its own clock while the
// program runs on: DRAM bytes and the share of time in which the tensor pipes are active. It serialises nothing, so
// it works beside communication kernels and CUDA graphs. It cannot count FLOP and cannot tell kernels, layers or
// processes apart: it is the cross-check of the bytes that are counted kernel by kernel, and a view over time.
//
// PmSampling is the mechanism, PmCrossCheck decides in which steps it runs: a few, further and further apart, that
// have no other collection, and only while its cost stays within a tenth of the overhead that the user allows.
#ifndef RFINJECT_COLLECTOR_CUPTI_PM_SAMPLING_H_
#define RFINJECT_COLLECTOR_CUPTI_PM_SAMPLING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/metric_host.h"
#include "collector/pm_window.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

// The metrics to sample on a chip: DRAM read, DRAM write and, where one pass has room for it, tensor activity in
// percent. Each set is proven to take one pass. The result is empty where this chip's DRAM cannot be sampled.
std::vector<std::string> SelectPmMetrics(MetricHost& host);

class PmSampling {
 public:
  // Plans for the device. Returns nullptr on failure, with the CUptiResult in `*result`. No session may be active.
  // `api` must outlive the object.
  static std::unique_ptr<PmSampling> Open(const Api& api, int device, int* result);

  // Samples about every `interval_ns` from now on. Returns a CUptiResult.
  int Begin(uint64_t interval_ns);
  // Ends sampling. `samples` receives the samples in order of time, without the first, which is often wrong;
  // `*overflow` says whether some were lost.
  int End(std::vector<PmSample>* samples, bool* overflow);
  // Gives the device back without decoding.
  void Abandon();

  bool running() const { return object_ != nullptr; }
  bool has_tensor() const { return metrics_.size() == 3; }
  const std::vector<std::string>& metrics() const { return metrics_; }
  // How long a sample can take to be complete after what it saw.
  uint64_t settle_ns() const { return 2 * interval_ns_; }

 private:
  PmSampling(const Api& api, int device) : api_(api), device_(device) {}
  int Plan();
  int Configure();
  int Decode(std::vector<PmSample>* samples, bool* overflow);
  int Disable();

  const Api& api_;
  int device_;
  bool by_time_ = true;  // the trigger; else by cycles (gpus/chips.h)
  uint64_t interval_ns_ = 0;
  std::unique_ptr<MetricHost> host_;
  std::vector<std::string> metrics_;
  std::vector<uint8_t> config_, counter_data_;
  CUpti_PmSampling_Object* object_ = nullptr;
  bool started_ = false;
};

class PmCrossCheck {
 public:
  // Returns nullptr when the device cannot be sampled; the reason goes into the trace as a remark. `overhead` is the
  // share of time that all profiling may cost.
  static std::unique_ptr<PmCrossCheck> Open(const Api& api, int device, double overhead, Recorder& recorder);

  // Must be called before a step in which nothing else is collected, with the device's context current. `step_ns` is
  // how long a step takes.
  void BeforeStep(uint64_t step, uint64_t step_ns);
  // Must be called after each step, before anything else is collected.
  void AfterStep(uint64_t step);
  void Abandon() { sampling_->Abandon(); }
  bool running() const { return sampling_->running(); }

 private:
  PmCrossCheck(const Api& api, std::unique_ptr<PmSampling> sampling, double overhead, Recorder& recorder);
  void GiveUp(const char* call, int result);

  const Api& api_;
  std::unique_ptr<PmSampling> sampling_;
  Recorder& recorder_;
  double overhead_;
  int64_t opened_ns_;
  int64_t cost_ns_ = 0;
  uint64_t next_step_;
  uint32_t windows_ = 0;
  bool off_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_PM_SAMPLING_H_
