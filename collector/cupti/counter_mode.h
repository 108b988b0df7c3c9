// File: counter_mode.h
//
// Decides how counters are taken, and says why. It is pure.
//
//   kernel by kernel   the profiler opens a range for each launch and waits for the context after it. Exact for each
//                      kernel, but kernels run one after another, and a launch returns when its kernel has ended: one
//                      that waits for a kernel that is launched later (communication between ranks or GPUs) never
//                      does. A CUDA graph cannot be looked into without replaying it.
//   layer by layer     we open a range at the first launch of a layer and phase and close it at the first launch of
//                      another. Nothing waits. The launches of a range share its sum; what runs beside them on the
//                      GPU is counted with them.
#ifndef RFINJECT_COLLECTOR_CUPTI_COUNTER_MODE_H_
#define RFINJECT_COLLECTOR_CUPTI_COUNTER_MODE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "proto/wire/conditions.h"

namespace rfinject::cupti {

enum class CounterMode : uint8_t {
  kNone,
  kKernels,
  kLayers,
};

struct ModeFacts {
  std::string_view forced;     // RFINJECT_MODE: "range", "user", "times"; anything else decides nothing here
  uint32_t ranks = 1;          // WORLD_SIZE
  bool mps = false;            // the process is a client of MPS
  bool graphs = false;         // a CUDA graph has been launched
  bool communication = false;  // a kernel of NCCL has been launched
  bool layer_ranges = true;    // the profiler at hand has ranges that the caller opens and closes
};

struct ModeChoice {
  CounterMode mode = CounterMode::kNone;
  std::string why;                                // one line
  ConditionId condition = ConditionId::kFailure;  // of kNone, where it is a condition and not the user's wish
  bool wished = false;                            // kNone because the user said so
};

// Returns the mode, and in one line why. The user's word counts first, then what would make the program hang.
ModeChoice ChooseCounterMode(const ModeFacts& facts);

// "kernel by kernel", "layer by layer", "not at all".
std::string_view CounterModeName(CounterMode mode);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_COUNTER_MODE_H_
