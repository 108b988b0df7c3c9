// File: virtual_gpu.h
//
// Whether the program gets a virtual GPU to run on (docs/use/VIRTUAL_GPU.md), and putting it into the process. This
// happens only under --estimate: the estimator costs what the program's operators do there.
#ifndef RFINJECT_COLLECTOR_VIRTUAL_GPU_H_
#define RFINJECT_COLLECTOR_VIRTUAL_GPU_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collector/settings.h"

namespace rfinject {

// Before torch is imported from the folder above `torch_libraries` (…/torch/lib): loads a virtual GPU of the kind
// that settings.estimate names, when the settings want one, that torch is a CUDA build, and no driver of NVIDIA's is
// there. What goes wrong is said in one line on standard error; the program then runs on the CPU.
void OfferVirtualGpu(const Settings& settings, const std::string& torch_libraries) noexcept;

// Whether this process has one.
bool HasVirtualGpu() noexcept;

// Whether this process has launched a kernel on one: a program that has a virtual GPU may run on the CPU all the
// same.
bool UsesVirtualGpu() noexcept;

// The folder with its driver, libcuda.so. May throw std::bad_alloc.
std::string VirtualGpuFolder();

// Tells how long the kernels take together that this thread launched since the last call, in nanoseconds; this moves
// the virtual GPU's clock. Does nothing where there is none.
void TellVirtualGpu(uint64_t nanoseconds) noexcept;

// Whether something is being captured into a CUDA graph at this moment.
bool VirtualGpuCaptures() noexcept;
// Whether this thread has captured work into a graph since its last TellVirtualGpu or TellVirtualGpuCaptured: the
// work of an operator inside a capture runs when the graph is launched.
bool VirtualGpuCaptured() noexcept;
// Tells the same of captured work; `what`, which is not 0, names it to the observer of replays.
void TellVirtualGpuCaptured(uint64_t nanoseconds, uint64_t what) noexcept;

// Calls `observer` on the launching thread when a graph is launched, with the `what` of each piece of work in it, and
// with 0 at its end.
using ReplayObserver = void (*)(uint64_t what) noexcept;
void ObserveVirtualReplays(ReplayObserver observer) noexcept;

// A launch of a kernel that was compiled in the process and is no operator of torch's, Triton's for one.
struct LoadedLaunch {
  std::string_view kernel;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t shared_bytes = 0, device = 0;
  std::span<const uint64_t> words;  // what its parameters of eight bytes hold: addresses among them
};
using LoadedLaunchObserver = void (*)(const LoadedLaunch& launch) noexcept;
void ObserveVirtualLoadedLaunches(LoadedLaunchObserver observer) noexcept;

// Calls `observer` for each kernel that is launched, but not for those of a capture, on the launching thread. The
// name is as the ELF file spells it and lives as long as the process.
using KernelNameObserver = void (*)(const char* name) noexcept;
void ObserveVirtualKernelNames(KernelNameObserver observer) noexcept;

// A collective of NCCL's; rfinject_virtual_collective has what the numbers are.
struct Collective {
  std::string_view kind;
  uint64_t ranks = 0;
  uint64_t bytes = 0, send_bytes = 0, receive_bytes = 0;
};
using CollectiveObserver = void (*)(const Collective& collective) noexcept;
void ObserveVirtualCollectives(CollectiveObserver observer) noexcept;

// Calls `observer` for each piece of memory that PyTorch's allocator gives out on a virtual GPU or takes back
// (negative bytes), or cannot give out (`refused`), on the allocating thread. `reserved` is what the allocator holds
// of the device then. Does nothing where there is no virtual GPU.
struct MemoryEvent {
  uint32_t device = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  uint64_t reserved = 0;
  bool refused = false;
};
using MemoryObserver = void (*)(const MemoryEvent& event) noexcept;
void ObserveVirtualMemory(MemoryObserver observer) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_VIRTUAL_GPU_H_
