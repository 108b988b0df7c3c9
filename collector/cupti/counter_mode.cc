#include "collector/cupti/counter_mode.h"

namespace rfinject::cupti {

ModeChoice ChooseCounterMode(const ModeFacts& facts) {
  if (facts.forced == "times") return {.mode = CounterMode::kNone, .why = "RFINJECT_MODE=times", .wished = true};
  if (facts.forced == "range") return {.mode = CounterMode::kKernels, .why = "RFINJECT_MODE=range"};
  if (facts.forced == "user" && facts.layer_ranges) {
    return {.mode = CounterMode::kLayers, .why = "RFINJECT_MODE=user"};
  }
  // Under MPS the counters also hold the other clients' work.
  if (facts.mps) return {.why = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is set", .condition = ConditionId::kMps};

  const bool several = facts.ranks > 1 || facts.communication;
  std::string why;
  if (facts.ranks > 1) {
    why = "WORLD_SIZE=" + std::to_string(facts.ranks) + ": a communication kernel waits for other ranks";
  } else if (facts.communication) {
    why = "communication kernels (NCCL) wait for one another";
  } else if (facts.graphs) {
    why = "a CUDA graph cannot be looked into";
  } else if (facts.forced == "user") {
    return {.mode = CounterMode::kKernels,
            .why = "RFINJECT_MODE=user, but this profiler has no ranges of its caller's"};
  } else {
    return {.mode = CounterMode::kKernels, .why = "one rank, no communication kernel, no CUDA graph"};
  }
  if (facts.layer_ranges) return {.mode = CounterMode::kLayers, .why = why};
  return {.why = why + "; this profiler has no ranges of its caller's",
          .condition = several ? ConditionId::kSeveralRanks : ConditionId::kGraphs};
}

std::string_view CounterModeName(CounterMode mode) {
  return mode == CounterMode::kKernels  ? "kernel by kernel"
         : mode == CounterMode::kLayers ? "layer by layer"
                                        : "not at all";
}

}  // namespace rfinject::cupti
