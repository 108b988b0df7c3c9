// File: step_policy.h
//
// StepPolicy decides which step collects what (arming/policy.h), with a lock around it: the thread that ends
// the steps asks it and feeds it, and the watchdog's thread asks it whether the step that runs is stuck. It is
// made again when what is to be collected changes.
#ifndef RFINJECT_COLLECTOR_CUPTI_STEP_POLICY_H_
#define RFINJECT_COLLECTOR_CUPTI_STEP_POLICY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collector/arming/policy.h"
#include "collector/cupti/counted_context.h"
#include "collector/cupti/time_join.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class StepPolicy {
 public:
  // A decision, and which of the policies made it.
  struct Plan {
    arming::Decision decision;
    uint64_t generation = 0;
  };

  // Starts with a policy that knows nothing yet: what was decided before does not count for it.
  void Renew(const arming::Options& options, std::vector<arming::GroupRole> roles);

  // How many steps it takes, from the window's first, until everything was collected once; 0 where that is not known.
  uint64_t FirstRotationSteps() noexcept;

  // The following are for the thread that ends the steps; steps are counted from the window's first. A call that
  // cannot have the lock does nothing, and the decision is then to collect nothing.
  Plan Begin(uint64_t step) noexcept;
  // Tells that what Begin decided could not be done.
  void Cancel(const Plan& plan) noexcept;
  // Tells that the step is over. `keys` is how many launch keys there are by now. A step that was before the window
  // (`in_window` false) only makes its keys known. Throws std::bad_alloc, as the next two do.
  void End(bool in_window, uint64_t step, const Plan& plan, uint64_t duration_ns, bool valid, uint32_t keys);
  // Takes what the step measured, before its End. Returns false when it could not be noted.
  bool AddCounts(uint32_t group, std::span<const CountedContext::Outcome> outcomes);
  bool AddTimes(std::span<const TimeJoin::Key> keys);

  // For the watchdog. See arming::Policy::CheckStall; false as well while another thread has the lock.
  bool CheckStall(uint64_t now_ns, uint64_t progress) noexcept;

  void ResetLockInForkedChild() noexcept { lock_.ResetInForkedChild(); }

 private:
  Mutex lock_;
  std::unique_ptr<arming::Policy> policy_ RFINJECT_GUARDED_BY(lock_);
  uint64_t generation_ RFINJECT_GUARDED_BY(lock_) = 0;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_STEP_POLICY_H_
