#include "collector/cupti/contexts.h"

#include <new>

#include "collector/cupti/lock_waits.h"

namespace rfinject::cupti {

bool Contexts::AddFirst(CUcontext context, uint32_t device) noexcept {
  auto* first = new (std::nothrow) CountedContext(context, device);
  if (first == nullptr) return false;
  contexts_[0].store(first, std::memory_order_release);
  count_.store(1, std::memory_order_release);
  return true;
}

// Called in a launch callback. The caller has looked at the first `seen` entries.
CountedContext* Contexts::Add(CUcontext context, uint32_t seen) noexcept {
  if (context == nullptr || seen >= kMaxContexts) return nullptr;
  if (!adding_.LockFor(kLaunchLockWaitNs)) return nullptr;
  const HeldLock held(adding_);
  const uint32_t count = size();
  for (uint32_t i = seen; i < count; ++i) {  // another thread was faster
    if (at(i).context() == context) return &at(i);
  }
  if (count >= kMaxContexts) return nullptr;
  // A callback may ask CUPTI, as is done here, but not the driver.
  uint32_t device = 0;
  if (api_.cuptiGetDeviceId == nullptr || api_.cuptiGetDeviceId(context, &device) != CUPTI_SUCCESS) {
    device = first() != nullptr ? first()->device() : 0;
  }
  auto* added = new (std::nothrow) CountedContext(context, device);
  if (added == nullptr) return nullptr;
  contexts_[count].store(added, std::memory_order_release);
  count_.store(count + 1, std::memory_order_release);
  return added;
}

}  // namespace rfinject::cupti
