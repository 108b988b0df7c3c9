// File: counted_context.h
//
// CountedContext: one CUDA context that launches, with the device that it is on and the gate through which single
// launches of it are counted. A process that trains on several GPUs has several, so that launches on one device are
// never matched with the counters of another.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTED_CONTEXT_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTED_CONTEXT_H_

#include <atomic>
#include <cstdint>

#include "collector/cupti/range_gate.h"

namespace rfinject::cupti {

class CountedContext {
 public:
  CountedContext(const void* context, uint32_t device) noexcept : device_(device), context_(context) {}

  uint32_t device() const noexcept { return device_; }
  // The CUcontext; null once it was destroyed.
  const void* context() const noexcept { return context_.load(std::memory_order_acquire); }
  void ForgetContext() noexcept { context_.store(nullptr, std::memory_order_release); }
  RangeGate& gate() noexcept { return gate_; }

 private:
  const uint32_t device_;
  std::atomic<const void*> context_;
  RangeGate gate_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTED_CONTEXT_H_
