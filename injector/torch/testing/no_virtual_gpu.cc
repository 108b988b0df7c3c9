// For programs with torch's binding and without the collector: there is no virtual GPU.
#include "collector/virtual_gpu.h"

namespace rfinject {

bool HasVirtualGpu() noexcept { return false; }
std::string VirtualGpuFolder() { return {}; }
bool VirtualGpuKnows(uintptr_t, size_t) noexcept { return false; }
const uint64_t* VirtualGpuLaunchesOfThread() noexcept {
  static constinit uint64_t none = 0;
  return &none;
}
void SayOfVirtualGpu(const char*) noexcept {}

}  // namespace rfinject
