// File: counter_steps.h
//
// CounterSteps counts the kernels of a step. It decides which of CUPTI's profilers does it, on which devices, kernel
// by kernel or layer by layer, and what happens when another process holds the counters.
//
// Everything here is called by the thread that ends the steps, between two steps, and may call CUDA. Launch callbacks
// meet it only through the contexts' logs.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_STEPS_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/arming/backoff.h"
#include "collector/arming/policy.h"
#include "collector/cupti/api.h"
#include "collector/cupti/backend_choice.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/counted_context.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/counter_mode.h"
#include "collector/cupti/launch_tap.h"
#include "collector/recorder.h"
#include "collector/run_facts.h"
#include "collector/settings.h"

namespace rfinject::cupti {

class CounterSteps {
 public:
  // The arguments must outlive the object. `api` may be filled and the first context added later, but before Open.
  CounterSteps(const Settings& settings, const Api& api, Contexts& contexts, const LaunchTap& tap,
               Recorder& recorder) noexcept
      : settings_(settings), api_(api), contexts_(contexts), tap_(tap), recorder_(recorder) {}

  // What counts in the first context, or null; the other contexts have the same groups, or none.
  CounterBackend* backend() const noexcept {
    const CountedContext* first = contexts_.first();
    return first != nullptr ? first->backend() : nullptr;
  }
  // The roles of its groups, for the policy; empty when nothing counts.
  std::vector<arming::GroupRole> Roles() const;
  // Whether PM sampling may run in this process: only if nothing counts, or the Range Profiler does, which is of its
  // family.
  bool LeavesRoomForSampling() const noexcept;

  // Every failure below has been reported when the call returns.
  enum class Result : uint8_t {
    kDone,
    kNot,   // not this time
    kLost,  // nothing will be counted any more; the profilers have been abandoned
  };

  // Opens the counters of the first context, as the settings and the process ask for; `step` is the step that comes.
  Result Open(uint64_t step);
  // Whether another process holds the counters and opening them is worth another try at some later step, or in
  // `step`.
  bool waiting() const noexcept { return backoff_.waiting(); }
  bool RetryIsDue(uint64_t step) const noexcept {
    return backend() == nullptr && backoff_.waiting() && backoff_.Due(step);
  }
  // Tries Open again. Further contexts must be adopted anew.
  Result Retry(uint64_t step);

  // Takes in the contexts that launches have made known since the last call; each device gets a profiler of its own.
  // Returns whether there is a device among them that was not known.
  bool AdoptContexts();

  // Counts `group` in all contexts in the step that begins.
  Result Arm(uint64_t step, size_t group);

  struct Reading {
    bool lost = false;   // as kLost
    bool valid = false;  // the counts may be used
    std::vector<CountedContext::Outcome> outcomes;
  };
  // Ends what Arm began. `stalled` says that the step made no progress: its counts are thrown away, and counting ends
  // for good.
  Reading Read(bool stalled);
  // Ends what Arm began without reading it, where it still can be ended in order, and lets go of what cannot.
  void Abandon();
  // Stops counting. The profilers are abandoned and not destroyed, since a launch may still be inside one.
  void Lose() noexcept;
  // Stops counting as Lose does, and for good: Open is not tried again.
  void GiveUp() noexcept;

  // Adds what the process is measured with: the collector, the modes of counting, the devices.
  void AddFacts(RunFacts* facts) const;

 private:
  ModeChoice ChooseMode(bool layer_ranges) const;
  bool FollowMode();
  void ReportMode();
  std::unique_ptr<CounterBackend> OpenBackend(const void* context, uint32_t device, std::string* chip, int* result);
  Result Busy(const std::string& call, uint64_t step);

  const Settings& settings_;
  const Api& api_;
  Contexts& contexts_;
  const LaunchTap& tap_;
  Recorder& recorder_;

  uint32_t ranks_ = 1;
  bool mps_ = false;
  ModeChoice mode_;
  std::string collector_ = "activity";  // what the trace says it was measured with
  BackendKind backend_kind_{};
  std::vector<std::string> chips_;  // of the contexts that were adopted, by their order; empty: not known
  arming::Backoff backoff_;         // from counters that another process holds
  bool busy_reported_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_STEPS_H_
