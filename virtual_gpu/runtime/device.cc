// Devices, errors and versions of the runtime.
#include <cudaProfiler.h>
#include <string.h>

#include "virtual_gpu/runtime/missing.h"
#include "virtual_gpu/runtime/runtime.h"
#include "virtual_gpu/virtual_gpu.h"

using namespace rfinject::virtual_gpu;

namespace {

thread_local cudaError_t t_last = cudaSuccess;
thread_local int t_device = 0;

CUresult UsePrimary(int device) {
  CUcontext context = nullptr;
  const CUresult result = cuDevicePrimaryCtxRetain(&context, device);
  return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

int Attribute(CUdevice_attribute attribute, int device) {
  int value = 0;
  cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

}  // namespace

namespace rfinject::virtual_gpu {

cudaError_t Return(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) t_last = error;
  return error;
}

// Since CUDA 10.1 the two enumerations have the same numbers for what both can say.
cudaError_t Return(CUresult result) { return Return(static_cast<cudaError_t>(result)); }

int RuntimeMissing(const char* name, int status) {
  return Return(static_cast<cudaError_t>(rfinject_virtual_gpu_missing(name, status)));
}

bool UseDevice() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context != nullptr || UsePrimary(t_device) == CUDA_SUCCESS;
}

}  // namespace rfinject::virtual_gpu

RFINJECT_CUDART cudaGetDeviceCount(int* count) {
  const CUresult result = cuInit(0);
  if (result != CUDA_SUCCESS) {
    *count = 0;
    return Return(result);
  }
  return Return(cuDeviceGetCount(count));
}
RFINJECT_CUDART cudaGetDevice(int* device) {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  *device = t_device;
  return context != nullptr ? Return(cuCtxGetDevice(device)) : cudaSuccess;
}
RFINJECT_CUDART cudaSetDevice(int device) {
  const CUresult result = UsePrimary(device);
  if (result == CUDA_SUCCESS) t_device = device;
  return Return(result);
}
RFINJECT_CUDART cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return Return(cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
}
RFINJECT_CUDART cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return Return(cuDeviceCanAccessPeer(can, device, peer));
}
RFINJECT_CUDART cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUcontext context = nullptr;
  const CUresult result = cuDevicePrimaryCtxRetain(&context, peer);
  return Return(result == CUDA_SUCCESS ? cuCtxEnablePeerAccess(context, flags) : result);
}
RFINJECT_CUDART cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return Return(cuDeviceGetPCIBusId(text, bytes, device));
}
RFINJECT_CUDART cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  RFINJECT_FORWARD(cuCtxGetStreamPriorityRange(least, greatest));
}
RFINJECT_CUDART cudaDeviceSynchronize() { RFINJECT_FORWARD(cuCtxSynchronize()); }
RFINJECT_CUDART cudaDeviceReset() { return cudaSuccess; }
RFINJECT_CUDART cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  RFINJECT_FORWARD(cuCtxSetLimit(static_cast<CUlimit>(limit), value));
}
RFINJECT_CUDART cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  RFINJECT_FORWARD(cuCtxGetLimit(value, static_cast<CUlimit>(limit)));
}

// The header of CUDA 12 renames this function after the second generation of its struct; that of CUDA 13 does not any
// more.
RFINJECT_CUDART cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = cudaDeviceProp{};
  cudaDeviceProp& p = *properties;
  if (const CUresult result = cuDeviceGetName(p.name, sizeof p.name, device); result != CUDA_SUCCESS) {
    return Return(result == CUDA_ERROR_INVALID_DEVICE ? cudaErrorInvalidDevice : static_cast<cudaError_t>(result));
  }
  cuDeviceTotalMem(&p.totalGlobalMem, device);
  CUuuid uuid{};
  cuDeviceGetUuid(&uuid, device);
  memcpy(&p.uuid, &uuid, sizeof uuid);
  const auto get = [&](CUdevice_attribute attribute) { return Attribute(attribute, device); };
  const auto bytes = [&](CUdevice_attribute attribute) { return static_cast<size_t>(Attribute(attribute, device)); };
  p.major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p.minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p.multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p.memPitch = bytes(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  p.totalConstMem = bytes(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  p.regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  p.regsPerMultiprocessor = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  p.sharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  p.sharedMemPerBlockOptin = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.sharedMemPerMultiprocessor = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.reservedSharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  p.maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.maxThreadsPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  p.maxBlocksPerMultiProcessor = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  constexpr CUdevice_attribute kBlock[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                           CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  constexpr CUdevice_attribute kGrid[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                          CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  for (int i = 0; i < 3; ++i) {
    p.maxThreadsDim[i] = get(kBlock[i]);
    p.maxGridSize[i] = get(kGrid[i]);
  }
  p.textureAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  p.texturePitchAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
  p.surfaceAlignment = bytes(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
  p.pciBusID = get(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  p.asyncEngineCount = get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  p.memoryBusWidth = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p.l2CacheSize = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p.persistingL2CacheMaxSize = get(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
  p.accessPolicyMaxWindowSize = get(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  p.canMapHostMemory = p.concurrentKernels = p.ECCEnabled = p.unifiedAddressing = 1;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.managedMemory = p.concurrentManagedAccess = p.computePreemptionSupported = p.cooperativeLaunch = 1;
  p.pageableMemoryAccess = 1;
#if CUDART_VERSION >= 12000
  p.clusterLaunch = get(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  p.hostRegisterSupported = p.memoryPoolsSupported = 1;
#endif
#if CUDART_VERSION < 13000
  p.clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  p.memoryClockRate = get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  p.singleToDoublePrecisionPerfRatio = get(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  p.deviceOverlap = 1;
#endif
  return cudaSuccess;
}

RFINJECT_CUDART cudaDriverGetVersion(int* version) { return Return(cuDriverGetVersion(version)); }
RFINJECT_CUDART cudaRuntimeGetVersion(int* version) { return Set(version, CUDART_VERSION); }
RFINJECT_CUDART cudaGetLastError() {
  const cudaError_t error = t_last;
  t_last = cudaSuccess;
  return error;
}
RFINJECT_CUDART cudaPeekAtLastError() { return t_last; }

extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorName(cudaError_t error) {
  if (error == cudaErrorInvalidDeviceFunction) return "cudaErrorInvalidDeviceFunction";
  if (error == cudaErrorInvalidConfiguration) return "cudaErrorInvalidConfiguration";
  if (error == cudaErrorMemoryAllocation) return "cudaErrorMemoryAllocation";
  if (error == cudaErrorInvalidValue) return "cudaErrorInvalidValue";
  if (error == cudaSuccess) return "cudaSuccess";
  const char* name = nullptr;
  return cuGetErrorName(static_cast<CUresult>(error), &name) == CUDA_SUCCESS ? name : "cudaErrorUnknown";
}
extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorInvalidDeviceFunction) return "invalid device function";
  if (error == cudaErrorInvalidConfiguration) return "invalid configuration argument";
  const char* text = nullptr;
  return cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS ? text : "unknown error";
}

#if CUDART_VERSION >= 13000
RFINJECT_CUDART cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                                 unsigned long long flags, cudaDriverEntryPointQueryResult* result) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  cuGetProcAddress(name, function, static_cast<int>(version), flags, &found);
  if (result != nullptr) *result = static_cast<cudaDriverEntryPointQueryResult>(found);
  return cudaSuccess;
}
#elif CUDART_VERSION >= 12000
RFINJECT_CUDART cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                        cudaDriverEntryPointQueryResult* result) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  cuGetProcAddress(name, function, CUDART_VERSION, flags, &found);
  if (result != nullptr) *result = static_cast<cudaDriverEntryPointQueryResult>(found);
  return cudaSuccess;
}
#else
RFINJECT_CUDART cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags) {
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  cuGetProcAddress(name, function, CUDART_VERSION, flags, &found);
  return cudaSuccess;
}
#endif
RFINJECT_CUDART cudaProfilerStart() { return Return(cuProfilerStart()); }
RFINJECT_CUDART cudaProfilerStop() { return Return(cuProfilerStop()); }
