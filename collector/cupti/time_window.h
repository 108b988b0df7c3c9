// File: time_window.h
//
// TimeWindow times the kernels, copies and memory sets of a step: it opens CUPTI's activity records for the step, and
// afterwards joins them with the log of what was launched in it (time_join.h).
//
// In a process, CUPTI's activity records have one owner. When the program's own profiler wants them, or another tool
// has taken them, TimeWindow gives way: it arms nothing for a number of steps, takes the records back when they
// stayed unused for that long, and gives up when it loses them repeatedly.
//
// Everything here is called by the thread that ends the steps, between two steps, and may call CUDA. CUPTI's own
// threads meet it only inside KernelTimes.
#ifndef RFINJECT_COLLECTOR_CUPTI_TIME_WINDOW_H_
#define RFINJECT_COLLECTOR_CUPTI_TIME_WINDOW_H_

#include <cstdint>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/counter_samples.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_tap.h"
#include "collector/cupti/time_join.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class TimeWindow {
 public:
  // The arguments must outlive the object. `api` may be filled later, but before Open.
  TimeWindow(const Api& api, Contexts& contexts, LaunchTap& tap, LaunchKeys& keys, Recorder& recorder)
      : api_(api), contexts_(contexts), tap_(tap), keys_(keys), recorder_(recorder), samples_(recorder, keys) {}

  // Makes times possible, if this CUPTI has them; a failure is reported.
  void Open();
  // Whether times can be taken.
  bool available() const noexcept { return times_ != nullptr; }

  // Whether anything of ours, counters included, may be armed in `step`. `profiles`: the program's own profiler runs.
  enum class Turn : uint8_t {
    kOurs,
    kTheirs,
    kLost,  // ours, but no more times can be taken, which has been reported: the caller must call Lose()
  };
  Turn TurnIn(uint64_t step, bool profiles);

  // Times the step that begins. Returns false, after a report, when no more times can be taken.
  bool Arm();

  struct Reading {
    bool lost = false;   // no more times can be taken, which has been reported: the caller must call Lose()
    bool valid = false;  // the times may be used
    std::vector<TimeJoin::Key> keys;
  };
  // Ends `step`, which Arm began, waits for its kernels and hands their times to the recorder. `profiles` as above.
  Reading Read(uint64_t step, bool profiles);

  // Ends the taking of times. Returns true when CUPTI refused to end the last window: its kernels stay instrumented,
  // and no counters may be armed in this process either.
  bool Lose() noexcept;

 private:
  const Api& api_;
  Contexts& contexts_;
  LaunchTap& tap_;
  LaunchKeys& keys_;
  Recorder& recorder_;
  CounterSamples samples_;

  KernelTimes* times_ = nullptr;  // null: no times. Never destroyed, since CUPTI's buffers may come at any time.
  uint32_t taken_windows_ = 0;    // windows in a row whose records another tool got
  uint64_t quiet_until_ = 0;      // nothing of ours is armed before this step; 0: no other tool is in the way
  bool profiler_reported_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_TIME_WINDOW_H_
