#include "collector/record/state.h"

#include "collector/process_facts.h"
#include "collector/record/rings.h"

namespace rfinject {
namespace {

// A lock is waited for in slices of this length; after each the waiter looks whether the lock can still be had at
// all.
constexpr int64_t kLockSliceNs = 100'000'000;
// For how long fork() may be held up, at most.
constexpr int64_t kForkWaitNs = 1'000'000'000;

}  // namespace

RecorderState::RecorderState(const Settings& given) noexcept
    : settings(given), created_unix_ns(UnixNs()), window(given), pid(getpid()) {
  try {
    definitions = new Definitions;
  } catch (...) {
    Mute(Mode::kDisabled);
    return;
  }
  FollowSettings();
}

void RecorderState::FollowSettings() noexcept {
  if (settings.start_stopped) definitions->facts.process.measuring = 1;
  if (settings.disabled || !RankMeasures(settings.ranks)) Mute(Mode::kDisabled);
}

bool RecorderState::BeginAgain() noexcept {
  if (definitions == nullptr || !lock.LockFor(kLockWaitNs)) return false;
  const HeldLock held(lock);
  delete trace;
  trace = nullptr;
  definitions->facts = {};
  definitions->diagnostics.clear();
  created_unix_ns = UnixNs();
  progress.ResetInForkedChild();
  window.Begin(settings);
  mode.store(Mode::kIdle, std::memory_order_release);
  FollowSettings();
  return true;
}

StateGuard::StateGuard(RecorderState* state, int64_t wait_ns) noexcept : state_(state) {
  for (; wait_ns > 0 && !held_; wait_ns -= kLockSliceNs) {
    held_ = state->lock.LockFor(kLockSliceNs);
    // A child of a raw clone has a copy of the lock in whatever state it was.
    if (!held_ && !state->IsOurProcess()) break;
  }
  if (!held_ || state->trace != nullptr || state->definitions == nullptr) return;
  try {
    state->trace = new PendingTrace(state->definitions, &state->window, state->created_unix_ns);
  } catch (...) {
  }
}

void RecorderState::BeforeFork() noexcept {
  if (lock.LockFor(kForkWaitNs)) fork_holder_.store(&t_ring, std::memory_order_relaxed);
}

void RecorderState::AfterForkInParent() noexcept {
  if (fork_holder_.load(std::memory_order_relaxed) != &t_ring) return;
  fork_holder_.store(nullptr, std::memory_order_relaxed);
  lock.Unlock();
}

void RecorderState::ResetInForkedChild() noexcept {
  const bool whole = fork_holder_.load(std::memory_order_relaxed) == &t_ring;
  fork_holder_.store(nullptr, std::memory_order_relaxed);
  pid.store(getpid(), std::memory_order_relaxed);
  trace = nullptr;
  progress.ResetInForkedChild();
  lock.ResetInForkedChild();
  if (!whole) definitions = nullptr;  // another thread of the parent was changing them
  window.ResetInForkedChild();
  // Children of a process that was attached to are not measured: _exit, by which many end, is not ours there, and
  // would leave their traces without an end.
  if (definitions == nullptr || Is(Mode::kDisabled) || settings.attached) {
    Mute(Mode::kDisabled);
    return;
  }
  definitions->facts.process.stopped_steps = definitions->facts.process.compiling_steps = 0;
  mode.store(Mode::kIdle, std::memory_order_relaxed);
}

}  // namespace rfinject
