// File: runtime.h
//
// What the files of the runtime share: the last error of a thread, the current device, and the form of every
// function. CUDA's runtime is the driver under other names; this one uses its public functions only, and is compiled
// once for each major version of CUDA, because structs and signatures differ.
#ifndef RFINJECT_VIRTUAL_GPU_RUNTIME_RUNTIME_H_
#define RFINJECT_VIRTUAL_GPU_RUNTIME_RUNTIME_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "virtual_gpu/success.h"

#define RFINJECT_CUDART extern "C" __attribute__((visibility("default"))) cudaError_t CUDARTAPI

namespace rfinject::virtual_gpu {

// The error becomes the thread's last one, unless it only says "not yet".
cudaError_t Return(CUresult result);
cudaError_t Return(cudaError_t error);

// Makes the thread's device current, as the runtime does before its first call. Returns false without a device.
bool UseDevice();

// Finds the driver's kernel behind a host function that the program registered.
cudaError_t FindKernel(const void* host_function, CUfunction* function);

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace rfinject::virtual_gpu

// Most functions are one of the driver's, called with the device current.
#define RFINJECT_FORWARD(call)                                                                            \
  do {                                                                                                    \
    if (!::rfinject::virtual_gpu::UseDevice()) return ::rfinject::virtual_gpu::Return(cudaErrorNoDevice); \
    return ::rfinject::virtual_gpu::Return(call);                                                         \
  } while (false)

#endif  // RFINJECT_VIRTUAL_GPU_RUNTIME_RUNTIME_H_
