// File: run_facts.h
//
// What a process knows about itself: the fields of the Run, Process, Device and Policy messages, as plain data.
// An empty or zero field is "not known (yet)".
#ifndef RFINJECT_COLLECTOR_RUN_FACTS_H_
#define RFINJECT_COLLECTOR_RUN_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rfinject {

enum class SourceKind : uint8_t { kUnspecified = 0, kMeasured = 1, kEstimated = 2, kImported = 3, kNone = 4 };

// Values equal rfinject.v1.Tier.
enum class Tier : uint8_t {
  kUnspecified = 0,
  kCurrentNode = 1,
  kBackwardScope = 2,
  kCallSlots = 3,
  kNamesOnly = 4,
  kLibtorch = 5,
  kNoTorch = 6,
};

struct DeviceFacts {
  uint32_t index = 0;
  std::string name;
  std::string chip;
  uint32_t cc_major = 0;
  uint32_t cc_minor = 0;
  uint32_t sm_count = 0;
  uint64_t sm_clock_khz = 0;
  uint64_t memory_clock_khz = 0;
  uint32_t memory_bus_bits = 0;
  uint64_t memory_bytes = 0;
  uint64_t l2_bytes = 0;
  std::string uuid;
  bool mig = false;
};

enum class Tristate : uint8_t { kUnknown = 0, kOff = 1, kOn = 2 };

struct PolicyFacts {
  Tristate matmul_tf32 = Tristate::kUnknown;
  Tristate cudnn_tf32 = Tristate::kUnknown;
  Tristate cudnn_benchmark = Tristate::kUnknown;
  Tristate cudnn_deterministic = Tristate::kUnknown;
  std::string autocast_dtype;
};

struct RunFacts {
  SourceKind source = SourceKind::kUnspecified;
  Tier tier = Tier::kUnspecified;
  std::string tier_reason;
  uint64_t batch_size = 0;
  std::string estimated_gpu;
  std::string collector;
  std::string collector_version;
  std::string python_version;
  std::string python_executable;
  std::string torch_version;
  std::string torchvision_version;
  std::string cuda_version;
  std::string cudnn_version;
  std::string driver_version;
  std::string cupti_version;
  std::string cupti_path;
  std::vector<DeviceFacts> devices;
  PolicyFacts policy;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RUN_FACTS_H_
