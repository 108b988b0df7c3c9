// File: row.h
//
// A row of a report: what it is of, its sums, and what follows from them. Rates are per second, times in ns, shares
// parts of 1. Text is what the trace holds, unescaped; outputs escape it wherever it appears.
#ifndef RFINJECT_CLI_REPORT_ROWS_ROW_H_
#define RFINJECT_CLI_REPORT_ROWS_ROW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/step_interval.h"
#include "cli/report/keys/quantity.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// The name of a phase as outputs show it; empty where there is none.
inline std::string_view PhaseName(std::optional<Phase> phase) {
  return phase ? kPhaseNames[static_cast<size_t>(*phase)] : std::string_view();
}

enum class By : uint8_t { kModel, kPhase, kLayer, kOp, kKernel, kSource, kClass };

// What keeps something from being faster: the host, for whose launches the GPU waits, bytes, arithmetic, or the links
// to the host and to other GPUs.
enum class Bound : uint8_t { kUnknown, kLaunch, kMemory, kCompute, kPcie, kNvlink };
std::string_view BoundName(Bound bound);  // "launch"; empty where it is not known

struct Derived {  // from Sums alone; 0 where undefined
  double oi_flop_per_byte = 0;
  double performance_flop_per_s = 0;
  double bandwidth_bytes_per_s = 0;
  double attainable_flop_per_s = 0;
  double attainable_share = 0;  // least_ns / time_ns
  double slack_ns = 0;          // time_ns - least_ns
  // What most of the time is bound by; where single launch keys were not looked at, the larger of the least times.
  Bound bound = Bound::kUnknown;
  double executed_over_model = 0;
  double oi_l2_flop_per_byte = 0, oi_l1_flop_per_byte = 0;
  double dram_over_compulsory = 0;
};
Derived Derive(const Sums& sums);
// Time of launches of which it is known what holds them back.
double BoundTime(const Sums& sums);

// How well an amount is known. The interval is that of a mean step of the run; slow steps are no part of it.
struct Knowledge {
  Trust trust = Trust::kNone;  // and why there is none
  bool close = false;          // some of the sampled steps lie close together (StepInterval)
  double relative = 0;         // half the 95 % interval over the amount; 0: exact, or none
  // The share of the row's GPU time whose spread is not known; the true interval is then at least this wide.
  double lacks = 0;
  double spread = 0;  // of one step, robust, over the amount; 0: unknown
  double p95 = 0;     // of one step, ns or bytes; 0: fewer than 20 were sampled
  // Of bytes, in rows of By::kOp and kKernel: they and FLOP (of some launches) were counted for their layer and phase
  // as a whole, and the row has an equal share for each launch. The row's time is its own.
  bool shared = false;
};

// What a row is of. Texts that the chosen `By` does not keep are empty. By::kLayer keeps model, layer; kPhase: model,
// phase; kOp: model, phase, op. kKernel: everything. What is in no layer (model empty) has a row for each phase,
// which it names. kSource keeps line and function alone; what has no line has a row for each phase. kClass keeps
// model and group.
struct RowNames {
  std::string model, layer, op, kernel, signature;
  std::string line, function;  // of the program: "model.py:41", "Block.forward"
  std::optional<Phase> phase;
  // In no layer: what launched it (stacks.h), of several the one with most time; empty where no stack was taken.
  std::string caller;
  size_t other_callers = 0;
  std::string group;  // the layer and those that are like it (layer_group.h)
};

// What a row's layer, or group of layers, is like.
struct RowLayer {
  std::string class_name;
  uint64_t layers = 0;  // that the row adds up; 0: it is not of a group
  uint64_t parameters = 0, parameter_bytes = 0;
  std::string input_shape, output_shape;  // "f32[8,3,224,224]"
  uint64_t order = 0;                     // rows of By::kLayer are listed as the program runs them
};

struct Row : RowNames, RowLayer {
  // For a layer in PictureRows: the row of its group, where the group is there as well (GroupedForPage); -1: none.
  int64_t member_of = -1;
  // Of an estimate on a virtual GPU, what PyTorch launched below the row's operators: kernels by their short names
  // (kernel_name.h), most launches first. Nothing for what is in a CUDA graph.
  struct LaunchedKernel {
    std::string name;
    uint64_t launches = 0;
  };
  std::vector<LaunchedKernel> kernels;
  Sums sums;
  Derived derived;
  double time_share = 0;  // of all GPU time of the run
  Knowledge time, bytes;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_ROW_H_
