// Three places where PyTorch has to know that the GPU is virtual. The functions here have the names of PyTorch's own
// and are found before them; each ends in PyTorch's. A torch that has others calls its own, as if this file were not
// here.
//
// The autograd engine (torch/csrc/autograd/engine.h) starts a thread for every GPU that it sees
// (c10/cuda/CUDAFunctions.h), at the first backward pass, also when that pass is the CPU's; and once it has, backward
// passes in children of fork are refused. A program that never uses its virtual GPU must not lose that: without us
// there is no GPU. So the engine is told that there is none until the program uses it, and starts its threads before
// the first backward pass that comes after that.
//
// The caching allocator gives out memory again that the program had copied to. Every allocation is reported to
// profilers (c10/core/Allocator.h); from then on it holds zeros, as results of kernels that nobody runs do.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "virtual_gpu/shared_lock.h"
#include "virtual_gpu/virtual_gpu.h"

#define RFINJECT_TORCH extern "C" __attribute__((visibility("default")))

namespace {

// Torch's own function, or null. Both libraries are in the process when anything of theirs calls us.
template <typename Function>
Function* Own(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle != nullptr ? reinterpret_cast<Function*>(dlsym(handle, name)) : nullptr;
}

using EngineFunction = void(void* engine);

EngineFunction* OwnStart() {
  static auto* const own =
      Own<EngineFunction>("libtorch_cpu.so", "_ZN5torch8autograd6Engine20start_device_threadsEv");
  return own;
}

thread_local constinit bool t_engine_asks = false;
// The engine that was told of no GPU; a child of fork makes another one in the same place, and starts it again.
constinit std::atomic<void*> g_without_gpu{nullptr};

}  // namespace

// torch::autograd::Engine::start_device_threads(), once in the life of an engine.
RFINJECT_TORCH void _ZN5torch8autograd6Engine20start_device_threadsEv(void* engine) {
  EngineFunction* own = OwnStart();
  if (own == nullptr) return;
  const bool in_use = rfinject_virtual_gpu_in_use() != 0;
  g_without_gpu.store(in_use ? nullptr : engine, std::memory_order_release);
  t_engine_asks = !in_use;
  own(engine);
  t_engine_asks = false;
}

// torch::autograd::Engine::initialize_device_threads_pool(), before every backward pass.
RFINJECT_TORCH void _ZN5torch8autograd6Engine30initialize_device_threads_poolEv(void* engine) {
  static auto* const own =
      Own<EngineFunction>("libtorch_cpu.so", "_ZN5torch8autograd6Engine30initialize_device_threads_poolEv");
  if (own == nullptr) return;
  own(engine);
  if (g_without_gpu.load(std::memory_order_acquire) != engine || rfinject_virtual_gpu_in_use() == 0) return;
  // A second backward pass on another thread must not go on before the threads are there.
  const rfinject::virtual_gpu::SharedLock lock;
  if (g_without_gpu.load(std::memory_order_relaxed) != engine) return;
  OwnStart()(engine);
  g_without_gpu.store(nullptr, std::memory_order_release);
}

// c10::cuda::device_count()
RFINJECT_TORCH int8_t _ZN3c104cuda12device_countEv() {
  if (t_engine_asks) return 0;
  static auto* const own = Own<int8_t()>("libc10_cuda.so", "_ZN3c104cuda12device_countEv");
  return own != nullptr ? own() : 0;
}

// c10::reportMemoryUsageToProfiler(pointer, bytes, total_allocated, total_reserved, device): `bytes` is negative when
// memory is given back. The device is a struct of its type and its index, a byte each.
RFINJECT_TORCH void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* pointer, int64_t bytes,
                                                                          size_t allocated, size_t reserved,
                                                                          uint16_t device) {
  constexpr uint16_t kCuda = 1;
  if (bytes > 0 && (device & 0xff) == kCuda) {
    rfinject_virtual_gpu_clear(reinterpret_cast<uint64_t>(pointer), static_cast<size_t>(bytes));
  }
  static auto* const own = Own<void(void*, int64_t, size_t, size_t, uint16_t)>(
      "libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  if (own != nullptr) own(pointer, bytes, allocated, reserved, device);
}
