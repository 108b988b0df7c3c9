// File: call_tree.h
//
// Puts the spans of a recording into one another, and the GPU's work into them: which operator a kernel belongs to,
// in which layer, phase and step it was launched. A long recording comes in windows (windows.h), one tree after the
// other; what they have in common goes on.
#ifndef RFINJECT_CLI_IMPORT_TORCH_CALL_TREE_H_
#define RFINJECT_CLI_IMPORT_TORCH_CALL_TREE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/import/torch/outline.h"
#include "cli/import/torch/recording.h"
#include "cli/profile/profile.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

inline constexpr uint32_t kNoSpan = UINT32_MAX;

// Where a span stands.
struct SpanPlace {
  uint32_t parent = kNoSpan;      // the innermost span around it, of its thread
  uint32_t op = kNoSpan;          // itself or the innermost operator around it
  uint32_t cost = kNoSpan;        // the operator whose kernels these are: the innermost around `op` that the table of
                                  // operators has as one kernel and whose operands are known, else `op`
  uint32_t outer_cost = kNoSpan;  // of an operator that took the place of `cost` around it: that one
  uint32_t backward = kNoSpan;    // the autograd node that runs it
  uint32_t layer = 0;             // in CallTree::layers
  Phase phase = Phase::kOther;
};

// A layer, by the names that the recording has: "ViTEncoder_0.ViTLayer_3" inside of "ViTModel".
struct RecordedLayer {
  std::string model, path, class_name;
  uint32_t parent = 0;
};

// What the GPU's work belongs to.
struct ActivityPlace {
  uint32_t span = kNoSpan;  // the innermost span that launched it
  int64_t launched = 0;     // when it was; where no call is in the file, when it began
  uint32_t call = kNoSpan;  // in TorchWindow::calls
};

struct CallTree {
  RecordingOutline outline;

  // Of the window.
  std::vector<SpanPlace> spans;        // one each of TorchWindow::spans
  std::vector<uint32_t> order;         // of spans: by thread, start, and the outer one first
  std::vector<ActivityPlace> places;   // one each of TorchWindow::activities
  std::vector<ActivityPlace> counted;  // one each of TorchRecording::counters; empty where they could not be joined

  // Of all windows so far.
  std::vector<RecordedLayer> layers = {{}};                             // 0: none
  std::vector<uint32_t> depths = {0};                                   // of layers
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers_of_layers;  // by what is around it, and its name
  // Where forward operators with a sequence number stand: the number, when they began, and their layers; ascending.
  std::vector<std::tuple<int64_t, int64_t, uint32_t>> forwards;

  // Launches whose two ways to an operator disagree, that are not in the file, and that are of CUDA graphs.
  uint64_t disagree = 0, without_launch = 0, of_graphs = 0;

  // What a trace of the same program named (names.h): operators by shapes and by their order alone, or modules; and
  // those that it did not.
  const Run* named = nullptr;  // of that trace
  uint64_t named_by_shape = 0, named_by_order = 0, named_modules = 0, not_named = 0;
  // How often the recording repeats a step of that trace, where each kind of operator says the same; else 0.
  uint64_t named_repeats = 0;

  bool trains() const { return outline.trains; }
  const std::vector<StepRange>& steps() const { return outline.steps; }
  // Steps, or else passes of a model that does not train, as many as the trace of names tells; at least 1.
  uint64_t step_count() const {
    const uint64_t passes = outline.trains ? 0 : named_repeats;
    return std::max<uint64_t>(steps().empty() ? passes : steps().size(), 1);
  }
  size_t StepAt(int64_t time) const { return outline.StepAt(time); }
};

// Whether sums are kept by step: of more than a trace has they would be a sample of the file's, which has all.
inline bool KeepsSteps(const CallTree& tree) {
  return tree.steps().size() > 1 && tree.steps().size() <= kMaxSampledStepsKept;
}

// The tree of a recording that is unpacked as a whole: what runs backward has no layer yet.
CallTree MakeCallTree(const TorchRecording& recording, const TorchWindow& window);

// Puts a window in the place of the one before it.
void MakeTreeOfWindow(const TorchRecording& recording, const TorchWindow& window, CallTree* tree);

// Gives the layers the names of `names`, a trace of the same program that has them (null: none is known), and then
// what runs backward its layers. Operands that another file knows must be in the recording by then, for names go by
// shapes.
void PlaceLayers(const TorchRecording& recording, const TorchWindow& window, const Profile* names, CallTree* tree);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_CALL_TREE_H_
