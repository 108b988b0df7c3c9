#include "collector/record/rings.h"

#include "collector/record/pending.h"
#include "collector/record/state.h"

namespace rfinject {
namespace {

// About a thousand launches, so that a thread that defines a layer meanwhile waits for some 100 us at most.
constexpr uint64_t kDrainUnits = 8192;

// Gives the ring back when the thread ends. What the thread records after that, in destructors of other libraries,
// takes the slow way.
struct RingLease {
  void Touch() noexcept {}
  ~RingLease() {
    if (t_ring.ring != nullptr) t_ring.ring->Release();
    t_ring = {nullptr, nullptr, true};
  }
};

}  // namespace

constinit thread_local ThreadRing t_ring{};

LaunchRing* Rings::Acquire() noexcept {
  if (t_ring.exited) return nullptr;
  static thread_local RingLease lease;
  lease.Touch();
  if (t_ring.ring != nullptr) t_ring.ring->Release();
  t_ring = {};
  LaunchRing* ring = first_.load(std::memory_order_acquire);
  while (ring != nullptr && !ring->TryAcquire()) ring = ring->next;
  if (ring == nullptr) {
    ring = LaunchRing::Create();
    if (ring == nullptr) return nullptr;
    ring->next = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(ring->next, ring, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  t_ring = {this, ring, false};
  return ring;
}

bool Rings::Drain(RecorderState* state, Wanted wanted, bool last) noexcept {
  {
    StateGuard guard(state, kWriterWaitNs);
    if (!guard) return false;
    try {
      state->trace->pending.TakeWhatEnded(&state->progress, last);
    } catch (...) {
    }
  }
  for (LaunchRing* ring = first_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    // A producer that is faster than the writer must not keep it here.
    for (uint64_t units = 0; units < 2 * LaunchRing::kUnits; units += kDrainUnits) {
      StateGuard guard(state, kWriterWaitNs);
      if (!guard) return false;
      if (!DrainSome(state, ring, wanted, last)) break;
    }
  }
  StateGuard guard(state, kWriterWaitNs);
  if (!guard) return false;
  state->trace->pending.NoteDrained();
  return true;
}

// Returns whether more may be had now. Called with the state's lock held.
bool Rings::DrainSome(RecorderState* state, LaunchRing* ring, Wanted wanted, bool last) noexcept {
  state->lock.AssertHeld();
  Pending* const pending = &state->trace->pending;
  const uint64_t current = state->progress.step();
  const auto on_launch = [pending, wanted, current](const LaunchRecord& record, const RingPosition& position) {
    const Site& site = record.identity.site;
    if (wanted == Wanted::kOfAModelOrPhase && site.layer == 0 && site.phase == Phase::kOther) return;
    try {
      pending->AddAt(position, record, current);
    } catch (...) {
    }
  };
  const auto on_step = [pending](const StepRecord& step) {
    try {
      pending->AddStep(step);
    } catch (...) {
    }
  };
  const auto may_enter = [pending, last](const RingPosition& position, bool half_full) {
    return (last && !pending->HoldsBack()) || pending->MayLeaveRing(position, half_full);
  };
  const bool more = ring->Drain(kDrainUnits, on_launch, on_step, may_enter);
  const uint64_t drops = ring->drops();
  // Before the first step the ring is full of what is forgotten here, so what it dropped is no loss to any step.
  if (wanted == Wanted::kOfAModelOrPhase) ring->drops_reported = drops;
  if (drops != ring->drops_reported) {
    try {
      pending->AddDrop("launches: ring full", drops - ring->drops_reported);
      ring->drops_reported = drops;
    } catch (...) {
    }
  }
  return more;
}

void Rings::Discard() noexcept {
  for (LaunchRing* ring = first_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    const auto forget = [](const auto&...) {};
    while (ring->Drain(kDrainUnits, forget, forget, [](const auto&...) { return true; })) {
    }
    ring->drops_reported = ring->drops();
  }
  (void)TakeRinglessDrops();
}

void Rings::ResetInForkedChild() noexcept {
  t_ring = {nullptr, nullptr, t_ring.exited};
  first_.store(nullptr, std::memory_order_relaxed);
  ringless_drops_.store(0, std::memory_order_relaxed);
}

}  // namespace rfinject
