// File: device_facts.h
//
// What the driver says about itself and its devices, for the trace. Called by the thread that ends the steps; a
// question that the driver does not answer leaves its field empty.
#ifndef RFINJECT_COLLECTOR_CUPTI_DEVICE_FACTS_H_
#define RFINJECT_COLLECTOR_CUPTI_DEVICE_FACTS_H_

#include <string>

#include "collector/cupti/api.h"
#include "collector/run_facts.h"

namespace rfinject::cupti {

// An attribute of the device with the driver's number `device`; 0 when the driver does not say, or says less than 0.
int DeviceAttribute(const Api& api, CUdevice_attribute attribute, int device);

// `chip` is CUPTI's name for it ("GA100"), or empty.
DeviceFacts DescribeDevice(const Api& api, int device, const std::string& chip);

// The CUDA version of the driver, "12.4", or empty.
std::string DriverVersion(const Api& api);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_DEVICE_FACTS_H_
