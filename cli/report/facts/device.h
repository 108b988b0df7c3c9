// File: device.h
//
// The GPU that a run is of.
#ifndef RFINJECT_CLI_REPORT_FACTS_DEVICE_H_
#define RFINJECT_CLI_REPORT_FACTS_DEVICE_H_

#include <span>
#include <string>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/facts/other_gpu.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

struct Device {
  std::string name;
  std::vector<DeviceInfo> list;  // that the run used
  std::string own_calibration;   // Calibration::OwnSource, if the user's own GPU was measured
  double sm_hz = 0;              // mean SM clock while the counters ran; 0: unknown
  OtherGpu other;

  // A simulated GPU's numbers look like measured ones and are made up.
  bool simulated() const { return name.starts_with(kSimulatedDevice); }
};

std::span<const FactOf<Device>> DeviceFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_DEVICE_H_
