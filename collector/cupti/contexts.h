// File: contexts.h
//
// Contexts is the list of the CUDA contexts that have launched something, each with its device and its gate
// (counted_context.h). The list only grows, and its entries stay where they are, so that launch callbacks read it
// without a lock.
//
// Find and ForEach are for every thread. AddFirst is for the thread that ends the steps, before anything is
// subscribed.
#ifndef RFINJECT_COLLECTOR_CUPTI_CONTEXTS_H_
#define RFINJECT_COLLECTOR_CUPTI_CONTEXTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collector/cupti/api.h"
#include "collector/cupti/counted_context.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class Contexts {
 public:
  // The most contexts that are told apart; what is launched in a further one has no counters.
  static constexpr size_t kMaxContexts = 16;

  // The arguments must outlive the object. `api` may be filled later, but before AddFirst.
  explicit Contexts(const Api& api) noexcept : api_(api) {}

  // Adds the context that the measured steps are ended in. Returns false when memory ran out.
  bool AddFirst(CUcontext context, uint32_t device) noexcept;

  // Returns what is known of `context`, which its first launch makes known; nullptr when there is no room for it.
  // This is on the path of every launch: one comparison in a process with one GPU.
  CountedContext* Find(CUcontext context) noexcept {
    const uint32_t count = size();
    for (uint32_t i = 0; i < count; ++i) {
      CountedContext* known = contexts_[i].load(std::memory_order_acquire);
      if (known->context() == context) return known;
    }
    return Add(context, count);
  }

  // The number of contexts; it only grows.
  uint32_t size() const noexcept { return count_.load(std::memory_order_acquire); }
  // The entry `index`, which must be below size(). The first is AddFirst's.
  CountedContext& at(uint32_t index) const noexcept { return *contexts_[index].load(std::memory_order_acquire); }
  // The first context's; nullptr before AddFirst.
  CountedContext* first() const noexcept { return contexts_[0].load(std::memory_order_acquire); }

  template <typename Function>
  void ForEach(Function function) const {
    const uint32_t count = size();
    for (uint32_t i = 0; i < count; ++i) function(at(i));
  }

  void ResetLockInForkedChild() noexcept { adding_.ResetInForkedChild(); }

 private:
  [[gnu::noinline]] CountedContext* Add(CUcontext context, uint32_t seen) noexcept;

  const Api& api_;
  Mutex adding_;  // held by the one thread that appends
  std::atomic<CountedContext*> contexts_[kMaxContexts] = {};
  std::atomic<uint32_t> count_{0};
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_CONTEXTS_H_
