// File: call_tree.h
//
// Puts the spans of a recording into one another, and the GPU's work into them: which operator a kernel belongs to,
// in which layer, phase and step it was launched.
#ifndef RFINJECT_CLI_IMPORT_TORCH_CALL_TREE_H_
#define RFINJECT_CLI_IMPORT_TORCH_CALL_TREE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/import/torch/recording.h"
#include "cli/profile/profile.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

inline constexpr uint32_t kNoSpan = UINT32_MAX;

// Where a span stands.
struct SpanPlace {
  uint32_t parent = kNoSpan;    // the innermost span around it, of its thread
  uint32_t op = kNoSpan;        // itself or the innermost operator around it
  uint32_t cost = kNoSpan;      // the operator whose kernels these are: the outermost around `op` that the table of
                                // operators has as one kernel, else `op`
  uint32_t backward = kNoSpan;  // the autograd node that runs it
  uint32_t layer = 0;           // in CallTree::layers
  Phase phase = Phase::kOther;
};

// A layer, by the names that the recording has: "ViTEncoder_0.ViTLayer_3" inside of "ViTModel".
struct RecordedLayer {
  std::string model, path, class_name;
  uint32_t parent = 0;
};

struct StepRange {
  int64_t start = 0, end = 0;
};

// What the GPU's work belongs to.
struct ActivityPlace {
  uint32_t span = kNoSpan;  // the innermost span that launched it
  int64_t launched = 0;     // when it was; where no call is in the file, when it began
  uint32_t call = kNoSpan;  // in TorchRecording::calls
};

struct CallTree {
  std::vector<SpanPlace> spans;        // one each of TorchRecording::spans
  std::vector<uint32_t> order;         // of spans: by thread, start, and the outer one first
  std::vector<ActivityPlace> places;   // one each of TorchRecording::activities
  std::vector<ActivityPlace> counted;  // one each of TorchRecording::counters; empty where they could not be joined
  std::vector<RecordedLayer> layers = {{}};  // 0: none
  std::vector<StepRange> steps;              // in time, none overlapping
  uint32_t step_thread = 0;
  bool steps_marked = false;  // by ProfilerStep#N; else by the optimizer's steps, or there are none
  bool trains = false;        // something runs backward

  // How the work found its operator, and what did not (launches).
  uint64_t by_call = 0, by_external_id = 0, disagree = 0, without_launch = 0, of_graphs = 0;

  // What a trace of the same program named (names.h): operators by shapes and by their order alone, or modules; and
  // those that it did not.
  const Run* named = nullptr;  // of that trace
  uint64_t named_by_shape = 0, named_by_order = 0, named_modules = 0, not_named = 0;

  // The step in which something was launched; steps.size() where it was in none.
  size_t StepAt(int64_t time) const;
};

// Whether a call of this name launches a CUDA graph (or HIP's).
bool IsGraphLaunch(std::string_view name);

// The tree as the recording has it: what runs backward has no layer yet.
CallTree MakeCallTree(const TorchRecording& recording);

// Gives the layers the names of `names`, a trace of the same program that has them (null: none is known), and then
// what runs backward its layers. Operands that another file knows must be in the recording by then, for names go by
// shapes.
void PlaceLayers(const TorchRecording& recording, const Profile* names, CallTree* tree);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_CALL_TREE_H_
