// File: virtual_gpu.h
//
// Whether the program gets a virtual GPU to run on (docs/use/VIRTUAL_GPU.md), and putting it into the process. This
// happens only under --estimate: the estimator costs what the program's operators do there.
#ifndef RFINJECT_COLLECTOR_VIRTUAL_GPU_H_
#define RFINJECT_COLLECTOR_VIRTUAL_GPU_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "collector/settings.h"

struct rfinject_virtual_observer;  // virtual_gpu/virtual_gpu.h

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
// Tells the same of captured work; `what`, which is not 0, names it to the observer's `replay`.
void TellVirtualGpuCaptured(uint64_t nanoseconds, uint64_t what) noexcept;

// A kernel that was not computed would have changed these bytes of its memory.
void TellVirtualGpuChanged(uintptr_t address, size_t bytes) noexcept;

// Writes a line on standard error, once for each text, unless the user wants none.
void SayOfVirtualGpu(const char* text) noexcept;

// Has `observer`, which must live as long as the process, told of what the program does on a virtual GPU. Does
// nothing where there is none.
void ObserveVirtualGpu(const rfinject_virtual_observer* observer) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_VIRTUAL_GPU_H_
