#include "collector/cupti/range_gate.h"

#include <time.h>

#include <algorithm>

#include "collector/cupti/counter_backend.h"
#include "collector/cupti/lock_waits.h"
#include "collector/sync.h"

namespace rfinject::cupti {
namespace {

// The gate that the calling thread's launch has come through, and the batch and range that it has opened.
__thread RangeGate* t_gate = nullptr;
__thread RangeBatch* t_batch = nullptr;
__thread uint32_t t_ordinal = 0;

}  // namespace

RangeBatch::RangeBatch(CounterBackend& backend, size_t room, uint32_t keys, std::span<const Wanted> wanted)
    : backend_(backend),
      room_(std::min(room, kRanges)),
      keys_(keys),
      wanted_(new std::atomic<uint32_t>[keys]()),
      left_(static_cast<int32_t>(wanted.size())) {
  for (const Wanted& one : wanted) {
    if (one.key < keys) wanted_[one.key].store(std::max(one.cost_ns, 1u), std::memory_order_relaxed);
  }
}

void RangeBatch::Fail(int result) noexcept {
  int none = 0;
  if (result != 0) result_.compare_exchange_strong(none, result, std::memory_order_relaxed);
}

// Sequentially consistent: of two threads, one that comes in (counts itself, then looks for an open range) and one
// that opens a range (marks it open, then looks for others), one sees the other.
void RangeGate::EnterOpen(uint32_t key, uint32_t graph, bool wanted) noexcept {
  if (t_gate != nullptr) return;  // a launch inside of a launch is part of it
  inside_.fetch_add(1, std::memory_order_seq_cst);
  t_gate = this;
  RangeBatch* batch = batch_.load(std::memory_order_seq_cst);
  if (range_open_.load(std::memory_order_seq_cst)) {
    spoiled_.store(true, std::memory_order_seq_cst);
    return;
  }
  if (batch == nullptr || !wanted || barred() || batch->result() != 0 || batch->used() >= batch->room_) return;
  uint32_t cost = batch->CostOf(key);
  if (cost == 0) return;
  const int64_t allowed = allowed_ns_.load(std::memory_order_relaxed);
  if (allowed <= 0 || (allowed < cost && !first_.load(std::memory_order_relaxed))) {
    batch->denied_.store(true, std::memory_order_relaxed);
  } else if (cost = batch->wanted_[key].exchange(0, std::memory_order_relaxed); cost != 0) {
    OpenRange(batch, {key, cost}, graph);
  }
}

void RangeGate::OpenRange(RangeBatch* batch, RangeBatch::Wanted wanted, uint32_t graph) noexcept {
  bool closed = false;
  if (!range_open_.compare_exchange_strong(closed, true, std::memory_order_seq_cst)) {
    spoiled_.store(true, std::memory_order_seq_cst);
    batch->wanted_[wanted.key].store(wanted.cost_ns, std::memory_order_relaxed);
    return;
  }
  spoiled_.store(false, std::memory_order_seq_cst);
  if (inside_.load(std::memory_order_seq_cst) != 1) {
    range_open_.store(false, std::memory_order_seq_cst);
    batch->wanted_[wanted.key].store(wanted.cost_ns, std::memory_order_relaxed);
    return;
  }
  const uint32_t ordinal = batch->used_.load(std::memory_order_relaxed);
  const int result = batch->backend_.Push(ordinal);
  batch->Fail(result);
  if (result != 0) {
    range_open_.store(false, std::memory_order_seq_cst);
    return;
  }
  batch->ranges_[ordinal].key = wanted.key;
  batch->ranges_[ordinal].graph = graph;
  batch->used_.store(ordinal + 1, std::memory_order_release);
  batch->left_.fetch_sub(1, std::memory_order_relaxed);
  allowed_ns_.fetch_sub(wanted.cost_ns, std::memory_order_relaxed);
  spent_ns_.fetch_add(wanted.cost_ns, std::memory_order_relaxed);
  first_.store(false, std::memory_order_relaxed);
  t_batch = batch;
  t_ordinal = ordinal;
}

void RangeGate::Exit(bool failed) noexcept {
  RangeGate* gate = t_gate;
  if (gate == nullptr) return;
  t_gate = nullptr;
  if (RangeBatch* batch = t_batch; batch != nullptr) {
    t_batch = nullptr;
    const int result = batch->backend_.Pop();
    batch->Fail(result);
    const bool alone = !gate->spoiled_.load(std::memory_order_seq_cst);
    batch->ranges_[t_ordinal].good.store(result == 0 && alone && !failed, std::memory_order_release);
    gate->range_open_.store(false, std::memory_order_seq_cst);
  }
  gate->inside_.fetch_sub(1, std::memory_order_seq_cst);
}

bool RangeGate::Close() noexcept {
  batch_.store(nullptr, std::memory_order_seq_cst);
  const int64_t deadline = MonotonicNs() + kStepLockWaitNs;
  while (inside_.load(std::memory_order_seq_cst) != 0) {
    if (MonotonicNs() > deadline) return false;
    const timespec pause = {0, 100'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace rfinject::cupti
