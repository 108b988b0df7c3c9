// File: memory_exports.cc
//
// The functions by which PyTorch's allocators report to profilers (c10/core/Allocator.h), under their own names: the
// library is preloaded, so torch's libraries find these first. Each ends by calling torch's own, or that of the
// virtual GPU where there is one. A process that came to know us by CUDA_INJECTION64_PATH alone does not come through
// here.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "collector/memory_events.h"
#include "injector/torch/symbols.h"

namespace rfinject {
namespace {

constexpr uint16_t kCuda = 1;  // c10::DeviceType; a c10::Device is its type and its index, a byte each

// What stands behind us under that name. It is looked up at the first call, when it is in the process; two threads
// may both do so.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  Function* Get() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found != nullptr) return found;
    for (const char* const library : {"librfinject_cuda", "libc10.so"}) {
      void* const handle = OpenLoaded(library, nullptr);
      if (handle == nullptr) continue;
      found = reinterpret_cast<Function*>(dlsym(handle, name_));
      if (found != nullptr) break;
    }
    found_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

using Usage = void(void*, int64_t, uint64_t, uint64_t, uint16_t);
using Full = void(int64_t, uint64_t, uint64_t, uint16_t);
constinit Next<Usage> g_usage("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
constinit Next<Usage> g_signed_usage("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE");
constinit Next<Full> g_full("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
constinit Next<Full> g_signed_full("_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE");

void Tell(uint16_t device, MemoryEvent event) noexcept {
  if ((device & 0xff) != kCuda) return;
  const MemoryListener listener = g_memory_listener.load(std::memory_order_acquire);
  if (listener == nullptr) return;
  event.device = device >> 8;
  listener(event);
}

void TellUsage(Next<Usage>* next, void* pointer, int64_t bytes, uint64_t allocated, uint64_t reserved,
               uint16_t device) {
  Tell(device, {.address = reinterpret_cast<uintptr_t>(pointer),
                .bytes = bytes,
                .allocated = allocated,
                .reserved = reserved});
  if (Usage* const own = next->Get(); own != nullptr) own(pointer, bytes, allocated, reserved, device);
}

void TellFull(Next<Full>* next, int64_t bytes, uint64_t allocated, uint64_t reserved, uint16_t device) {
  Tell(device, {.bytes = bytes, .allocated = allocated, .reserved = reserved, .refused = true});
  if (Full* const own = next->Get(); own != nullptr) own(bytes, allocated, reserved, device);
}

}  // namespace

extern "C" {

#define RFINJECT_EXPORTED [[gnu::visibility("default"), gnu::used]]

// c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device); before torch 2.1 its sizes are
// signed.
RFINJECT_EXPORTED void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* pointer, int64_t bytes,
                                                                             uint64_t allocated, uint64_t reserved,
                                                                             uint16_t device) {
  TellUsage(&g_usage, pointer, bytes, allocated, reserved, device);
}
RFINJECT_EXPORTED void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void* pointer, int64_t bytes,
                                                                             uint64_t allocated, uint64_t reserved,
                                                                             uint16_t device) {
  TellUsage(&g_signed_usage, pointer, bytes, allocated, reserved, device);
}

// c10::reportOutOfMemoryToProfiler(int64_t, size_t, size_t, c10::Device), when all attempts have failed.
RFINJECT_EXPORTED void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                                           uint64_t reserved, uint16_t device) {
  TellFull(&g_full, bytes, allocated, reserved, device);
}
RFINJECT_EXPORTED void _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(int64_t bytes, uint64_t allocated,
                                                                           uint64_t reserved, uint16_t device) {
  TellFull(&g_signed_full, bytes, allocated, reserved, device);
}

}  // extern "C"

}  // namespace rfinject
