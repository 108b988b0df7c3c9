// File: autograd.h
//
// Knows where the calling thread is: in a module's forward, in an autograd node, in an optimizer's step. Three kinds
// of frames can be open on a thread at once, and the innermost decides:
//
//   a node that was not yet running when the module or scope began     backward, the layer that created the node
//   a module                                                           forward; recompute if a node runs around it
//   a user scope (optimizer, data loader)                              its phase, and the module's layer if in one
//
// Which is innermost follows from what each frame noted at its beginning: modules and scopes note the running node,
// scopes note how many modules the thread had entered.
//
// Either torch is asked for the running node (current_node.h), or RecordFunction's BACKWARD scope tells it. A node
// with no layer (created outside of every module, as by a functional loss) gives phase backward, layer 0.
#ifndef RFINJECT_INJECTOR_TORCH_AUTOGRAD_H_
#define RFINJECT_INJECTOR_TORCH_AUTOGRAD_H_

#include <cstdint>

#include "collector/recorder.h"
#include "collector/site.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"
#include "injector/training.h"

namespace rfinject {

enum class NodeMeans : uint8_t {
  kNone,     // no backward attribution
  kCurrent,  // torch is asked
  kScope,    // BeginNode and EndNode are called by a BACKWARD callback
};

// Must be called once for each binding, before the site function is published and before any callback runs. `names`
// says that the names of node classes may be read from virtual tables.
void InitAutograd(const TorchSymbols& symbols, const NodeLayout& layout, NodeMeans means, bool names,
                  Recorder& recorder) noexcept;

// The SiteFunction (collector/site.h), and the same as a value.
void ReadSiteOfThread(Site* site) noexcept;
Site SiteOfThread() noexcept;

// The function for SequenceFunctions::running_node.
uint64_t RunningNode() noexcept;

// Tell that a BACKWARD scope begins or ends on this thread. `record` identifies it. `sequence` is UINT64_MAX where
// the node has none (AccumulateGrad), and kUnknownSequence when only the name is known. `name` is Intern()ed.
inline constexpr uint64_t kUnknownSequence = UINT64_MAX - 1;
void BeginNode(const void* record, uint64_t sequence, uint64_t forward_thread, uint32_t name) noexcept;
void EndNode(const void* record) noexcept;

// Tells that a scope, not kOther, begins on this thread; `record` identifies it until it ends. Returns false if
// a scope of its phase is open around it, or if it was told of before.
bool BeginScope(const void* record, UserScope scope) noexcept;
// Tells that a scope ends, and ends the scopes inside it that are still open. Returns the scope if none of its phase
// is open around it on this thread, and kOther otherwise or when `record` is not open here.
UserScope EndScope(const void* record) noexcept;

// The number of the autograd node that ran on this thread when SiteOfThread was called last, and the thread that it
// was born on; `sequence` is UINT64_MAX where none ran or it has no number. For the operator observer.
struct NodeNumber {
  uint64_t thread = 0, sequence = UINT64_MAX;
  uint64_t pass = 0;  // tells the backward passes of the calling thread apart
};
NodeNumber NodeOfThread() noexcept;

// Returns the node that the backward work of this thread is attributed to. It differs from NodeOfThread in an
// AccumulateGrad, which has no number: its work is attributed to the node that ran before it.
NodeNumber OwnerNodeOfThread() noexcept;

// Sets the operator that runs on this thread, an Intern()ed name, and returns the one before. For the operator
// observer.
uint32_t ExchangeOperator(uint32_t op) noexcept;

// Tells that an operator has ended: the autograd node that it made belongs to the layer in which it ran. For the
// operator observer; launches come after the birth of their operator's node and need no such call.
void NoteOperatorEnd() noexcept;

// Returns how many autograd nodes, since the last call, were so old that the ring of their thread had forgotten them.
uint64_t TakeForgottenNodes() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_AUTOGRAD_H_
