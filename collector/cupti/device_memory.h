// File: device_memory.h
//
// DeviceMemory reads how much of the device's memory is in use at the end of each step, and the most that was in use
// during it.
//
// In use is what the driver says between two steps (cuMemGetInfo: total less free). It is for the whole device, with
// other processes and the profiler's own buffers, and holds all that torch's caching allocator has reserved, used or
// not: it is what must fit, not what the tensors need.
//
// The peak is found as follows. This process's allocations and frees in between are seen by CUPTI's callbacks (a
// caching allocator makes few), so the highest point of their sum during the step is known, and is added to what the
// driver says at its end. Memory pools (cuMemAllocAsync) are the exception: the driver grows and shrinks them itself,
// so a peak within a step is not seen, only what is in use at its end.
//
// The driver is asked only when something was allocated or freed since it was asked last, or a second has passed, and
// never for more than a thousandth of the time.
#ifndef RFINJECT_COLLECTOR_CUPTI_DEVICE_MEMORY_H_
#define RFINJECT_COLLECTOR_CUPTI_DEVICE_MEMORY_H_

#include <cstdint>
#include <unordered_map>

#include "collector/cupti/api.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class DeviceMemory {
 public:
  // `api` and `context` must outlive the object.
  DeviceMemory(const Api& api, CUcontext context) noexcept : api_(api), context_(context) {}

  // Called by CUPTI's callback for the functions of kMemoryCbids (launch_call.h), on the thread that allocates. It
  // waits for nothing longer than kAllocationLockWaitNs (lock_waits.h) and calls nothing of CUDA.
  void OnCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept;

  struct Reading {
    uint64_t in_use = 0;  // bytes of the device, by all processes
    uint64_t peak = 0;    // at least in_use
  };
  // Called between two steps, on the thread that ends them. Returns false when nothing is known: the thread's context
  // is another one, or the driver does not say.
  bool OnStepEnd(int64_t now_ns, Reading* reading) noexcept;

  void ResetLockInForkedChild() noexcept { lock_.ResetInForkedChild(); }

 private:
  void Allocated(uint64_t address, uint64_t bytes) noexcept;
  void Freed(uint64_t address) noexcept;

  const Api& api_;
  CUcontext context_;

  Mutex lock_;
  std::unordered_map<uint64_t, uint64_t> sizes_ RFINJECT_GUARDED_BY(lock_);  // bytes by address or handle
  int64_t live_ RFINJECT_GUARDED_BY(lock_) = 0;  // bytes allocated less bytes freed, since the beginning
  int64_t most_ RFINJECT_GUARDED_BY(lock_) = 0;  // highest live_ since the last step's end
  uint64_t calls_ RFINJECT_GUARDED_BY(lock_) = 0;

  // Used only by the thread that ends the steps.
  uint64_t calls_read_ = 0;   // calls_ at the last reading
  int64_t live_read_ = 0;     // live_ at the last reading
  int64_t read_ns_ = 0;       // when the driver was asked last; 0: never
  int64_t cost_ns_ = 0;       // what that took
  uint64_t in_use_read_ = 0;  // and what it said
  uint64_t last_in_use_ = 0;  // of the last step's end
  bool unable_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_DEVICE_MEMORY_H_
