// File: names.h
//
// Qualified names of layers, which no recording has, from a trace of the same program (`rfinject --estimate`): that
// trace says which layer calls which operators of which shapes, and in what order layers are first called.
#ifndef RFINJECT_CLI_IMPORT_TORCH_NAMES_H_
#define RFINJECT_CLI_IMPORT_TORCH_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/recording.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// The run of `names` that says most about layers: one that trains where `trains`, if there is one. Null where none
// has layers.
const Run* RunWithNames(const Profile& names, bool trains);

// Gives layers of `named` to the forward operators of `tree` whose work is known (CallTree::places), or, where the
// recording has modules of its own, names those. Both are told by order: the k-th call of a kind of operator in a
// step is the k-th that the trace has, by shapes where both have them, else by the operator's name. A kind that is
// called more often, or less, than the trace has it is left alone. CallTree counts what was aligned and what was not.
void AlignNames(const TorchRecording& recording, const TorchWindow& window, const Run& named, CallTree* tree);

// "batch_norm" for cudnn_batch_norm and native_batch_norm: what an operator is called whatever library and version of
// torch ran it.
std::string OperatorFamily(std::string_view name);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_NAMES_H_
