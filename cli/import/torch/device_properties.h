// File: device_properties.h
//
// Reads what a recording says of its GPUs and of its job.
#ifndef RFINJECT_CLI_IMPORT_TORCH_DEVICE_PROPERTIES_H_
#define RFINJECT_CLI_IMPORT_TORCH_DEVICE_PROPERTIES_H_

#include <cstdint>
#include <map>
#include <string>

#include "cli/import/torch/recording.h"

namespace rfinject::cli {

// Adds the GPUs of "deviceProperties", a list as JSON, by their number ("id"). What is no such list adds nothing.
void ReadDeviceProperties(const std::string& json, std::map<uint32_t, TorchDevice>* devices);

// Takes "rank" and "world_size" from "distributedInfo", an object as JSON. What it does not say stays as it is.
void ReadDistributedInfo(const std::string& json, uint32_t* rank, uint32_t* world_size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_DEVICE_PROPERTIES_H_
