// For programs with torch's binding and without the collector: there is no virtual GPU.
#include "collector/virtual_gpu.h"

namespace rfinject {

bool HasVirtualGpu() noexcept { return false; }
bool VirtualGpuCaptures() noexcept { return false; }
bool VirtualGpuKnows(uintptr_t, size_t) noexcept { return false; }
const uint64_t* VirtualGpuLaunchesOfThread() noexcept {
  static constinit uint64_t none = 0;
  return &none;
}
void TellVirtualGpuComputed(uintptr_t, size_t, bool) noexcept {}
void TellVirtualGpuChanged(uintptr_t, size_t) noexcept {}
void AnswerFromVirtualGpu(const int64_t*) noexcept {}
void SayOfVirtualGpu(const char*) noexcept {}

}  // namespace rfinject
