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

// The clock in the windows in which the GPU was sampled; 0: not known.
struct SampledClock {
  uint64_t windows = 0;
  double mean_hz = 0, low_hz = 0, high_hz = 0;  // of the windows
  double boost_hz = 0;                          // the most that the GPU can run at

  // Power and heat move a clock. One that stands still, and below the most, is held.
  bool held() const { return below() && high_hz < 1.005 * low_hz; }
  // Whether it stayed below the most, in windows enough to say so.
  bool below() const { return windows >= 4 && high_hz < 0.98 * boost_hz; }
};

struct Device {
  std::string name;
  std::vector<DeviceInfo> list;  // that the run used
  std::string own_calibration;   // Calibration::OwnSource, if the user's own GPU was measured
  double sm_hz = 0;              // mean SM clock while the counters ran; 0: unknown
  SampledClock clock;
  OtherGpu other;

  // A simulated GPU's numbers look like measured ones and are made up.
  bool simulated() const { return name.starts_with(kSimulatedDevice); }
};

SampledClock SampledClockOf(const Run& run);
// That the clock was below what the GPU can run at, and whether somebody holds it there. Empty where it was not.
std::string ClockText(const Device& device);
std::span<const FactOf<Device>> DeviceFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_DEVICE_H_
