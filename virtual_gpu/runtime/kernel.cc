// Kernels of the program: what the compiler's start-up code registers, and launches.
//
// nvcc puts a host function in the place of each kernel, and calls that register it with the fat binary that holds it
// (crt/host_runtime.h). The binary is loaded when the first of its kernels is launched, as CUDA's lazy loading does.
#include <map>

#include "virtual_gpu/runtime/runtime.h"
#include "virtual_gpu/shared_lock.h"

using namespace rfinject::virtual_gpu;

#define RFINJECT_CRT extern "C" __attribute__((visibility("default")))

namespace {

struct Binary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
};

struct Registered {
  Binary* binary = nullptr;
  const char* name = nullptr;
  CUfunction function = nullptr;  // null before the first launch
};

struct Variable {
  Binary* binary = nullptr;
  const char* name = nullptr;
};

// Guarded by SharedLock.
struct Registry {
  std::map<const void*, Registered> kernels;
  std::map<const void*, Variable> variables;
};

Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

cudaError_t LoadBinary(Binary* binary) {
  if (binary->library != nullptr) return cudaSuccess;
  const CUresult result =
      cuLibraryLoadData(&binary->library, binary->image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
// The configuration that <<<…>>> pushes before it calls the kernel's host function, which pops it. They nest only
// where the evaluation of an argument launches. This is plain memory, because exit handlers may launch when the
// thread's own objects are gone.
struct Configurations {
  static constexpr int kMost = 16;
  Configuration items[kMost];
  int depth;
};
thread_local constinit Configurations t_configurations = {};

cudaError_t LaunchResult(CUresult result) {
  return Return(result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration
                                                   : static_cast<cudaError_t>(result));
}

cudaError_t Launch(CUfunction function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
  return LaunchResult(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared), stream, arguments, nullptr));
}

// The address of a variable of the program on the device.
cudaError_t FindVariable(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  if (!UseDevice()) return Return(cudaErrorNoDevice);
  Registry& registry = TheRegistry();
  const SharedLock lock;
  const auto at = registry.variables.find(symbol);
  if (at == registry.variables.end()) return Return(cudaErrorInvalidSymbol);
  if (const cudaError_t error = LoadBinary(at->second.binary); error != cudaSuccess) return Return(error);
  return Return(cuLibraryGetGlobal(address, bytes, at->second.binary->library, at->second.name));
}

int FunctionAttribute(CUfunction function, CUfunction_attribute attribute) {
  int value = 0;
  cuFuncGetAttribute(&value, attribute, function);
  return value;
}

}  // namespace

namespace rfinject::virtual_gpu {

cudaError_t FindKernel(const void* host_function, CUfunction* function) {
  if (!UseDevice()) return Return(cudaErrorNoDevice);
  Registry& registry = TheRegistry();
  const SharedLock lock;
  const auto at = registry.kernels.find(host_function);
  if (at == registry.kernels.end()) return Return(cudaErrorInvalidDeviceFunction);
  Registered& kernel = at->second;
  if (kernel.function == nullptr) {
    if (const cudaError_t error = LoadBinary(kernel.binary); error != cudaSuccess) return Return(error);
    CUkernel found = nullptr;
    if (cuLibraryGetKernel(&found, kernel.binary->library, kernel.name) != CUDA_SUCCESS) {
      return Return(cudaErrorInvalidDeviceFunction);
    }
    cuKernelGetFunction(&kernel.function, found);
  }
  *function = kernel.function;
  return cudaSuccess;
}

}  // namespace rfinject::virtual_gpu

RFINJECT_CRT void** __cudaRegisterFatBinary(void* image) {
  return reinterpret_cast<void**>(new Binary{image, nullptr});
}
RFINJECT_CRT void __cudaRegisterFatBinaryEnd(void**) {}
RFINJECT_CRT void __cudaUnregisterFatBinary(void**) {}
RFINJECT_CRT char __cudaInitModule(void**) { return 1; }
RFINJECT_CRT void __cudaRegisterFunction(void** binary, const char* host_function, char*, const char* name, int,
                                         uint3*, uint3*, dim3*, dim3*, int*) {
  Registry& registry = TheRegistry();
  const SharedLock lock;
  registry.kernels[host_function] = {reinterpret_cast<Binary*>(binary), name, nullptr};
}
RFINJECT_CRT void __cudaRegisterVar(void** binary, char* host_variable, char*, const char* name, int, size_t, int,
                                    int) {
  Registry& registry = TheRegistry();
  const SharedLock lock;
  registry.variables[host_variable] = {reinterpret_cast<Binary*>(binary), name};
}
RFINJECT_CRT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  if (t_configurations.depth == Configurations::kMost) return 1;
  t_configurations.items[t_configurations.depth++] = {grid, block, shared, stream};
  return 0;
}
RFINJECT_CUDART __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (t_configurations.depth == 0) return Return(cudaErrorMissingConfiguration);
  const Configuration top = t_configurations.items[--t_configurations.depth];
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  return cudaSuccess;
}
#if CUDART_VERSION >= 12000
// The compiler of CUDA 13 calls this before a launch.
RFINJECT_CUDART __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  CUfunction function = nullptr;
  const cudaError_t error = FindKernel(host_function, &function);
  *kernel = reinterpret_cast<cudaKernel_t>(function);
  return error;
}
RFINJECT_CUDART __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                   cudaStream_t stream) {
  if (!UseDevice()) return Return(cudaErrorNoDevice);
  return Launch(reinterpret_cast<CUfunction>(kernel), grid, block, arguments, shared, stream);
}
#endif

RFINJECT_CUDART cudaLaunchKernel(const void* host_function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                 cudaStream_t stream) {
  CUfunction function = nullptr;
  if (const cudaError_t error = FindKernel(host_function, &function); error != cudaSuccess) return error;
  return Launch(function, grid, block, arguments, shared, stream);
}
RFINJECT_CUDART cudaLaunchCooperativeKernel(const void* host_function, dim3 grid, dim3 block, void** arguments,
                                            size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(host_function, grid, block, arguments, shared, stream);
}
#if CUDART_VERSION >= 11080
RFINJECT_CUDART cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host_function, void** arguments) {
  CUfunction function = nullptr;
  if (const cudaError_t error = FindKernel(host_function, &function); error != cudaSuccess) return error;
  return Launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}
#endif

RFINJECT_CUDART cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host_function) {
  CUfunction function = nullptr;
  if (const cudaError_t error = FindKernel(host_function, &function); error != cudaSuccess) return error;
  *attributes = cudaFuncAttributes{};
  const auto get = [&](CUfunction_attribute attribute) { return FunctionAttribute(function, attribute); };
  attributes->sharedSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  attributes->constSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  attributes->localSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  return cudaSuccess;
}
RFINJECT_CUDART cudaFuncSetAttribute(const void* host_function, cudaFuncAttribute attribute, int value) {
  CUfunction function = nullptr;
  if (const cudaError_t error = FindKernel(host_function, &function); error != cudaSuccess) return error;
  return Return(cuFuncSetAttribute(function, static_cast<CUfunction_attribute>(attribute), value));
}
RFINJECT_CUDART cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
RFINJECT_CUDART cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host_function,
                                                                       int threads, size_t shared, unsigned) {
  CUfunction function = nullptr;
  if (const cudaError_t error = FindKernel(host_function, &function); error != cudaSuccess) return error;
  return Return(cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared));
}
RFINJECT_CUDART cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host_function, int threads,
                                                              size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host_function, threads, shared, 0);
}

RFINJECT_CUDART cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return FindVariable(symbol, reinterpret_cast<CUdeviceptr*>(pointer), nullptr);
}
RFINJECT_CUDART cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  CUdeviceptr address = 0;
  return FindVariable(symbol, &address, bytes);
}
RFINJECT_CUDART cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                   cudaMemcpyKind) {
  CUdeviceptr address = 0;
  if (const cudaError_t error = FindVariable(symbol, &address, nullptr); error != cudaSuccess) return error;
  return Return(cuMemcpy(address + offset, Address(from), bytes));
}
