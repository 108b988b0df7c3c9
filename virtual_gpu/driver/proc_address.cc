// cuGetProcAddress finds a function by its name and the CUDA version that the caller was written for.
//
// A name without a suffix stands for several functions, one for each time that its arguments changed. Which version
// means which is in cudaTypedefs.h (PFN_cuMemAlloc_v3020 and so on); the ones that are here are listed with the
// version that brought them. What is not in the list has had one form only, or only the form here is in use since
// CUDA 12.
#include <dlfcn.h>
#include <string.h>

#include "virtual_gpu/driver/state.h"

using namespace rfinject::virtual_gpu;

namespace {

struct Version {
  const char* name;
  int since;  // CUDA's version
  const char* symbol;
};
constexpr Version kVersions[] = {
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2"},
    {"cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2"},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
    {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"},
    {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2"},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemAllocHost", 3020, "cuMemAllocHost_v2"},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemGetAddressRange", 3020, "cuMemGetAddressRange_v2"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2"},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
    {"cuMemcpy2D", 3020, "cuMemcpy2D_v2"},
    {"cuMemcpy2DAsync", 3020, "cuMemcpy2DAsync_v2"},
    {"cuMemcpyDtoD", 3020, "cuMemcpyDtoD_v2"},
    {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
    {"cuMemcpyDtoH", 3020, "cuMemcpyDtoH_v2"},
    {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
    {"cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2"},
    {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
    {"cuMemsetD16", 3020, "cuMemsetD16_v2"},
    {"cuMemsetD32", 3020, "cuMemsetD32_v2"},
    {"cuMemsetD8", 3020, "cuMemsetD8_v2"},
    {"cuModuleGetGlobal", 3020, "cuModuleGetGlobal_v2"},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v2"},
    {"cuStreamWriteValue32", 11070, "cuStreamWriteValue32_v2"},
};

// Looks in this library alone: a function of the same name elsewhere in the process is not the driver's.
void* Own(const char* symbol) {
  static void* const self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&Own), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  if (strncmp(symbol, "cu", 2) != 0) return nullptr;
  return dlsym(self, symbol);
}

CUresult GetProcAddress(const char* name, void** function, int version, CUdriverProcAddressQueryResult* result) {
  const Version* best = nullptr;
  for (const Version& known : kVersions) {
    if (strcmp(known.name, name) == 0 && known.since <= version) best = &known;
  }
  *function = Own(best != nullptr ? best->symbol : name);
  if (result != nullptr) {
    *result = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

#undef cuGetProcAddress
RFINJECT_CUDA cuGetProcAddress(const char* name, void** function, int version, cuuint64_t) {
  return GetProcAddress(name, function, version, nullptr);
}
RFINJECT_CUDA cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t,
                                  CUdriverProcAddressQueryResult* result) {
  return GetProcAddress(name, function, version, result);
}
