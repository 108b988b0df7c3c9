#include "collector/cupti/step_policy.h"

#include <utility>

#include "collector/cupti/lock_waits.h"

namespace rfinject::cupti {

void StepPolicy::Renew(const arming::Options& options, std::vector<arming::GroupRole> roles) {
  auto policy = std::make_unique<arming::Policy>(options, std::move(roles));
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  policy_ = std::move(policy);
  ++generation_;
}

uint64_t StepPolicy::FirstRotationSteps() noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return 0;
  const HeldLock held(lock_);
  return policy_ != nullptr ? policy_->first_rotation_steps() : 0;
}

StepPolicy::Plan StepPolicy::Begin(uint64_t step) noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return {};
  const HeldLock held(lock_);
  if (policy_ == nullptr) return {};
  return {policy_->Begin(step), generation_};
}

void StepPolicy::Cancel(const Plan& plan) noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  if (policy_ != nullptr && plan.generation == generation_) policy_->Cancel();
}

void StepPolicy::End(bool in_window, uint64_t step, const Plan& plan, uint64_t duration_ns, bool valid,
                     uint32_t keys) {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  if (policy_ == nullptr) return;
  for (auto key = static_cast<uint32_t>(policy_->key_count()); key < keys; ++key) policy_->OnNewKey(key);
  if (!in_window) return;
  // A policy that was made meanwhile did not make this decision.
  const arming::Decision decision = plan.generation == generation_ ? plan.decision : arming::Decision{};
  policy_->End(step, decision, duration_ns, valid);
}

bool StepPolicy::AddCounts(uint32_t group, std::span<const CountedContext::Outcome> outcomes) {
  if (!lock_.LockFor(kStepLockWaitNs)) return false;
  const HeldLock held(lock_);
  if (policy_ == nullptr) return false;
  for (const CountedContext::Outcome& outcome : outcomes) {
    for (const CountedContext::KeyCount& count : outcome.counts) {
      if (outcome.has_bytes) policy_->OnBytes(count.key, count.bytes);
      policy_->OnCounted(count.key, group);
    }
  }
  return true;
}

bool StepPolicy::AddTimes(std::span<const TimeJoin::Key> keys) {
  if (!lock_.LockFor(kStepLockWaitNs)) return false;
  const HeldLock held(lock_);
  if (policy_ == nullptr) return false;
  for (const TimeJoin::Key& key : keys) policy_->OnTime(key.key, key.ns / key.launches, key.launches);
  return true;
}

bool StepPolicy::CheckStall(uint64_t now_ns, uint64_t progress) noexcept {
  if (!lock_.TryLock()) return false;
  const HeldLock held(lock_);
  return policy_ != nullptr && policy_->CheckStall(now_ns, progress);
}

}  // namespace rfinject::cupti
