// File: current_node.h
//
// Asks torch which autograd node runs on the calling thread. There are three ways:
//
//   kShared, kIntrusive   torch::autograd::get_current_node (torch 2.0+) returns a counted reference of either kind
//   kBorrowed             before it, torch::autograd::Node::assign_parent hands the running node to a new one's
//                         metadata, for anomaly mode. We call it on a node of our own, with metadata of our own.
//
// A release of torch 2 is never asked in the last way (symbols.cc): its assign_parent may do what we do not know of.
// Those before it are frozen; in 1.13 the function reads one word of the node and makes one virtual call.
#ifndef RFINJECT_INJECTOR_TORCH_CURRENT_NODE_H_
#define RFINJECT_INJECTOR_TORCH_CURRENT_NODE_H_

#include <cstdint>
#include <memory>
#include <new>

#include "injector/torch/abi.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

struct NodeAccess {
  NodeLayout::Reference reference = NodeLayout::Reference::kNone;
  abi::NodeReturn (*current_node)() = nullptr;
  void (*assign_parent)(void* node) = nullptr;
};

// Finds out how this torch answers, by asking while no node runs. Returns kNone when it has neither function, or when
// the answer is not understood.
NodeLayout::Reference FindNodeReference(const TorchSymbols& symbols) noexcept;

// Returns the node that torch would give as parent to one that is made now on this thread; 0: none runs.
uintptr_t AskParent(void (*assign_parent)(void* node)) noexcept;

// The running node, and a reference to it where torch gives one. The engine holds at least two while the node runs
// (its task's and the thread-local one), so giving ours back never ends a node's life, and, for intrusive ones, never
// takes the count to the 1 at which torch hands ownership to a Python wrapper.
class NodeReference {
 public:
  // `access.reference` is not kNone.
  explicit NodeReference(const NodeAccess& access) : reference_(access.reference) {
    if (reference_ == NodeLayout::Reference::kBorrowed) {
      words_[0] = AskParent(access.assign_parent);
    } else {
      new (words_) abi::NodeReturn(access.current_node());
    }
  }
  ~NodeReference() {
    if (words_[0] == 0) return;
    if (reference_ == NodeLayout::Reference::kShared) {
      std::launder(reinterpret_cast<std::shared_ptr<void>*>(words_))->~shared_ptr();
    } else if (reference_ == NodeLayout::Reference::kIntrusive) {
      // c10::intrusive_ptr_target: the virtual table, then the counts, the strong one in the low half.
      auto* counts = reinterpret_cast<uint64_t*>(words_[0] + 8);
      __atomic_fetch_sub(counts, 1, __ATOMIC_ACQ_REL);
    }
  }
  NodeReference(const NodeReference&) = delete;
  NodeReference& operator=(const NodeReference&) = delete;

  uintptr_t node() const { return words_[0]; }

 private:
  alignas(abi::NodeReturn) uintptr_t words_[2];
  NodeLayout::Reference reference_;
};
static_assert(sizeof(std::shared_ptr<void>) == sizeof(abi::NodeReturn));

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_CURRENT_NODE_H_
