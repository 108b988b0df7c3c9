// File: byte_sampler.h
//
// ByteSampler turns windows of PM sampling on one device into bytes of launches: it joins samples with the kernels
// that were timed meanwhile (sample_join.h), and tells kernels that overlap, or are shorter than a sample, apart over
// several windows (overlap_solver.h).
//
// All calls come from our own thread.
#ifndef RFINJECT_COLLECTOR_CUPTI_BYTE_SAMPLER_H_
#define RFINJECT_COLLECTOR_CUPTI_BYTE_SAMPLER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collector/cupti/counter_samples.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/overlap_solver.h"
#include "collector/cupti/pm_sampler.h"
#include "collector/cupti/sample_join.h"
#include "collector/cupti/step_timeline.h"
#include "collector/cupti/time_join.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class ByteSampler {
 public:
  // `dram_bytes_per_ns` is what the device's memory can move; 0: not known.
  ByteSampler(std::unique_ptr<PmSampler> sampler, uint32_t device, double dram_bytes_per_ns, LaunchKeys& keys,
              Recorder& recorder);

  // Opens the session if it is not open, for kernels that last `kernel_ns` as a rule and `longest_ns` at most.
  // Returns a CUptiResult.
  int Open(uint64_t kernel_ns, uint64_t longest_ns);
  bool is_open() const { return sampler_->is_open(); }
  // A window that was not decoded is lost.
  void Close() {
    sampler_->Close();
    has_window_ = false;
  }
  // How long a window may be so that it does not overflow, if the thread that ends it wakes up late.
  uint64_t window_ns() const { return std::max(sampler_->capacity_ns() / part_, 2 * kLateNs) - kLateNs; }

  int Start() { return sampler_->Start(); }
  int Stop();
  // Decodes the last window, if there is one, and gives what it counted to the kernels of `join`, whose first step is
  // `step`. Returns a CUptiResult; an overflow is none.
  int Join(const TimeJoin& join, uint64_t step);
  // Records what several windows tell of kernels that overlap; not where there are too few since it was done last.
  void Solve();
  // Whether the tensor pipes were seen to rest all the while that a launch of `key` ran: it has no tensor FLOP.
  bool SawNoTensor(uint32_t key) const { return no_tensor_.contains(key); }
  // Whether the last windows held nothing but zeros, though kernels ran.
  bool SeesNothing() const { return zero_windows_ >= kZeroWindows; }
  // Whether that may be so: of the first windows none has shown anything.
  bool SawNothingYet() const { return used_windows_ == 0 && windows_ <= kZeroWindows; }
  bool LastWasZero() const { return zero_windows_ > 0; }
  // How many windows have given bytes.
  uint32_t used_windows() const { return used_windows_; }

 private:
  static constexpr uint32_t kZeroWindows = 3;
  static constexpr uint64_t kLateNs = 4'000'000;
  void AddLaunches(const TimeJoin& join, const Joined& joined, const std::vector<TimedKernel>& kernels,
                   const std::vector<uint32_t>& launch_of, trace::SampledWindow* window);
  void AddWindow(const TimeJoin& join, uint64_t step);
  void NoteTensor(const SampleWindow& timed, double ahead_ns, const std::vector<TimedKernel>& kernels,
                  const Joined& joined);
  void Drop(trace::SampledWindow* window, uint32_t why);
  // Notes that a window would fit with clocks that are so far apart.
  void LookElsewhere(double offset_ns);

  std::unique_ptr<PmSampler> sampler_;
  const uint32_t device_;
  const double dram_bytes_per_ns_;
  LaunchKeys& keys_;
  Recorder& recorder_;
  CounterSamples samples_;
  std::vector<uint32_t> metrics_;  // the recorder's ids of what is sampled beside DRAM bytes
  OverlapSolver solver_;
  uint32_t windows_of_solver_ = 0;
  uint32_t used_windows_ = 0;
  uint32_t windows_ = 0;       // in all
  uint32_t zero_windows_ = 0;  // in a row
  size_t tensor_metric_;       // of the sampler's; their number where it has none
  StepTimeline timeline_;
  std::unordered_set<uint32_t> no_tensor_;
  std::unordered_map<uint32_t, uint32_t> own_;  // by key: launches that had bytes of their own
  SampleWindow window_;
  bool has_window_ = false, overflow_ = false;
  uint32_t part_ = 1;            // a window fills the buffer to one part in so many
  uint32_t since_overflow_ = 0;  // windows
  // How far the clock of the records is ahead of that of the samples; where the last windows that did not fit would
  // have, and how many in a row.
  int64_t clock_offset_ns_ = 0;
  double elsewhere_ns_ = 0;
  uint32_t agree_ = 0;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_BYTE_SAMPLER_H_
