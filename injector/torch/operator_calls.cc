#include "injector/torch/operator_calls.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "collector/sync.h"

namespace rfinject {
namespace {

std::array<OperatorListener, 2> g_listeners;
// How many of them there are. Who adds one releases it, and every thread that runs an operator acquires it.
constinit std::atomic<size_t> g_count{0};

// The functions of torch's that add and remove the callback, and its number while torch has it. The lock is tried and
// never waited for.
struct Callback {
  decltype(TorchSymbols::add_global_callback) add = nullptr;
  decltype(TorchSymbols::remove_callback) remove = nullptr;
  Mutex lock;
  uint64_t number RFINJECT_GUARDED_BY(lock) = 0;
  bool added RFINJECT_GUARDED_BY(lock) = false;
};
Callback g_callback;

abi::NoContext OnCallStart(const abi::RecordFunction& record) {
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) g_listeners[i].start(record);
  return {};
}

void OnCallEnd(const abi::RecordFunction& record, void*) {
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) g_listeners[i].end(record);
}

}  // namespace

void ListenToOperators(const TorchSymbols& symbols, const OperatorListener& listener) noexcept {
  const size_t count = g_count.load(std::memory_order_relaxed);
  if (count == g_listeners.size()) return;
  g_listeners[count] = listener;
  g_count.store(count + 1, std::memory_order_release);
  g_callback.add = symbols.add_global_callback;
  g_callback.remove = symbols.remove_callback;
  HearOperators(true);
}

// Torch changes its list of callbacks under a lock of its own, and each thread takes the new one at its next
// operator.
void HearOperators(bool hear) noexcept {
  if (g_callback.add == nullptr || !g_callback.lock.TryLock()) return;
  const HeldLock held(g_callback.lock);
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

}  // namespace rfinject
