// NVML's queries that programs make for their logs: libnvidia-ml.so.1. Its header is not part of what we build with,
// so the functions are declared here as its documentation has them (docs.nvidia.com/deploy/nvml-api).
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

namespace {

using nvmlReturn_t = int;
constexpr nvmlReturn_t kSuccess = 0;
constexpr nvmlReturn_t kInvalidArgument = 2;
constexpr nvmlReturn_t kNotSupported = 3;
constexpr nvmlReturn_t kNotFound = 6;
constexpr nvmlReturn_t kInsufficientSize = 7;

// A device's handle is its number plus one, so that none is null.
using nvmlDevice_t = void*;
nvmlDevice_t Handle(int device) { return reinterpret_cast<nvmlDevice_t>(static_cast<intptr_t>(device + 1)); }
CUdevice Device(nvmlDevice_t handle) { return static_cast<CUdevice>(reinterpret_cast<intptr_t>(handle) - 1); }

struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;
};

int Count() {
  int count = 0;
  cuDeviceGetCount(&count);
  return count;
}

nvmlReturn_t Write(char* to, unsigned bytes, const char* text) {
  if (strlen(text) + 1 > bytes) return kInsufficientSize;
  strcpy(to, text);
  return kSuccess;
}

void UuidText(CUdevice device, char (&text)[64]) {
  CUuuid uuid{};
  cuDeviceGetUuid(&uuid, device);
  char* at = text + snprintf(text, sizeof text, "GPU-");
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    at += snprintf(at, 4, dash ? "-%02x" : "%02x", static_cast<unsigned char>(uuid.bytes[i]));
  }
}

}  // namespace

RFINJECT_STANDIN nvmlReturn_t nvmlInit_v2() { return kSuccess; }
RFINJECT_STANDIN nvmlReturn_t nvmlInit() { return kSuccess; }
RFINJECT_STANDIN nvmlReturn_t nvmlInitWithFlags(unsigned) { return kSuccess; }
RFINJECT_STANDIN nvmlReturn_t nvmlShutdown() { return kSuccess; }
RFINJECT_STANDIN const char* nvmlErrorString(nvmlReturn_t result) {
  return result == kSuccess ? "Success" : result == kNotSupported ? "Not Supported" : "Unknown Error";
}
RFINJECT_STANDIN nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned bytes) {
  return Write(version, bytes, "0.0 (rfinject's virtual GPU)");
}
RFINJECT_STANDIN nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  cuDriverGetVersion(version);
  return kSuccess;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  return Set(count, static_cast<unsigned>(Count()));
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (index >= static_cast<unsigned>(Count())) return kInvalidArgument;
  return Set(device, Handle(static_cast<int>(index)));
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* text, nvmlDevice_t* device) {
  for (int i = 0; i < Count(); ++i) {
    char own[32];
    cuDeviceGetPCIBusId(own, sizeof own, i);
    // Callers write the domain with four digits or with eight.
    const size_t length = strlen(text), own_length = strlen(own);
    if (length >= own_length && strcasecmp(text + length - own_length, own) == 0) {
      *device = Handle(i);
      return kSuccess;
    }
  }
  return kNotFound;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* text, nvmlDevice_t* device) {
  for (int i = 0; i < Count(); ++i) {
    char own[64];
    UuidText(i, own);
    if (strcmp(own, text) == 0) {
      *device = Handle(i);
      return kSuccess;
    }
  }
  return kNotFound;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned bytes) {
  return cuDeviceGetName(name, static_cast<int>(bytes), Device(device)) == CUDA_SUCCESS ? kSuccess : kInvalidArgument;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* text, unsigned bytes) {
  char own[64];
  UuidText(Device(device), own);
  return Write(text, bytes, own);
}
// This is the memory of this process's virtual GPU; other processes have their own.
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  CUcontext context = nullptr;
  if (cuDevicePrimaryCtxRetain(&context, Device(device)) != CUDA_SUCCESS) return kInvalidArgument;
  cuCtxPushCurrent(context);
  size_t free_bytes = 0, total_bytes = 0;
  cuMemGetInfo(&free_bytes, &total_bytes);
  cuCtxPopCurrent(nullptr);
  *memory = {total_bytes, free_bytes, total_bytes - free_bytes};
  return kSuccess;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t* rates) {
  return Set(rates, nvmlUtilization_t{});
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t, unsigned* count, void*) {
  return Set(count, 0);
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned* count, void*) {
  return Set(count, 0);
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, int, unsigned*) { return kNotSupported; }
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned*) { return kNotSupported; }
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, int, unsigned*) { return kNotSupported; }
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t, unsigned, int*) {
  return kNotSupported;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t, unsigned, void*) {
  return kNotSupported;
}
RFINJECT_STANDIN nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t, nvmlDevice_t, int, int* status) {
  return Set(status, 0);
}
