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
// A session of ranges and one of samples exclude each other (CUPTI_ERROR_HARDWARE_BUSY), so they take turns. Samples
// come first: they cost the program next to nothing, and show which kernels use no tensor core, of which no tensor
// FLOP need be counted. Ranges cost more: launches wait while their session is started, and each makes its step
// longer.
//
// Kernels are not timed while ranges are counted, since ranges make kernels wait. So one state says what goes on:
// kIdle; kCounting and back, by our thread; kLogging and kLogged, by the thread that ends the steps, and back to
// kIdle by ours. A window that is due while ranges are counted asks for its turn.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTING_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTING_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "collector/arming/backoff.h"
#include "collector/arming/range_pace.h"
#include "collector/arming/schedule.h"
#include "collector/arming/turns.h"
#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/byte_sampler.h"
#include "collector/cupti/context_scope.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/counting_costs.h"
#include "collector/cupti/kernel_window.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_tap.h"
#include "collector/cupti/lock_waits.h"
#include "collector/cupti/range_counter.h"
#include "collector/cupti/step_pace.h"
#include "collector/cupti/time_join.h"
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

  // --- For any thread, while no step ends.

  // Another profiler comes: ends the window that runs, and waits a moment until all sessions are closed. For some
  // steps nothing is begun.
  void GiveWay() noexcept;

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
  struct Life {
    std::atomic<bool> started{false}, planned{false}, begun{false}, stopping{false}, done{false};
    std::atomic<bool> giving_way{false};  // our thread shall close all sessions
  };
  // The window that runs, and what is known for the next.
  struct Windows {
    // One is due. There are more than were drawn while FLOP wait for samples, and where a graph is new, of which
    // there may be few launches, so that one is due soon: those are extra.
    std::atomic<bool> due{false}, soon{false}, hurry{false}, extra{false};
    std::atomic<int64_t> began_unix_ns{0}, ended_unix_ns{0};
    std::atomic<uint64_t> step{0};
    // The thread that ends the steps.
    uint64_t end = 0, last = 0;
    bool drawn = false;               // the one that is due
    uint64_t extra_in = 0;            // steps; 0: not drawn
    std::vector<Stretch> data_waits;  // of the program in the window; our thread's, once that is logged
    // Our thread.
    int64_t lag_ns = -1;     // from its beginning to that of its first kernel; -1: not known
    uint64_t kernel_ns = 0;  // what the usual kernel takes, by time
    uint64_t longest_ns = 0;
    uint64_t count = 0;
  };
  // The ranges that are counted.
  struct Ranges {
    std::atomic<bool> unfinished{true};     // some key lacks FLOP
    std::atomic<uint64_t> allowance_ns{0};  // what those of a step may cost
    std::atomic<uint32_t> group{0};         // that is counted, from 1; 0: none
    // The thread that ends the steps: what all so far were expected to cost.
    uint64_t spent_ns = 0;
    // Our thread.
    arming::RangePace pace;
    uint64_t count = 0;
    uint64_t complete_since_step = 0;
  };
  // What was opened, and what was in the way.
  struct Opened {
    BackendKind kind = BackendKind::kNone;
    std::string collector = "activity", why;
    uint32_t contexts_seen = 0;
    size_t devices = 0;
    arming::Backoff backoff;
    bool busy_reported = false, zeros_reported = false;
  };

  // --- The thread that ends the steps.
  void FollowWindow(uint64_t next, bool ours, bool profiles);
  bool ExtraIsDue();
  void NoteDataWaits();
  void LoseTimes();
  void AllowRanges(uint64_t next, bool ours);
  void Hold();
  uint64_t RangesSpentNs();
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
  void ReportZeros();
  void LoseBytes(Device* device, const char* what, int result) RFINJECT_REQUIRES(calls_);
  void ServeWindow();
  bool SampleInWindow();
  void ReadWindow();
  void AddTimes(const TimeJoin& join, const std::vector<GpuAdvance>& advances);
  void AddSteps(const TimeJoin& join, const std::vector<GpuAdvance>& advances);
  void Count();
  void FollowBatch(Device* device);
  void PaceRanges(bool anew);
  void OpenSampling(Device* device);
  void FinishBatch(Device* device);
  void BeginBatch(Device* device);
  bool RangesHaveTheirTurn(bool wanted);
  // The step until which ranges wait for a sample that shows something; `zeros`: those that came showed nothing.
  uint64_t LongestWithoutSamples(bool zeros) const;
  // Whether what takes long is left as it is.
  bool Hurries() const noexcept { return life_.stopping.load() || life_.giving_way.load(); }
  bool Waited(const Device& device) const;
  void CloseSampling() RFINJECT_REQUIRES(calls_);
  void CloseSessions();
  Device* DeviceAt(size_t index);
  void ReportFacts();
  void ReportUnfinished();
  void WaitFor(int64_t ns);
  // Calls `call` while no stream is captured and no context is destroyed; false when that is not now.
  template <typename Call>
  bool Unsafely(const CountedContext& context, Call call) {
    if (!calls_.LockFor(kStepLockWaitNs)) return false;
    const HeldLock held(calls_);
    if (context.context() == nullptr || life_.stopping.load() || !tap_.BeginUnsafe()) return false;
    {
      const ContextScope scope(api_, context.context());
      if (scope.ok()) call();
    }
    tap_.EndUnsafe();
    return true;
  }
  // The same for calls for whose end launches wait: starting and ending a session of ranges. The step that runs is
  // one that was counted, also where it ends after the call.
  template <typename Call>
  bool KeepingLaunches(const CountedContext& context, Call call) {
    kept_launches_.store(true);
    const bool called = Unsafely(context, call);
    kept_launches_.store(true);
    return called;
  }

  const Settings& settings_;
  const Api& api_;
  Contexts& contexts_;
  LaunchTap& tap_;
  LaunchKeys& keys_;
  Recorder& recorder_;

  KernelWindow window_;
  arming::Schedule schedule_;
  arming::Turns turns_;
  StepPace pace_;
  CountingCosts costs_;

  // Shared by both threads.
  Life life_;
  Windows windows_;
  Ranges ranges_;
  std::atomic<bool> times_lost_{false}, paused_{false}, opening_{false};
  // Launches may have waited for a call of ours in the step that runs.
  std::atomic<bool> kept_launches_{false};
  std::atomic<bool> instrumented_{false};  // for good, since CUPTI has not ended a window: no range may be opened
  std::atomic<Phase> state_{Phase::kIdle};
  std::atomic<uint64_t> step_{0};  // that runs
  Event event_;
  // Held while a session's functions are called; whoever destroys a context waits for it.
  Mutex calls_;
  std::deque<Device> devices_ RFINJECT_GUARDED_BY(calls_);  // that are known, by the order of their first launch

  Opened opened_;  // our thread's
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTING_H_
