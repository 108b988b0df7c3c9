#include "injector/torch/current_node.h"

namespace rfinject {
namespace {

constexpr uintptr_t kSentinel = 0x5ca1ab1e;

// Stands for a torch::autograd::AnomalyMetadata, an object with virtual functions. assign_parent is the last of its
// five. All five entries hold this function, so that it does not matter which entry is called.
struct Metadata;
// `parent` is a reference to a std::shared_ptr<Node>: its first word is the node.
using AssignParent = void (*)(Metadata* self, const uintptr_t* parent);

__attribute__((tls_model("initial-exec"))) constinit thread_local uintptr_t t_parent = 0;
void Receive(Metadata*, const uintptr_t* parent) { t_parent = *parent; }

constexpr AssignParent kFunctions[] = {Receive, Receive, Receive, Receive, Receive, Receive, Receive, Receive};
struct Metadata {
  const AssignParent* functions = kFunctions;
};
constinit Metadata g_metadata;

// Stands for a torch::autograd::Node. Every word of it points to our metadata, so that assign_parent finds them
// wherever it looks.
struct Node {
  Metadata* words[64];
};
constexpr Node MakeNode() {
  Node node{};
  for (Metadata*& word : node.words) word = &g_metadata;
  return node;
}
constinit Node g_node = MakeNode();

// While no node runs, a shared pointer is two null words; an intrusive one is one null word, and the second word
// keeps what was there.
NodeLayout::Reference KindOfCurrentNode(abi::NodeReturn (*current_node)()) {
  alignas(abi::NodeReturn) uintptr_t words[2] = {kSentinel, kSentinel};
  // This keeps the compiler from assuming what the call writes.
  asm volatile("" : : "r"(words) : "memory");
  new (words) abi::NodeReturn(current_node());
  asm volatile("" : : "r"(words) : "memory");
  if (words[0] != 0) return NodeLayout::Reference::kNone;  // a node runs, so this cannot be found out now
  if (words[1] == 0) return NodeLayout::Reference::kShared;
  return words[1] == kSentinel ? NodeLayout::Reference::kIntrusive : NodeLayout::Reference::kNone;
}

}  // namespace

uintptr_t AskParent(void (*assign_parent)(void* node)) noexcept {
  t_parent = kSentinel;
  assign_parent(&g_node);
  return t_parent;
}

NodeLayout::Reference FindNodeReference(const TorchSymbols& symbols) noexcept {
  if (symbols.current_node != nullptr) return KindOfCurrentNode(symbols.current_node);
  const bool borrowed = symbols.assign_parent != nullptr && AskParent(symbols.assign_parent) == 0;
  return borrowed ? NodeLayout::Reference::kBorrowed : NodeLayout::Reference::kNone;
}

}  // namespace rfinject
