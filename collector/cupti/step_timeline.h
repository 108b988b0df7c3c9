// File: step_timeline.h
//
// StepTimeline puts one step together as the GPU saw it: when each kernel ran, from one timed step, and how fast
// bytes went and tensor pipes worked meanwhile, from all windows of samples. A window holds a part of a long step
// only; its samples are put where the same kernel stands in the step that is shown, by how far that kernel had come.
//
// All calls come from our own thread.
#ifndef RFINJECT_COLLECTOR_CUPTI_STEP_TIMELINE_H_
#define RFINJECT_COLLECTOR_CUPTI_STEP_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collector/cupti/launch_keys.h"
#include "collector/cupti/sample_join.h"
#include "collector/cupti/time_join.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class StepTimeline {
 public:
  // The first two of the metrics that are sampled are DRAM bytes; `tensor_metric` is that of the tensor pipes'
  // cycles, or a number that no metric has.
  StepTimeline(uint32_t device, size_t tensor_metric, LaunchKeys& keys)
      : device_(device), tensor_metric_(tensor_metric), keys_(keys) {}

  // Adds a window that fits its kernels: a sample at tick t is of the time t + `ahead_ns` of the records.
  void Add(const TimeJoin& join, const SampleWindow& window, double ahead_ns);
  // Tells the recorder if much more of the step was sampled than when it was told last.
  void Tell(Recorder& recorder);

 private:
  static constexpr size_t kMaxKernels = 8192;
  static constexpr size_t kBins = 4096;

  struct Kernel {
    uint32_t key = 0;
    uint64_t start_ns = 0, end_ns = 0;  // from the step's beginning
    uint32_t stream = 0;
  };
  struct Bin {
    double ns = 0;  // of samples
    double bytes = 0, cycles = 0;
  };
  // A key and which of its launches in the step it is.
  static uint64_t Place(uint32_t key, uint32_t which) { return uint64_t{key} << 32 | which; }

  bool Begin(const TimeJoin& join);
  // Puts what a window says of one kernel, over the part of it from `from` to `to`, where it stands in the step.
  void Put(const Kernel& kernel, double from, double to, double bytes_per_ns, double cycles_per_ns);
  double Sampled() const;

  const uint32_t device_;
  const size_t tensor_metric_;
  LaunchKeys& keys_;
  uint64_t step_ = 0, period_ns_ = 0;
  double bin_ns_ = 1;
  std::vector<Kernel> kernels_;  // by start; empty: no step was chosen yet
  std::unordered_map<uint64_t, size_t> kernel_at_;
  std::vector<Bin> bins_;
  uint64_t windows_ = 0;
  double told_ = 0;  // the part of the busy time that had samples when it was told last
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_STEP_TIMELINE_H_
