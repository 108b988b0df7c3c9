// Memory of the runtime.
#include "virtual_gpu/runtime/runtime.h"

using namespace rfinject::virtual_gpu;

namespace {

CUresult Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoDAsync(Address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoHAsync(to, Address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoDAsync(Address(to), Address(from), bytes, stream);
    default:
      return cuMemcpyAsync(Address(to), Address(from), bytes, stream);
  }
}

}  // namespace

RFINJECT_CUDART cudaMalloc(void** pointer, size_t bytes) {
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  RFINJECT_FORWARD(cuMemAlloc(reinterpret_cast<CUdeviceptr*>(pointer), bytes));
}
RFINJECT_CUDART cudaFree(void* pointer) { RFINJECT_FORWARD(cuMemFree(Address(pointer))); }
RFINJECT_CUDART cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  RFINJECT_FORWARD(cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream));
}
RFINJECT_CUDART cudaFreeAsync(void* pointer, cudaStream_t stream) {
  RFINJECT_FORWARD(cuMemFreeAsync(Address(pointer), stream));
}
RFINJECT_CUDART cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  RFINJECT_FORWARD(cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(pointer), bytes, flags));
}
RFINJECT_CUDART cudaMallocHost(void** pointer, size_t bytes) { RFINJECT_FORWARD(cuMemHostAlloc(pointer, bytes, 0)); }
RFINJECT_CUDART cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  RFINJECT_FORWARD(cuMemHostAlloc(pointer, bytes, flags));
}
RFINJECT_CUDART cudaFreeHost(void* pointer) { RFINJECT_FORWARD(cuMemFreeHost(pointer)); }
RFINJECT_CUDART cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  RFINJECT_FORWARD(cuMemHostRegister(pointer, bytes, flags));
}
RFINJECT_CUDART cudaHostUnregister(void* pointer) { RFINJECT_FORWARD(cuMemHostUnregister(pointer)); }
RFINJECT_CUDART cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  RFINJECT_FORWARD(cuMemHostGetDevicePointer(reinterpret_cast<CUdeviceptr*>(device), host, flags));
}
RFINJECT_CUDART cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  RFINJECT_FORWARD(cuMemGetInfo(free_bytes, total_bytes));
}
RFINJECT_CUDART cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return Return(cuDeviceGetDefaultMemPool(pool, device));
}
RFINJECT_CUDART cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return Return(cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}
RFINJECT_CUDART cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return Return(cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}
RFINJECT_CUDART cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }
RFINJECT_CUDART cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) { return Return(cuMemPoolTrimTo(pool, bytes)); }

RFINJECT_CUDART cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  RFINJECT_FORWARD(cuMemcpy(Address(to), Address(from), bytes));
}
RFINJECT_CUDART cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  RFINJECT_FORWARD(Copy(to, from, bytes, kind, stream));
}
RFINJECT_CUDART cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  RFINJECT_FORWARD(cuMemcpyPeerAsync(Address(to), nullptr, Address(from), nullptr, bytes, stream));
}
RFINJECT_CUDART cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                  size_t height, cudaMemcpyKind, cudaStream_t stream) {
  CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .dstMemoryType = CU_MEMORYTYPE_UNIFIED};
  copy.srcDevice = Address(from);
  copy.dstDevice = Address(to);
  copy.srcPitch = from_pitch;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  RFINJECT_FORWARD(cuMemcpy2DAsync(&copy, stream));
}
RFINJECT_CUDART cudaMemset(void* to, int value, size_t bytes) {
  RFINJECT_FORWARD(cuMemsetD8(Address(to), static_cast<unsigned char>(value), bytes));
}
RFINJECT_CUDART cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  RFINJECT_FORWARD(cuMemsetD8Async(Address(to), static_cast<unsigned char>(value), bytes, stream));
}

RFINJECT_CUDART cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!UseDevice()) return Return(cudaErrorNoDevice);
  unsigned type = 0, managed = 0;
  int device = 0;
  CUdeviceptr on_device = 0, on_host = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &on_device, &on_host};
  cuPointerGetAttributes(5, asked, values, Address(pointer));
  *attributes = cudaPointerAttributes{};
  attributes->type = managed != 0                   ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                     : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                    : cudaMemoryTypeUnregistered;
  attributes->device = device;
  attributes->devicePointer = reinterpret_cast<void*>(on_device);
  attributes->hostPointer = reinterpret_cast<void*>(on_host);
  return cudaSuccess;
}
