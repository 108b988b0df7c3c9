// File: launch_log.cc
#include "collector/cupti/launch_log.h"

namespace rfinject::cupti {
namespace {

// A launch that blocks (a communication kernel that waits for another rank) must not block other threads' launches,
// for it may be one of those that it waits for. After this long they go on, and the step is lost.
constexpr int64_t kPatienceNs = 500'000'000;

// The log whose lock the calling thread holds, of the launch that it is in.
__thread LaunchLog* t_holds = nullptr;
__thread bool t_logged = false;

}  // namespace

void LaunchLog::Open(Mode mode, const void* context, size_t expected, NextRange next_range, void* user) noexcept {
  if (!mutex_.LockFor(kPatienceNs)) return;
  entries_.clear();
  next_range_ = next_range;
  next_range_user_ = user;
  ranges_ = 0;
  try {
    entries_.reserve(expected);
  } catch (...) {  // grows as needed, then
  }
  spoiled_.store(false, std::memory_order_relaxed);
  context_.store(context, std::memory_order_release);
  mode_.store(mode, std::memory_order_release);
  mutex_.Unlock();
}

bool LaunchLog::Close(std::vector<Entry>* entries) noexcept {
  mode_.store(Mode::kOff, std::memory_order_release);
  // A launch that is still inside the driver on another thread belongs to no step.
  if (!mutex_.LockFor(kPatienceNs)) return false;
  entries->swap(entries_);
  entries_.clear();
  mutex_.Unlock();
  return !spoiled_.load(std::memory_order_relaxed);
}

void LaunchLog::Enter(uint32_t key, uint32_t correlation_id, uint64_t owner) noexcept {
  progress_.fetch_add(1, std::memory_order_relaxed);
  t_logged = false;
  if (t_holds != nullptr || !mutex_.LockFor(kPatienceNs)) {
    Spoil();
    return;
  }
  const Mode mode = mode_.load(std::memory_order_relaxed);
  if (mode == Mode::kOff) {  // closed while we waited
    mutex_.Unlock();
    return;
  }
  if (mode == Mode::kRanges && (ranges_ == 0 || owner != last_owner_)) {
    if (!next_range_(next_range_user_, ranges_)) Spoil();
    last_owner_ = owner;
    ++ranges_;
  }
  try {
    entries_.push_back({key, correlation_id, static_cast<uint32_t>(ranges_ - 1), owner});
    t_logged = true;
  } catch (...) {
    Spoil();
  }
  if (mode != Mode::kTiming) {
    t_holds = this;
  } else {
    mutex_.Unlock();
  }
}

void LaunchLog::Exit(bool failed) noexcept {
  LaunchLog* log = t_holds;
  if (log == nullptr) {
    // Timing: an entry without a record does no harm.
    t_logged = false;
    return;
  }
  if (failed && t_logged && !log->entries_.empty()) log->entries_.pop_back();
  t_holds = nullptr;
  t_logged = false;
  log->mutex_.Unlock();
}

}  // namespace rfinject::cupti
