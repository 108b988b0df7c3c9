// File: metric_names.h
//
// Names of Metric messages that only estimates on a virtual GPU have; vocabulary.h has those of all runs.
#ifndef RFINJECT_PROTO_WIRE_METRIC_NAMES_H_
#define RFINJECT_PROTO_WIRE_METRIC_NAMES_H_

#include <string_view>

namespace rfinject {

// Bytes that leave the GPU, in one direction.
inline constexpr std::string_view kMetricPcieBytes = "rf.pcie_bytes";
inline constexpr std::string_view kMetricNvlinkBytes = "rf.nvlink_bytes";

// What this begins with counts the launches of one kernel below an estimated operator; its name follows, as a
// programmer reads it ("rf.kernel:void at::native::…").
inline constexpr std::string_view kMetricKernelPrefix = "rf.kernel:";

}  // namespace rfinject

#endif  // RFINJECT_PROTO_WIRE_METRIC_NAMES_H_
