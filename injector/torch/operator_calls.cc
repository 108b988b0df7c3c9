#include "injector/torch/operator_calls.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace rfinject {
namespace {

std::array<OperatorListener, 2> g_listeners;
// How many of them there are. Who adds one releases it, and every thread that runs an operator acquires it.
constinit std::atomic<size_t> g_count{0};

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
  if (count == 0) {
    symbols.add_global_callback(abi::MakeCallback(abi::RecordScope::kFunction, OnCallStart, OnCallEnd, true));
  }
}

}  // namespace rfinject
