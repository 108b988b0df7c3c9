// For programs with torch's binding and without the collector: there is no virtual GPU.
#include "collector/virtual_gpu.h"

namespace rfinject {

bool HasVirtualGpu() noexcept { return false; }
std::string VirtualGpuFolder() { return {}; }
void SayOfVirtualGpu(const char*) noexcept {}

}  // namespace rfinject
