#include "collector/cupti/launch_log.h"

#include "collector/cupti/lock_waits.h"

namespace rfinject::cupti {
namespace {

// The log whose lock the calling thread holds, for the launch that it is in.
__thread LaunchLog* t_holds = nullptr;
__thread bool t_logged = false;

}  // namespace

void LaunchLog::Open(Mode mode, const void* context, size_t expected, NextRange next_range, void* user) noexcept {
  if (!lock_.LockFor(kLogLockWaitNs)) return;
  const HeldLock held(lock_);
  entries_.clear();
  next_range_ = next_range;
  next_range_user_ = user;
  ranges_.store(0, std::memory_order_release);
  try {
    entries_.reserve(expected);
  } catch (...) {  // grows as needed, then
  }
  spoiled_.store(false, std::memory_order_relaxed);
  context_.store(context, std::memory_order_release);
  mode_.store(mode, std::memory_order_release);
}

bool LaunchLog::Close(std::vector<Entry>* entries) noexcept {
  mode_.store(Mode::kOff, std::memory_order_release);
  // A launch that is still inside the driver on another thread belongs to no step.
  if (!lock_.LockFor(kLogLockWaitNs)) return false;
  const HeldLock held(lock_);
  entries->swap(entries_);
  entries_.clear();
  return !spoiled_.load(std::memory_order_relaxed);
}

// The lock outlives this function where a launch is counted: Exit gives it back, on the same thread. The analysis of
// locks cannot follow that, so that it is switched off for the two and for nothing else.
void LaunchLog::Enter(uint32_t key, uint32_t correlation_id,
                      uint64_t owner) noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS {
  progress_.fetch_add(1, std::memory_order_relaxed);
  t_logged = false;
  if (t_holds != nullptr || !lock_.LockFor(kLogLockWaitNs)) {
    Spoil();
    return;
  }
  if (AddEntry(key, correlation_id, owner)) {
    t_holds = this;
  } else {
    lock_.Unlock();
  }
}

bool LaunchLog::AddEntry(uint32_t key, uint32_t correlation_id, uint64_t owner) noexcept {
  const Mode mode = mode_.load(std::memory_order_relaxed);
  if (mode == Mode::kOff) return false;  // closed while we waited
  size_t ranges = ranges_.load(std::memory_order_relaxed);
  if (mode == Mode::kRanges && (ranges == 0 || owner != last_owner_)) {
    if (!next_range_(next_range_user_, ranges)) Spoil();
    last_owner_ = owner;
    ranges_.store(++ranges, std::memory_order_release);
  }
  try {
    entries_.push_back({key, correlation_id, static_cast<uint32_t>(ranges - 1), owner});
    t_logged = true;
  } catch (...) {
    Spoil();
  }
  return mode != Mode::kTiming;
}

void LaunchLog::Exit(bool failed) noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS {
  LaunchLog* log = t_holds;
  if (log == nullptr) {
    // In a step with times, an entry without a record does no harm.
    t_logged = false;
    return;
  }
  if (failed && t_logged && !log->entries_.empty()) log->entries_.pop_back();
  t_holds = nullptr;
  t_logged = false;
  log->lock_.Unlock();
}

}  // namespace rfinject::cupti
