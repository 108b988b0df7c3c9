// File: time_window.h
//
// TimeWindow times the kernels, copies and memory sets of a step: it opens CUPTI's activity records for the step, and
// afterwards joins them with the log of what was launched in it (time_join.h).
//
// CUPTI's activity records have one owner a process. When the program's own profiler wants them, or somebody has
// taken them, they are given way to: TimeWindow arms nothing for a number of steps, takes the records back when
// nobody has used them for so long, and gives up when they are taken from us again and again.
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
      : api_(api), contexts_(contexts), tap_(tap), recorder_(recorder), samples_(recorder, keys) {}

  // Makes times possible, if this CUPTI has them; a failure is reported.
  void Open();
  // Times can be had.
  bool available() const noexcept { return times_ != nullptr; }

  // Whether anything of ours, counters included, may be armed in `step`. `profiles`: the program's own profiler runs.
  enum class Turn : uint8_t {
    kOurs,
    kTheirs,
    kLost,  // ours, but times are over, which has been reported: Lose() is to be called
  };
  Turn TurnIn(uint64_t step, bool profiles);

  // Times the step that begins. Returns false, and has reported it, when times are over.
  bool Arm();

  struct Reading {
    bool lost = false;   // times are over, which has been reported: Lose() is to be called
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
  Recorder& recorder_;
  CounterSamples samples_;

  KernelTimes* times_ = nullptr;  // null: no times. Never destroyed, since CUPTI's buffers may come at any time.
  uint32_t taken_windows_ = 0;    // windows in a row that somebody else got
  uint64_t quiet_until_ = 0;      // the step until which nothing of ours is armed; 0: nobody is in the way
  bool profiler_reported_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_TIME_WINDOW_H_
