// File: stages.h
//
// What is made of a recording that was read (recording.h), outlined (outline.h), cut into windows (windows.h) and
// placed (call_tree.h): its launches with their costs (cost.cc), its steps (steps.cc), and what is said of it
// (say.cc).
#ifndef RFINJECT_CLI_IMPORT_TORCH_STAGES_H_
#define RFINJECT_CLI_IMPORT_TORCH_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/import/et/join_execution_trace.h"
#include "cli/import/run_builder.h"
#include "cli/import/timed_steps.h"
#include "cli/import/torch/add_work.h"
#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/recording.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// What is the same for all windows.
struct CostedProgram {
  WorkedGpu gpu;
  std::string model;  // the layer of everything where the file has no modules
  bool has_modules = false;
};

// The GPU's time, in ns: all of it, that of launches outside of the steps, and what has no FLOP and no bytes.
struct CostedTimes {
  uint64_t total_ns = 0, outside_ns = 0;
  uint64_t moved_ns = 0, communicated_ns = 0, without_operator_ns = 0;
  uint64_t given_ns = 0;           // of kernels whose FLOP and bytes are the compiler's own
  LackingWork lacking;             // of operators whose work is not known
  uint64_t early = 0;              // kernels and copies that begin before the call that launches them
  uint64_t early_ns = 0;           // by how much, the most
  std::vector<uint64_t> steps_ns;  // of each step
};

// Adds the launches of a window, and the counters of a recording that has them, until no further key fits
// (RunBuilder::fits).
void AddCosts(const TorchRecording& recording, const TorchWindow& window, const CallTree& tree,
              const CostedProgram& program, CostedTimes* times, RunBuilder* builder);

struct TimedSteps {
  std::vector<TimedStep> steps;  // at most kMostTimedSteps; empty where nothing says what a step is
  ShownOfSteps shown;
};

TimedSteps TimeSteps(const TorchRecording& recording, const RecordingOutline& outline);

// Why a recording without anything of a GPU's is of no use.
std::string WhyNothing(const TorchRecording& recording);

// `tree` is that of the last window, with the counts of all of them; `joined` is null where there is no execution
// trace.
std::vector<trace::Diagnostic> SayOf(const TorchRecording& recording, const CallTree& tree, const CostedTimes& times,
                                     const JoinedCalls* joined);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_STAGES_H_
