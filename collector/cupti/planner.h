// File: planner.h
//
// The planner splits the metrics that are wanted into the fewest groups that each take ONE pass. A pass is one run of
// the kernel; with one pass nothing is ever replayed, so a group costs what the counters cost and changes nothing in
// the program.
//
//   hardware group   tensor metrics, and nothing beside them; where these need several groups, the first tells which
//                    kernels use the tensor pipes at all, so that the others are counted of those alone
//   SASS group       instruction counts by patched code, which share no pass with hardware counters
//   sampled group    what varies between launches: DRAM bytes, where the chip cannot be sampled over time, and the
//                    user's metrics
//   sparsity guard   the sparse tensor path: dense counters miss sparse FLOP, so any means a warning; counted much
//                    later, with the check of FLOP
//
// It is pure but for the MetricHost, deterministic, and bounded by PlanRequest::max_questions.
#ifndef RFINJECT_COLLECTOR_CUPTI_PLANNER_H_
#define RFINJECT_COLLECTOR_CUPTI_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collector/cupti/metric_host.h"
#include "collector/cupti/metrics.h"

namespace rfinject::cupti {

enum class GroupKind : uint8_t { kHardware, kSass, kSampled, kSparsityGuard };

struct CounterGroup {
  GroupKind kind = GroupKind::kHardware;
  std::vector<std::string> metrics;  // with roll-ups
};

struct PlanRequest {
  ChipMetrics metrics;
  std::string tensor_activity{kTensorCyclesMetric};  // 0 where a kernel has no tensor FLOP
  std::vector<std::string> user_metrics;             // --metrics; a name without roll-up gets ".sum"
  bool bytes = false;                                // a group counts DRAM bytes
  // How many questions (about 5 ms each, h200) the host is asked before the search for fewer groups stops with the
  // best found so far.
  size_t max_questions = 160;
};

struct Plan {
  std::vector<CounterGroup> groups;  // in the order in which they are worth counting
  // Metrics that no single pass can collect, with the reason, for the trace.
  std::vector<std::pair<std::string, std::string>> rejected;
  size_t questions = 0;  // host questions asked
};

// Plans the groups for one chip. `host` is asked which metrics fit into one pass together.
Plan MakePlan(MetricHost& host, const PlanRequest& request);

// "NAME,NAME.avg, NAME" as a list; empty parts are skipped.
std::vector<std::string> SplitMetrics(std::string_view list);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_PLANNER_H_
