// File: counting.h
//
// Counting is what counts and samples while the program runs on: a thread of ours, at low priority, that opens
// sessions, reads ranges, decodes samples and joins them with times. The thread that ends the steps tells it of each
// step, and times kernels for it. The program waits for neither, but for the opening in a short run (--steps), which
// would be over before anything was counted.
//
//   counting.cc           the thread that ends the steps; what is spent
//   counting_windows.cc   our thread: times and bytes
//   counting_sessions.cc  our thread: opening, and FLOP
//
//   kernel_window.h   times: when each kernel ran
//   byte_sampler.h    bytes: samples of the whole device, joined with the times
//   range_counter.h   FLOP: ranges around single launches
//   arming/           when, and what it may cost: schedule.h, wanted_counts.h, budget.h
//
// Kernels are not timed while ranges are counted: whether CUPTI can do both at once is not known, and ranges make
// kernels wait. So one state says what goes on: kIdle; kCounting and back, by our thread; kLogging and kLogged, by
// the thread that ends the steps, and back to kIdle by ours. A window that is due while ranges are counted asks for
// its turn.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTING_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTING_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "collector/arming/backoff.h"
#include "collector/arming/budget.h"
#include "collector/arming/schedule.h"
#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/byte_sampler.h"
#include "collector/cupti/context_scope.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/kernel_window.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_tap.h"
#include "collector/cupti/lock_waits.h"
#include "collector/cupti/range_counter.h"
#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class Counting {
 public:
  // The arguments must outlive the object, which is never destroyed. `api` may be filled and the first context added
  // later, but before Start.
  Counting(const Settings& settings, const Api& api, Contexts& contexts, LaunchTap& tap, LaunchKeys& keys,
           Recorder& recorder) noexcept;

  // --- For the thread that ends the steps.

  // Starts the thread, which plans at once. May be called again.
  void Start();
  // Measuring begins with `step`.
  void Begin(uint64_t step);
  // `step` has ended and the next one begins. `profiles`: the program's own profiler runs.
  void OnStepEnd(uint64_t step, bool profiles);

  // --- For any thread.

  // The context is about to be destroyed: ends what runs in it.
  void OnContextDestroyed(const void* context) noexcept;
  // Ends all sessions in order, of the contexts that are left.
  void EndSessions() noexcept;
  // Ends the thread's work, and waits a moment for what it has in hand.
  void Stop() noexcept;
  void OnForkedChild() noexcept;

 private:
  enum class Phase : uint32_t { kIdle, kCounting, kLogging, kLogged };
  struct Device {
    CountedContext* context = nullptr;
    std::string chip;
    std::unique_ptr<RangeCounter> ranges;
    std::unique_ptr<ByteSampler> bytes;
    // The batch of ranges: how many it has, and the step in which the last was opened.
    size_t used = 0;
    uint64_t moved_step = 0;
  };
  // The steps' durations, of those in which nothing was counted.
  static constexpr size_t kDurations = 32;

  // --- The thread that ends the steps.
  void FollowWindow(uint64_t next, bool ours, bool profiles);
  void NoteDuration(uint64_t step, bool counted);
  void LoseTimes();
  void AllowRanges(uint64_t next, bool ours);
  void Hold();
  bool OursIsCurrent() const;

  // --- Our thread.
  static void* Main(void* self) noexcept;
  void Run();
  void Open();
  bool OpenDevice(CountedContext& context);
  std::unique_ptr<RangeCounter> OpenRanges(Device* device, bool bytes);
  void AdoptContexts();
  bool Busy(const char* what, int result);
  void Refused(const char* what, int result);
  void LoseBytes(Device* device, const char* what, int result);
  void ServeWindow();
  bool SampleInWindow();
  void ReadWindow();
  void AddTimes(const TimeJoin& join);
  void AddSteps(const TimeJoin& join);
  void Count();
  void FollowBatch(Device* device);
  void OpenSampling(Device* device, bool ranges_open);
  void FinishBatch(Device* device);
  void BeginBatch(Device* device);
  bool SamplesHaveTheirTurn() const;
  bool Waited(const Device& device) const;
  bool CloseSampling() RFINJECT_REQUIRES(calls_);
  void CloseSessions();
  Device* DeviceAt(size_t index);
  bool MayCost(uint64_t ns) const;
  uint64_t SpentNs() const;
  void KeepCosts();
  void ReportFacts();
  void ReportUnfinished();
  void WaitFor(int64_t ns);
  // Calls `call` while no stream is captured and no context is destroyed; false when that is not now.
  template <typename Call>
  bool Unsafely(const CountedContext& context, Call call) {
    if (!calls_.LockFor(kStepLockWaitNs)) return false;
    const HeldLock held(calls_);
    if (context.context() == nullptr || stopping_.load() || !tap_.BeginUnsafe()) return false;
    {
      const ContextScope scope(api_, context.context());
      if (scope.ok()) call();
    }
    tap_.EndUnsafe();
    return true;
  }

  const Settings& settings_;
  const Api& api_;
  Contexts& contexts_;
  LaunchTap& tap_;
  LaunchKeys& keys_;
  Recorder& recorder_;

  KernelWindow window_;
  arming::Schedule schedule_;
  arming::Budget budget_;

  // Shared by both threads.
  std::atomic<bool> started_{false}, planned_{false}, begun_{false}, stopping_{false}, done_{false};
  std::atomic<bool> times_lost_{false}, paused_{false}, opening_{false}, window_due_{false};
  std::atomic<bool> instrumented_{false};  // for good, since CUPTI has not ended a window: no range may be opened
  std::atomic<bool> unfinished_{true};     // some key lacks FLOP
  std::atomic<Phase> state_{Phase::kIdle};
  std::atomic<uint64_t> step_{0};           // that runs
  std::atomic<uint64_t> step_ns_{0};        // what one takes; 0: not known
  std::atomic<uint32_t> allowance_{0};      // ranges of a step
  std::atomic<uint32_t> session_group_{0};  // that is counted, from 1; 0: none
  std::atomic<uint64_t> ranges_used_{0};
  std::atomic<uint64_t> longer_ns_{0};  // what opening and ranges have made steps longer by
  std::atomic<uint64_t> held_ns_{0};    // that the program has waited in a short run
  std::atomic<int64_t> window_began_unix_ns_{0};
  std::atomic<uint64_t> window_step_{0};
  Event event_;
  // Held while a session's functions are called; whoever destroys a context waits for it.
  Mutex calls_;
  std::deque<Device> devices_ RFINJECT_GUARDED_BY(calls_);  // that are known, by the order of their first launch

  // The thread that ends the steps.
  std::array<uint64_t, kDurations> durations_{};
  uint64_t duration_count_ = 0;
  int64_t step_began_ns_ = 0;
  uint32_t steps_behind_ = 0;  // that may still be longer by what was counted
  int64_t stretch_ns_ = 0;     // what the steps since were longer by
  uint64_t window_end_ = 0, last_window_ = 0, first_step_ = 0, ranges_seen_ = 0;

  // Our thread.
  BackendKind backend_kind_ = BackendKind::kNone;
  std::string collector_ = "activity", why_;
  uint32_t contexts_seen_ = 0;
  size_t devices_count_ = 0;
  arming::Backoff backoff_;
  bool busy_reported_ = false;
  bool exclusive_ = false;  // sessions of ranges and of samples exclude each other

  int64_t begun_ns_ = 0;
  int64_t lag_ns_ = -1;     // from a launch to its kernel's start; -1: not known
  uint64_t kernel_ns_ = 0;  // what the usual kernel takes, by time
  uint64_t windows_ = 0;
  uint64_t kept_calls_ns_ = 0, kept_own_ns_ = 0, kept_longer_ns_ = 0, kept_held_ns_ = 0, kept_ranges_ = 0,
           ranges_ = 0;
  uint64_t costed_ns_ = 0, costed_ranges_ = 0;  // that are in what a range costs
  uint64_t turns_since_step_ = 0, complete_since_step_ = 0;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTING_H_
