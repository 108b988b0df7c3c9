// File: layer_stack.h
//
// Knows which layer each thread is in, and in which layer an autograd node was born.
//
// A thread's stack holds the layers whose module call is running on it. Each Enter and Leave also appends
// (next autograd sequence number, innermost layer) to a ring of the thread that other threads may read: an autograd
// node belongs to the last entry whose number is not above the node's own, on the thread that the node names.
// (Rule and proof: docs/method/ATTRIBUTION.md.)
//
// Enter, Leave, Current and OwnerOf take no lock and allocate nothing after a thread's first Enter.
#ifndef RFINJECT_INJECTOR_LAYER_STACK_H_
#define RFINJECT_INJECTOR_LAYER_STACK_H_

#include <cstddef>
#include <cstdint>

namespace rfinject {

// torch's at::sequence_number::peek and at::RecordFunction::currentThreadId, once they are bound; null before, and
// then nothing is appended to the rings.
struct SequenceFunctions {
  uint64_t (*peek)() = nullptr;
  uint64_t (*thread_id)() = nullptr;
  // A number that identifies the autograd node that runs on the calling thread, 0 when none does. May be null. Each
  // frame keeps what it returned at its Enter: a module was entered inside a node when the two agree.
  uint64_t (*running_node)() = nullptr;
};
void SetSequenceFunctions(const SequenceFunctions& functions) noexcept;

// Enters `layer` on the calling thread. Beyond kMaxDepth nested calls the layer is counted but not kept.
inline constexpr size_t kMaxDepth = 256;
void EnterLayer(uint32_t layer) noexcept;
void LeaveLayer() noexcept;

struct LayerTop {
  uint32_t layer = 0;  // 0: the stack is empty
  uint32_t depth = 0;
  uint64_t entered = 0;  // how many Enters this thread had seen when the innermost layer was entered
  uint64_t node = 0;     // SequenceFunctions::running_node at that moment
};
// Returns the innermost layer of the calling thread.
LayerTop CurrentLayer() noexcept;
// How many Enters the calling thread has seen.
uint64_t EnterCount() noexcept;

// How many entries a thread's ring holds; this is 400 forward passes of ResNet-18.
inline constexpr size_t kRingEntries = size_t{1} << 16;

// Returns the layer that was innermost on torch thread `thread_id` when its autograd sequence number was `sequence`.
// Returns 0 when the thread was in none, or when the ring has overwritten the entry (`*forgotten` is then set).
uint32_t OwnerOf(uint64_t thread_id, uint64_t sequence, bool* forgotten) noexcept;

// Like EnterLayer and LeaveLayer, for nodes born while a backward node of `layer` runs (double backward): appends to
// the ring without touching the stack. The interval begins with the node numbered `from`, but not before the last
// entry; kFromNow: with the next node.
inline constexpr uint64_t kFromNow = UINT64_MAX;
void MarkNodeInterval(uint32_t layer, uint64_t from = kFromNow) noexcept;

// The layer that a node born now on the calling thread would belong to.
uint32_t LayerOfNextNode() noexcept;

// The number that the next autograd node born on the calling thread gets, and torch's number of the thread.
// NextNodeOfThread returns false where these are not known.
struct NextNode {
  uint64_t thread = 0, sequence = 0;
};
bool NextNodeOfThread(NextNode* next) noexcept;

// Called in a forked child: forgets the rings of threads that do not exist there.
void ResetLayerStackAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_LAYER_STACK_H_
