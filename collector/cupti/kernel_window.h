// File: kernel_window.h
//
// KernelWindow times the kernels, copies and memory sets of a few steps: it opens CUPTI's activity records and the
// log of launches, and afterwards joins the two (time_join.h).
//
// In a process, CUPTI's activity records have one owner. When the program's own profiler wants them, or another tool
// has taken them, KernelWindow gives way: nothing is timed or counted for a number of steps, the records are taken
// back when they stayed unused for that long, and given up when they are lost repeatedly.
//
// The thread that ends the steps opens and closes the window, between two steps. Our own thread waits for the
// records, which come when the GPU has done the work; the program does not wait.
#ifndef RFINJECT_COLLECTOR_CUPTI_KERNEL_WINDOW_H_
#define RFINJECT_COLLECTOR_CUPTI_KERNEL_WINDOW_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/cupti/api.h"
#include "collector/cupti/kernel_times.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"
#include "collector/cupti/launch_tap.h"
#include "collector/cupti/time_join.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class KernelWindow {
 public:
  // The arguments must outlive the object. `api` may be filled later, but before Open.
  KernelWindow(const Api& api, LaunchTap& tap, LaunchKeys& keys, Recorder& recorder) noexcept
      : api_(api), tap_(tap), keys_(keys), recorder_(recorder) {}

  // --- For the thread that ends the steps. Every failure has been reported when a call returns.

  // Makes times possible, if this CUPTI has them.
  void Open();
  bool available() const noexcept { return times_ != nullptr; }

  // Whether anything of ours, counters included, may be collected in `step`. `profiles`: the program's own profiler
  // runs.
  enum class Turn : uint8_t {
    kOurs,
    kTheirs,
    kLost,  // ours, but no more times can be taken: the caller must call Lose()
  };
  Turn TurnIn(uint64_t step, bool profiles);

  // Another profiler comes: it is its turn for some steps.
  void GiveWay() noexcept { coming_.store(true); }
  // Ends a window whose times are not wanted any more. False: CUPTI refused.
  bool Abandon() noexcept;

  // Times what is launched from now on, with `step`. False: no more times can be taken.
  bool Begin(uint64_t step);
  // What is launched from now on belongs to `step`.
  void NextStep(uint64_t step) noexcept { tap_.log().BeginStep(step); }
  enum class End : uint8_t { kDone, kTaken, kLost };
  // Ends the window before `step`. kTaken: another tool has the records, and the window is empty.
  End Finish(uint64_t step, bool profiles);
  // Ends the taking of times. Returns true when CUPTI refused to end the last window: its kernels stay instrumented,
  // and nothing may be counted in this process either.
  bool Lose() noexcept;

  // --- For our own thread, after Finish has returned kDone and before the next Begin.

  // Makes CUPTI hand back our buffers, with whatever they hold: the records of another tool that comes would be
  // written into them, and it knows nothing of them.
  void TakeBuffersBack() noexcept;
  // Asks for the records. Returns whether all have come. A failure is reported.
  bool Poll();
  // Takes the times that have come. `all`: what has not come yet is not waited for. False: another tool has taken the
  // records, or none came.
  bool Collect(bool all, TimeJoin* join);

 private:
  const Api& api_;
  LaunchTap& tap_;
  LaunchKeys& keys_;
  Recorder& recorder_;

  KernelTimes* times_ = nullptr;  // null: no times. Never destroyed, since CUPTI's buffers may come at any time.
  std::vector<LaunchLog::Entry> entries_;
  size_t expected_ = 0;                     // launches of a window
  std::atomic<uint32_t> taken_windows_{0};  // windows in a row whose records another tool got
  std::atomic<bool> taken_{false};          // the last one was
  uint64_t quiet_until_ = 0;         // nothing of ours is collected before this step; 0: no other tool is in the way
  std::atomic<bool> coming_{false};  // another profiler has come in this step
  bool profiler_reported_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_KERNEL_WINDOW_H_
