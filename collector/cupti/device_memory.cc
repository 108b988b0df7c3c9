#include "collector/cupti/device_memory.h"

#include <algorithm>

#include "collector/cupti/lock_waits.h"

namespace rfinject::cupti {
namespace {

// Allocations of one process at a time. A program with more is not one with a caching allocator, and gets readings
// only.
constexpr size_t kMaxAllocations = 1u << 16;
constexpr int64_t kRefreshNs = 1'000'000'000;
constexpr int64_t kShareOfTime = 1000;

}  // namespace

void DeviceMemory::OnCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept {
  if (data.context != context_ || data.functionParams == nullptr) return;
  if (data.callbackSite == CUPTI_API_ENTER) {
    // This must be noted before the memory is free: afterwards another thread may be given the same address first.
    if (cbid == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2) {
      Freed(static_cast<const cuMemFree_v2_params*>(data.functionParams)->dptr);
    } else if (cbid == CUPTI_DRIVER_TRACE_CBID_cuMemRelease) {
      Freed(static_cast<const cuMemRelease_params*>(data.functionParams)->handle);
    }
    return;
  }
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  if (result == nullptr || *result != CUDA_SUCCESS) return;
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2: {
      const auto& call = *static_cast<const cuMemAlloc_v2_params*>(data.functionParams);
      if (call.dptr != nullptr) Allocated(*call.dptr, call.bytesize);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2: {
      const auto& call = *static_cast<const cuMemAllocPitch_v2_params*>(data.functionParams);
      if (call.dptr != nullptr && call.pPitch != nullptr) Allocated(*call.dptr, *call.pPitch * call.Height);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemCreate: {
      const auto& call = *static_cast<const cuMemCreate_params*>(data.functionParams);
      if (call.handle != nullptr && call.prop != nullptr && call.prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        Allocated(*call.handle, call.size);
      }
      break;
    }
    default:
      break;
  }
}

void DeviceMemory::Allocated(uint64_t address, uint64_t bytes) noexcept {
  if (!lock_.LockFor(kAllocationLockWaitNs)) return;
  const HeldLock held(lock_);
  ++calls_;
  try {
    if (sizes_.size() < kMaxAllocations) {
      sizes_[address] = bytes;
      live_ += static_cast<int64_t>(bytes);
      most_ = std::max(most_, live_);
    }
  } catch (...) {
    // There was no memory to note its size, so this allocation shows in the driver's answers only.
  }
}

void DeviceMemory::Freed(uint64_t address) noexcept {
  if (!lock_.LockFor(kAllocationLockWaitNs)) return;
  const HeldLock held(lock_);
  ++calls_;
  // The size of what was allocated before we came is not known; the driver's next answer includes it.
  if (auto at = sizes_.find(address); at != sizes_.end()) {
    live_ -= static_cast<int64_t>(at->second);
    sizes_.erase(at);
  }
}

bool DeviceMemory::OnStepEnd(int64_t now_ns, Reading* reading) noexcept {
  if (unable_ || api_.cuMemGetInfo == nullptr || api_.cuCtxGetCurrent == nullptr) return false;
  int64_t live = 0, most = 0;
  uint64_t calls = 0;
  {
    if (!lock_.LockFor(kAllocationLockWaitNs)) return false;
    const HeldLock held(lock_);
    live = live_;
    most = most_;
    calls = calls_;
    most_ = live_;
  }

  const int64_t since = now_ns - read_ns_;
  const bool due = read_ns_ == 0 || since >= kRefreshNs || calls != calls_read_;
  if (due && (read_ns_ == 0 || since >= kShareOfTime * cost_ns_)) {
    // Another device is current on this thread, whose memory is not what we count.
    CUcontext current = nullptr;
    if (api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) return false;
    size_t free = 0, total = 0;
    const int64_t begin = MonotonicNs();
    if (api_.cuMemGetInfo(&free, &total) != CUDA_SUCCESS || total < free) {
      unable_ = true;
      return false;
    }
    cost_ns_ = MonotonicNs() - begin;
    read_ns_ = now_ns;
    in_use_read_ = total - free;
    live_read_ = live;
    calls_read_ = calls;
  }
  // The driver told the memory of all processes at the last reading; since then only this process's calls are known.
  const int64_t in_use = static_cast<int64_t>(in_use_read_) + live - live_read_;
  reading->in_use = static_cast<uint64_t>(std::max<int64_t>(in_use, 0));
  reading->peak = std::max({reading->in_use, last_in_use_, reading->in_use + static_cast<uint64_t>(most - live)});
  last_in_use_ = reading->in_use;
  return true;
}

}  // namespace rfinject::cupti
