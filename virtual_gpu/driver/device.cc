// Devices: how many there are, and what they say of themselves.
#include <stdio.h>
#include <string.h>

#include "virtual_gpu/driver/state.h"

using namespace rfinject::virtual_gpu;

namespace {

// Each device has a bus number of its own, as in a machine with several.
constexpr int kFirstBus = 4;

CUresult WriteUuid(CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  // This is no real board's UUID; its bytes are a text that says so.
  memcpy(uuid->bytes, "rfinject virtual", sizeof uuid->bytes);
  uuid->bytes[sizeof uuid->bytes - 1] = static_cast<char>('0' + device);
  return CUDA_SUCCESS;
}

struct FixedAttribute {
  CUdevice_attribute attribute;
  int value;
};
// Those that all chips since Volta have alike, or that say no more than that a virtual GPU can do it.
constexpr int kNoLimit = 0x7fffffff;
constexpr FixedAttribute kFixedAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, kNoLimit},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, kNoLimit},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
};

// What follows from the board; 0 for what is not known here.
int Attribute(CUdevice_attribute attribute, CUdevice device) {
  for (const FixedAttribute& fixed : kFixedAttributes) {
    if (fixed.attribute == attribute) return fixed.value;
  }
  const Board& board = TheBoard();
  const ChipLimits& limits = LimitsOf(board.sm());
  const bool ampere = board.cc_major >= 8;
  const bool hopper = board.cc_major >= 9;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return static_cast<int>(board.sm_hz / 1000);
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return board.sm_count;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return kFirstBus + device;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return static_cast<int>(board.dram_bytes_per_s / 2 / 640 / 1000);
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return static_cast<int>(board.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return limits.threads_per_sm;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return board.cc_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return board.cc_minor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return limits.shared_bytes_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return limits.shared_bytes_per_block_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return limits.blocks_per_sm;
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
      return ampere ? static_cast<int>(board.l2_bytes * 3 / 4) : 0;
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
      return ampere ? 134213632 : 0;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return ampere ? 1024 : 0;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      return hopper ? 1 : 0;
    default:
      return 0;
  }
}

}  // namespace

RFINJECT_CUDA cuInit(unsigned) { return TheBoard().devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE; }

// The version is that of the headers that this was compiled with, since these are the functions that are known here.
RFINJECT_CUDA cuDriverGetVersion(int* version) { return Set(version, CUDA_VERSION); }

RFINJECT_CUDA cuDeviceGet(CUdevice* device, int ordinal) {
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  return Set(device, ordinal);
}

RFINJECT_CUDA cuDeviceGetCount(int* count) { return Set(count, TheBoard().devices); }

RFINJECT_CUDA cuDeviceGetName(char* name, int bytes, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, static_cast<size_t>(bytes), "%s", TheBoard().name.c_str());
  return CUDA_SUCCESS;
}

#undef cuDeviceGetUuid
RFINJECT_CUDA cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return WriteUuid(uuid, device); }
RFINJECT_CUDA cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return WriteUuid(uuid, device); }

RFINJECT_CUDA cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return Set(bytes, TheBoard().memory_bytes);
}

RFINJECT_CUDA cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  return Set(value, Attribute(attribute, device));
}

RFINJECT_CUDA cuDeviceGetPCIBusId(char* text, int bytes, CUdevice device) {
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(text, static_cast<size_t>(bytes), "0000:%02X:00.0", kFirstBus + device);
  return CUDA_SUCCESS;
}

RFINJECT_CUDA cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer;
  return CUDA_SUCCESS;
}

RFINJECT_CUDA cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  if (!IsDevice(device) || !IsDevice(peer) || device == peer) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
  return CUDA_SUCCESS;
}
