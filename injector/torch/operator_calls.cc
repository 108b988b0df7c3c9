#include "injector/torch/operator_calls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "collector/sync.h"

namespace rfinject {
namespace {

std::array<OperatorListener, 2> g_listeners;
// How many of them there are. Who adds one releases it, and every thread that runs an operator acquires it.
constinit std::atomic<size_t> g_count{0};

// The functions of torch's that add and remove the callback, null while none may be added, and its number while torch
// has it. Threads of the program try the lock and never wait for it.
struct Callback {
  Mutex lock;
  decltype(TorchSymbols::add_global_callback) add RFINJECT_GUARDED_BY(lock) = nullptr;
  decltype(TorchSymbols::remove_callback) remove RFINJECT_GUARDED_BY(lock) = nullptr;
  uint64_t number RFINJECT_GUARDED_BY(lock) = 0;
  bool added RFINJECT_GUARDED_BY(lock) = false;
};
Callback g_callback;

// --- Slices of a step.

OperatorPlace (*g_thread_place)() noexcept = nullptr;
bool (*g_goes_on)() noexcept = nullptr;
// Counts the times that operators were begun to be heard; odd: inside an operator.
constinit std::atomic<uint64_t> g_hearing{0};
constexpr uint64_t kStep = 2, kInside = 1;
// Where a thread goes on behind a backward pass, nothing but this tells the place from the one before.
constinit std::atomic<uint64_t> g_launches_of_nodes{0};

OperatorPlace PlaceNow() noexcept {
  OperatorPlace place = g_thread_place();
  if (place.node == 0) place.backward = g_launches_of_nodes.load(std::memory_order_relaxed);
  return place;
}

struct Thread {
  uint64_t hearing = 0;    // g_hearing, when `heard` was set
  bool heard = false;      // it is known that the thread is in no operator that was not heard
  uint32_t depth = 0;      // operators that are heard, one inside the other
  OperatorPlace place;     // of the last one that ran in no other
  OperatorPlace launched;  // of the last launch
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Thread t_thread{};

// Whether the operator that begins is heard.
bool IsHeard() noexcept {
  if (g_goes_on == nullptr) return true;
  Thread& thread = t_thread;
  const uint64_t hearing = g_hearing.load(std::memory_order_acquire);
  if (thread.hearing != hearing) {
    thread.hearing = hearing;
    thread.heard = hearing % kStep != kInside;
    thread.depth = 0;
    thread.place = thread.heard ? PlaceNow() : thread.launched;
  }
  if (thread.depth == 0) {
    const OperatorPlace place = PlaceNow();
    const bool changed = place != thread.place;
    thread.place = place;
    thread.heard |= changed;
    if (!thread.heard) return false;
    if (changed && !g_goes_on()) {
      thread.heard = false;
      HearOperators(false);
      return false;
    }
  }
  ++thread.depth;
  return true;
}

abi::NoContext OnCallStart(const abi::RecordFunction& record) {
  if (!IsHeard()) return {};
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) g_listeners[i].start(record);
  return {};
}

void OnCallEnd(const abi::RecordFunction& record, void*) {
  if (t_thread.depth != 0) --t_thread.depth;
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) g_listeners[i].end(record);
}

// Torch changes its list of callbacks under a lock of its own, and each thread takes the new one at its next
// operator.
void Change(bool hear) noexcept RFINJECT_REQUIRES(g_callback.lock) {
  if (hear == g_callback.added) return;
  try {
    if (hear) {
      g_callback.number =
          g_callback.add(abi::MakeCallback(abi::RecordScope::kFunction, OnCallStart, OnCallEnd, true));
    } else {
      g_callback.remove(g_callback.number);
    }
    g_callback.added = hear;
  } catch (...) {  // no memory: it stays as it was
  }
}

void Hear(bool hear, uint64_t inside) noexcept {
  if (!g_callback.lock.TryLock()) return;
  const HeldLock held(g_callback.lock);
  if (g_callback.add == nullptr) return;
  if (hear) {
    g_hearing.store((g_hearing.load(std::memory_order_relaxed) / kStep + 1) * kStep + inside,
                    std::memory_order_release);
  }
  Change(hear);
}

}  // namespace

void ListenToOperators(const TorchSymbols& symbols, const OperatorListener& listener) noexcept {
  const size_t count = g_count.load(std::memory_order_relaxed);
  const auto* const end = g_listeners.begin() + count;
  const bool known = std::any_of(static_cast<const OperatorListener*>(g_listeners.begin()), end,
                                 [&](const OperatorListener& one) { return one.start == listener.start; });
  if (!known && count == g_listeners.size()) return;
  if (!known) {
    g_listeners[count] = listener;
    g_count.store(count + 1, std::memory_order_release);
  }
  {
    constexpr int64_t kWaitNs = 1'000'000'000;
    if (!g_callback.lock.LockFor(kWaitNs)) return;
    const HeldLock held(g_callback.lock);
    g_callback.add = symbols.add_global_callback;
    g_callback.remove = symbols.remove_callback;
  }
  HearOperators(true);
}

void HearOperators(bool hear) noexcept { Hear(hear, 0); }

void NoteLaunchOfSlices(bool hear) noexcept {
  OperatorPlace& place = t_thread.launched;
  place = PlaceNow();
  if (place.node != 0) g_launches_of_nodes.fetch_add(1, std::memory_order_relaxed);
  if (hear) Hear(true, kInside);
}

void StopHearingOperators() noexcept {
  constexpr int64_t kWaitNs = 1'000'000'000;  // who holds the lock adds or removes a callback
  if (!g_callback.lock.LockFor(kWaitNs)) return;
  const HeldLock held(g_callback.lock);
  if (g_callback.added) Change(false);
  g_callback.add = nullptr;
}

void SetOperatorSlices(OperatorPlace (*place)() noexcept, bool (*goes_on)() noexcept) noexcept {
  g_thread_place = place;
  g_goes_on = goes_on;
}

}  // namespace rfinject
