// Functions that PyTorch wants to find before it uses any (c10/cuda/driver_api.h), and that need several processes,
// the memory of several boards as one, or parts of a board. They exist, report their name, and fail.
#include "virtual_gpu/driver/state.h"
#include "virtual_gpu/virtual_gpu.h"

namespace {

CUresult NotSupported(const char* name) {
  return static_cast<CUresult>(rfinject_virtual_gpu_missing(name, CUDA_ERROR_NOT_SUPPORTED));
}

}  // namespace

RFINJECT_CUDA cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                           unsigned long long) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp*, CUmemGenericAllocationHandle) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void*) { return NotSupported(__func__); }
RFINJECT_CUDA cuIpcGetMemHandle(CUipcMemHandle*, CUdeviceptr) { return NotSupported(__func__); }
RFINJECT_CUDA cuMulticastCreate(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice) { return NotSupported(__func__); }
RFINJECT_CUDA cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,
                                 unsigned long long) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuMulticastGetGranularity(size_t*, const CUmulticastObjectProp*, CUmulticastGranularity_flags) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuDeviceGetDevResource(CUdevice, CUdevResource*, CUdevResourceType) { return NotSupported(__func__); }
RFINJECT_CUDA cuDevSmResourceSplitByCount(CUdevResource*, unsigned*, const CUdevResource*, CUdevResource*, unsigned,
                                          unsigned) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuDevResourceGenerateDesc(CUdevResourceDesc*, CUdevResource*, unsigned) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuGreenCtxCreate(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned) { return NotSupported(__func__); }
RFINJECT_CUDA cuGreenCtxDestroy(CUgreenCtx) { return NotSupported(__func__); }
RFINJECT_CUDA cuCtxFromGreenCtx(CUcontext*, CUgreenCtx) { return NotSupported(__func__); }
RFINJECT_CUDA cuGreenCtxStreamCreate(CUstream*, CUgreenCtx, unsigned, int) { return NotSupported(__func__); }
RFINJECT_CUDA cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState*) { return NotSupported(__func__); }
RFINJECT_CUDA cuLinkAddData(CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned, CUjit_option*,
                            void**) {
  return NotSupported(__func__);
}
RFINJECT_CUDA cuLinkComplete(CUlinkState, void**, size_t*) { return NotSupported(__func__); }
