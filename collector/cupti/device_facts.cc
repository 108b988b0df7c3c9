#include "collector/cupti/device_facts.h"

#include <cstddef>
#include <cstdint>

#include "proto/wire/vocabulary.h"

namespace rfinject::cupti {

int DeviceAttribute(const Api& api, CUdevice_attribute attribute, int device) {
  int value = 0;
  if (api.cuDeviceGetAttribute == nullptr || api.cuDeviceGetAttribute(&value, attribute, device) != CUDA_SUCCESS ||
      value < 0) {
    return 0;
  }
  return value;
}

DeviceFacts DescribeDevice(const Api& api, int device, const std::string& chip) {
  DeviceFacts facts;
  facts.index = static_cast<uint32_t>(device);
  facts.chip = chip;
  char name[256] = {};
  if (api.cuDeviceGetName != nullptr && api.cuDeviceGetName(name, sizeof name - 1, device) == CUDA_SUCCESS) {
    facts.name = name;
    if (api.virtual_driver && !facts.name.starts_with(kSimulatedDevice)) facts.name.insert(0, kSimulatedDevice);
  }
  const auto attribute = [&](CUdevice_attribute which) {
    return static_cast<uint32_t>(DeviceAttribute(api, which, device));
  };
  facts.cc_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.cc_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.sm_count = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.sm_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  facts.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  facts.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  facts.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  int ecc = 0;
  if (api.cuDeviceGetAttribute != nullptr &&
      api.cuDeviceGetAttribute(&ecc, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, device) == CUDA_SUCCESS) {
    facts.ecc = ecc != 0 ? 2 : 1;
  }
  size_t memory = 0;
  if (api.cuDeviceTotalMem != nullptr && api.cuDeviceTotalMem(&memory, device) == CUDA_SUCCESS) {
    facts.memory_bytes = memory;
  }
  return facts;
}

std::string DriverVersion(const Api& api) {
  int driver = 0;  // 12040 is 12.4
  if (api.cuDriverGetVersion == nullptr || api.cuDriverGetVersion(&driver) != CUDA_SUCCESS) return {};
  return std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

}  // namespace rfinject::cupti
