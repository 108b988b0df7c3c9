#include "virtual_gpu/libraries/launch.h"

#include <algorithm>

#include "virtual_gpu/virtual_gpu.h"

namespace rfinject::virtual_gpu {

namespace {

// NVIDIA's libraries use the runtime, which makes the context of the thread's device current where none is; that is
// device 0 where the thread has chosen none.
void UseSomeContext() {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != nullptr) return;
  if (cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS) cuCtxSetCurrent(context);
}

}  // namespace

void LaunchStandin(const std::string& name, const Shape& shape, CUstream stream) {
  auto* function = static_cast<CUfunction>(rfinject_virtual_gpu_named_kernel(name.c_str()));
  const auto clamp = [](int64_t value, int64_t most) {
    return static_cast<unsigned>(std::clamp<int64_t>(value, 1, most));
  };
  UseSomeContext();
  rfinject_virtual_gpu_describe(shape.flop, shape.bytes);
  cuLaunchKernel(function, clamp(shape.blocks, 0x7fffffff), clamp(shape.y, 65535), clamp(shape.z, 65535),
                 shape.threads, 1, 1, 0, stream, nullptr, nullptr);
}

const char* ChipWord() {
  static const char* const word = [] {
    int major = 0, minor = 0;
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    if (major >= 10) return "sm100";
    if (major == 9) return "sm90";
    if (major == 8) return minor == 9 ? "ada" : "ampere";
    if (major == 7) return minor == 5 ? "turing" : "volta";
    return "pascal";
  }();
  return word;
}

}  // namespace rfinject::virtual_gpu
