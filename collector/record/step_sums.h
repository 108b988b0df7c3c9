// File: step_sums.h
//
// StepSums holds what the samples of a step add up to, by launch key: the series that intervals are made of
// (docs/method/INTERVALS.md). Only what is sampled comes here, which is kernel times and DRAM bytes. A launch itself
// never does, so the launch path pays nothing for it. It is used under the recorder's lock.
#ifndef RFINJECT_COLLECTOR_RECORD_STEP_SUMS_H_
#define RFINJECT_COLLECTOR_RECORD_STEP_SUMS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "collector/recorder.h"

namespace rfinject {

// One metric's sums of one step, as the trace has them; without the run.
using SampledStep = trace::SampledStep;

class StepSums {
 public:
  // Of each metric. There are some twenty more in each doubling of a run (arming/schedule.h).
  static constexpr uint32_t kMaxSteps = 512;

  // Adds a sample of launch key `key` (from 1) in `step`. The first sample of a later step completes the sums of the
  // metric's last one; one of an earlier step is left out.
  void Add(uint64_t step, uint32_t key, const Sample& sample);
  // Completes what there is: nothing more comes.
  void CompleteAll();

  // Complete steps, oldest first; the caller removes those that it has written.
  std::deque<SampledStep>& complete() noexcept { return complete_; }

 private:
  struct Series {
    uint32_t metric = 0;
    uint32_t steps = 0;           // completed so far
    uint64_t open = 0;            // the step that samples are added to
    bool closed = false;          // it is complete
    std::vector<uint64_t> sums;   // of the open step, by key
    std::vector<uint32_t> keys;   // that have a sample in it
    std::vector<bool> has;        // whether a key has one
    std::vector<uint32_t> codes;  // of the last step that a key had, by key
    std::vector<uint32_t> last_keys;
  };

  void Complete(Series* series);

  std::array<Series, 2> series_{Series{.metric = kTime}, Series{.metric = kDramBytes}};
  std::deque<SampledStep> complete_;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_STEP_SUMS_H_
