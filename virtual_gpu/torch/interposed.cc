// The places where PyTorch has to know that the GPU is virtual. The functions here have the names of PyTorch's own
// and are found before them; each ends by calling PyTorch's. A torch whose functions have other names calls its own,
// as if this file did not exist.
//
// The autograd engine (torch/csrc/autograd/engine.h) starts a thread for every GPU that it sees
// (c10/cuda/CUDAFunctions.h), at the first backward pass, also when that pass is the CPU's; and once it has, backward
// passes in children of fork are refused. A program that never uses its virtual GPU must not lose these: without us
// it would have no GPU. So the engine is told that there is none until the program uses it, and starts its threads
// before the first backward pass that comes after that.
//
// The caching allocator gives out memory again that the program had copied to. Every allocation is reported to
// profilers (c10/core/Allocator.h); from then on it holds zeros, as results of kernels that are not run do. Memory
// that the device does not have is reported in the same way.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "virtual_gpu/shared_lock.h"
#include "virtual_gpu/tell.h"
#include "virtual_gpu/virtual_gpu.h"

#define RFINJECT_TORCH extern "C" __attribute__((visibility("default")))

namespace {

// A function of torch's own, by its library and its name. It is looked up at the first call, when the library is in
// the process; two threads may both do so. There is no lock: a thread that held one and waited for the loader's could
// meet a library's constructor that holds the loader's and waits for ours.
template <typename Function>
class Own {
 public:
  constexpr Own(const char* library, const char* name) : library_(library), name_(name) {}
  // Null where torch has none.
  Function* Get() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found != nullptr) return found;
    void* handle = dlopen(library_, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) found = reinterpret_cast<Function*>(dlsym(handle, name_));
    found_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* library_;
  const char* name_;
  std::atomic<Function*> found_{nullptr};
};

constinit Own<void(void*)> g_start("libtorch_cpu.so", "_ZN5torch8autograd6Engine20start_device_threadsEv");
constinit Own<void(void*)> g_initialize("libtorch_cpu.so",
                                        "_ZN5torch8autograd6Engine30initialize_device_threads_poolEv");
constinit Own<int8_t()> g_count("libc10_cuda.so", "_ZN3c104cuda12device_countEv");
constinit Own<void(void*, int64_t, size_t, size_t, uint16_t)> g_report(
    "libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
constinit Own<void(int64_t, size_t, size_t, uint16_t)> g_report_full(
    "libc10.so", "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
constexpr uint16_t kCuda = 1;  // c10::DeviceType

thread_local constinit bool t_engine_asks = false;
// The engine that was told that there is no GPU. A child of fork makes another one in the same place, and starts it
// again.
constinit std::atomic<void*> g_without_gpu{nullptr};

}  // namespace

// torch::autograd::Engine::start_device_threads(), once in the life of an engine.
RFINJECT_TORCH void _ZN5torch8autograd6Engine20start_device_threadsEv(void* engine) {
  auto* const own = g_start.Get();
  if (own == nullptr) return;
  const bool in_use = rfinject_virtual_gpu_in_use() != 0;
  g_without_gpu.store(in_use ? nullptr : engine, std::memory_order_release);
  t_engine_asks = !in_use;
  own(engine);
  t_engine_asks = false;
}

// torch::autograd::Engine::initialize_device_threads_pool(), before every backward pass.
RFINJECT_TORCH void _ZN5torch8autograd6Engine30initialize_device_threads_poolEv(void* engine) {
  auto* const own = g_initialize.Get();
  if (own == nullptr) return;
  own(engine);
  if (g_without_gpu.load(std::memory_order_acquire) != engine || rfinject_virtual_gpu_in_use() == 0) return;
  // A second backward pass on another thread must not go on before the device threads exist.
  const rfinject::virtual_gpu::SharedLock lock;
  if (g_without_gpu.load(std::memory_order_relaxed) != engine) return;
  g_start.Get()(engine);
  g_without_gpu.store(nullptr, std::memory_order_release);
}

// c10::cuda::device_count()
RFINJECT_TORCH int8_t _ZN3c104cuda12device_countEv() {
  if (t_engine_asks) return 0;
  auto* const own = g_count.Get();
  return own != nullptr ? own() : 0;
}

// c10::reportMemoryUsageToProfiler(pointer, bytes, total_allocated, total_reserved, device): `bytes` is negative when
// memory is given back. The device is a struct of its type and its index, a byte each.
RFINJECT_TORCH void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* pointer, int64_t bytes,
                                                                          size_t allocated, size_t reserved,
                                                                          uint16_t device) {
  if ((device & 0xff) == kCuda) {
    if (bytes > 0) rfinject_virtual_gpu_clear(reinterpret_cast<uint64_t>(pointer), static_cast<size_t>(bytes));
    const rfinject_virtual_memory memory = {
        reinterpret_cast<uint64_t>(pointer), bytes, allocated, reserved, device >> 8, 0};
    rfinject::virtual_gpu::Tell<&rfinject_virtual_observer::memory>(&memory);
  }
  auto* const own = g_report.Get();
  if (own != nullptr) own(pointer, bytes, allocated, reserved, device);
}

// c10::reportOutOfMemoryToProfiler(bytes, total_allocated, total_reserved, device), when all attempts have failed.
RFINJECT_TORCH void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t bytes, size_t allocated,
                                                                        size_t reserved, uint16_t device) {
  if ((device & 0xff) == kCuda) {
    const rfinject_virtual_memory memory = {0, bytes, allocated, reserved, device >> 8, 1};
    rfinject::virtual_gpu::Tell<&rfinject_virtual_observer::memory>(&memory);
  }
  auto* const own = g_report_full.Get();
  if (own != nullptr) own(bytes, allocated, reserved, device);
}
