#include "injector/torch/autograd.h"

#include <algorithm>
#include <atomic>

#include "collector/thread_block.h"
#include "injector/layer_stack.h"
#include "injector/safe_read.h"
#include "injector/torch/current_node.h"
#include "injector/torch/native_observer.h"
#include "injector/training.h"

namespace rfinject {
namespace {

constexpr size_t kMaxScopes = 4;  // deeper ones are not kept: their work has the phase of the last one that was kept
constexpr size_t kMaxNodes = 8;   // BACKWARD scopes nest where a node runs a backward pass of its own
constexpr uint64_t kNoSequence = UINT64_MAX;

struct Running {
  uint64_t id = 0;  // 0: no node runs
  uint64_t sequence = kUnknownSequence;
  uint64_t thread = 0;
  uint32_t name = 0;
};

struct Scope {
  const void* record;
  uint64_t enters;  // EnterCount() when it began
  uint64_t node;    // RunningNode() when it began
  UserScope kind;
};

struct NodeScope {
  const void* record;
  const void* task;  // the engine's task when it began
  Running running;
};

// This is kept small: the library's thread-local memory comes out of the loader's static reserve.
struct Thread {
  // The node that was last asked about, and the layer that it was created in.
  uint64_t owner_sequence = kUnknownSequence;
  uint64_t owner_thread = 0;
  uint32_t owner = 0;
  uint32_t op = 0;
  NodeNumber node;  // NodeOfThread
  // at::sequence_number::peek when this thread was last seen in a node, or between nodes after one.
  uint64_t peeked = 0;
  const void* task = nullptr;  // the engine's, when this thread was last seen in a node
  bool interval_open = false;
  uint16_t binding = 0;  // g_binding when `scopes` was written
  uint32_t scope_depth = 0;
  Scope scopes[kMaxScopes] = {};
};
__attribute__((tls_model("initial-exec"))) constinit thread_local Thread t_thread;

// BACKWARD scopes open on a thread; only threads that run nodes have one.
struct NodeScopes {
  uint32_t depth = 0;
  NodeScope open[kMaxNodes] = {};
  NodeScope last = {};  // the one that ended last
};
ThreadBlock<NodeScopes> g_node_scopes;
__attribute__((tls_model("initial-exec"))) constinit thread_local NodeScopes* t_node_scopes = nullptr;

Phase PhaseOf(UserScope scope) { return scope == UserScope::kLoader ? Phase::kData : Phase::kOptimizer; }

// Set once by InitAutograd before g_means is released.
struct Globals {
  NodeAccess access;
  const void* (*engine_task)() = nullptr;
  bool (*grad_enabled)() = nullptr;
  uint64_t (*peek)() = nullptr;
  NodeLayout layout;
  bool names = false;
  uint32_t accumulate = 0;  // the name of the class of nodes that keep gradients; 0: not to be told
  Recorder* recorder = nullptr;
};
Globals g;
std::atomic<NodeMeans> g_means{NodeMeans::kNone};
std::atomic<bool> g_node_checked{false};  // a node that really ran has been looked at
std::atomic<uint64_t> g_forgotten{0};
// How often InitAutograd was called. The end of a scope that was open when the hooks were given back is not seen.
std::atomic<uint16_t> g_binding{0};
std::atomic<bool> g_evaluating{false};  // whether the root that was called last, on any thread, is being validated

// Class names of nodes, by virtual table. Nothing is removed. A thread takes a slot by writing the key; the name
// follows.
struct ClassName {
  std::atomic<uintptr_t> table{0};
  std::atomic<uint32_t> name{0};
};
constexpr size_t kClassNames = 2048;  // torch has about 500 node classes
ClassName g_class_names[kClassNames];

// The first node of each class takes the recorder's mutex for a moment; every later one is a look-up.
uint32_t NameOf(uintptr_t node) {
  const auto table = Load<uintptr_t>(node);
  size_t slot = (table >> 4) * 0x9e3779b97f4a7c15u >> 53;
  for (size_t probe = 0; probe < 16; ++probe, ++slot) {
    ClassName& entry = g_class_names[slot % kClassNames];
    uintptr_t key = entry.table.load(std::memory_order_acquire);
    if (key == 0 && !entry.table.compare_exchange_strong(key, table, std::memory_order_acq_rel)) {
      // Another thread took the slot; `key` is now that thread's.
    } else if (key == 0) {
      key = table;
    }
    if (key != table) continue;
    uint32_t name = entry.name.load(std::memory_order_acquire);
    if (name == 0) {
      char text[128];
      if (!SafeClassName(node, text, sizeof(text))) return 0;
      name = g.recorder->Intern(text);
      entry.name.store(name, std::memory_order_release);
    }
    return name;
  }
  return 0;
}

// The layout was learned from nodes that did not run. The first node that runs is checked before the layout is
// trusted.
bool PlausibleNode(uintptr_t node) {
  const Snapshot object = TakeSnapshot(node, 128);
  if (object.size < static_cast<size_t>(g.layout.thread) + 8) return false;
  const uint64_t sequence = object.Word(g.layout.sequence);
  const uint64_t thread = object.Word(g.layout.thread);
  constexpr uint64_t kMost = uint64_t{1} << 48;
  char name[128];
  return (sequence == kNoSequence || sequence < kMost) && thread != 0 && thread < kMost &&
         SafeClassName(node, name, sizeof(name));
}

Running AskCurrentNode() {
  Running running;
  const NodeReference reference(g.access);
  const uintptr_t node = reference.node();
  if (node == 0) return running;
  if (!g_node_checked.load(std::memory_order_acquire)) [[unlikely]] {
    if (!PlausibleNode(node)) {
      g_means.store(NodeMeans::kNone, std::memory_order_release);
      g.recorder->ReportDiagnostic(
          Severity::kWarning, "node-layout",
          "the first autograd node that ran does not look like one; backward work has no layer");
      return running;
    }
    g_node_checked.store(true, std::memory_order_release);
  }
  running.id = node;
  running.sequence = Load<uint64_t>(node + g.layout.sequence);
  running.thread = Load<uint64_t>(node + g.layout.thread);
  running.name = g.names ? NameOf(node) : 0;
  return running;
}

Running ToldNode() {
  const NodeScopes* scopes = t_node_scopes;
  if (scopes == nullptr) return {};
  const NodeScope* open =
      scopes->depth != 0 ? &scopes->open[std::min<size_t>(scopes->depth, kMaxNodes) - 1] : nullptr;
  // Gradients that meet at a node are summed after the node that brought the last of them has returned, still in the
  // loop of the engine's same task. That loop may itself run inside of another task's node.
  const void* task = g.engine_task != nullptr ? g.engine_task() : nullptr;
  if (task != nullptr && task == scopes->last.task && (open == nullptr || open->task != task)) {
    return scopes->last.running;
  }
  return open != nullptr ? open->running : Running{};
}

Running AskNode() {
  switch (g_means.load(std::memory_order_acquire)) {
    case NodeMeans::kCurrent:
      return AskCurrentNode();
    case NodeMeans::kScope:
      return ToldNode();
    case NodeMeans::kNone:
      break;
  }
  return {};
}

// AccumulateGrad has no number of its own: it runs right after the node that made the gradient. Where that node is
// all of a compiled module's backward, the parameter says which part of it.
uint32_t OwnerOfNode(Thread& thread, const Running& node) {
  if (node.sequence == kNoSequence) {
    if (node.name == 0 || node.name != g.accumulate) return thread.owner;
    return LayerOfGradient(thread.owner, Load<uintptr_t>(node.id + g.layout.parameter));
  }
  if (node.sequence == kUnknownSequence) return 0;
  if (node.sequence != thread.owner_sequence || node.thread != thread.owner_thread) {
    bool forgotten = false;
    thread.owner = OwnerOf(node.thread, node.sequence, &forgotten);
    thread.owner_sequence = node.sequence;
    thread.owner_thread = node.thread;
    if (forgotten) g_forgotten.fetch_add(1, std::memory_order_relaxed);
  }
  return thread.owner;
}

void ForgetScopesOfFormerBinding(Thread& thread) {
  const uint16_t binding = g_binding.load(std::memory_order_relaxed);
  if (thread.binding == binding) return;
  thread.binding = binding;
  thread.scope_depth = 0;
}

// Double backward: nodes created while a node runs (create_graph=True) belong to that node's layer. This runs only at
// launches and operators, so an interval begins at the value that the thread's counter had at the previous call: an
// operator's node is created before its kernel is launched.
void FollowIntervals(Thread& thread, const Running& node, uint32_t owner, const LayerTop& top, bool top_is_inside) {
  if (node.id != 0 && !top_is_inside) {
    if (g.grad_enabled == nullptr || !g.grad_enabled()) {
      thread.peeked = g.peek();
      return;
    }
    if (LayerOfNextNode() != owner) MarkNodeInterval(owner, thread.interval_open ? thread.peeked : kFromNow);
    thread.interval_open = true;
    thread.peeked = g.peek();
  } else if (thread.interval_open && node.id == 0) {
    if (LayerOfNextNode() != top.layer) MarkNodeInterval(top.layer, thread.peeked);
    thread.interval_open = false;
  }
}

}  // namespace

void InitAutograd(const TorchSymbols& symbols, const NodeLayout& layout, NodeMeans means, bool names,
                  Recorder& recorder) noexcept {
  g_binding.fetch_add(1, std::memory_order_relaxed);
  ForgetScopesOfFormerBinding(t_thread);
  g.access = {
      .reference = layout.reference, .current_node = symbols.current_node, .assign_parent = symbols.assign_parent};
  g.engine_task = symbols.engine_task;
  g.grad_enabled = symbols.grad_enabled;
  g.peek = symbols.peek;
  g.layout = layout;
  g.names = names;
  g.accumulate =
      names && means == NodeMeans::kCurrent && layout.parameter != 0 ? recorder.Intern("AccumulateGrad") : 0;
  g.recorder = &recorder;
  g_node_checked.store(false, std::memory_order_relaxed);
  g_means.store(means, std::memory_order_release);
}

uint64_t RunningNode() noexcept {
  switch (g_means.load(std::memory_order_acquire)) {
    case NodeMeans::kCurrent:
      return NodeReference(g.access).node();
    case NodeMeans::kScope:
      return ToldNode().id;
    case NodeMeans::kNone:
      break;
  }
  return 0;
}

void SetEvaluating(bool evaluating) noexcept { g_evaluating.store(evaluating, std::memory_order_relaxed); }

void ReadSiteOfThread(Site* site) noexcept {
  Thread& thread = t_thread;
  *site = {};
  site->op = thread.op;
  const Running node = AskNode();
  const LayerTop top = CurrentLayer();
  const Scope* scope = thread.scope_depth != 0 ? &thread.scopes[thread.scope_depth - 1] : nullptr;

  // A module is inside the scope if the thread had entered fewer modules when the scope began.
  const bool module_in_scope = top.depth != 0 && (scope == nullptr || top.entered > scope->enters);
  const bool scope_decides = scope != nullptr && !module_in_scope && scope->node == node.id;
  const bool module_decides = module_in_scope && top.node == node.id;
  const bool inside_node = scope_decides || module_decides;

  uint32_t owner = 0;
  thread.node.sequence = kNoSequence;
  if (node.id != 0) {
    if (node.sequence != kUnknownSequence) {
      thread.node.thread = node.thread;
      thread.node.sequence = node.sequence;
    }
    owner = OwnerOfNode(thread, node);
    site->node = node.name;
    const void* task = g.engine_task != nullptr ? g.engine_task() : nullptr;
    if (task != thread.task) {
      thread.task = task;
      ++thread.node.pass;
      RequestSlotRepair();  // a backward pass has begun
    }
  } else {
    thread.task = nullptr;
  }
  if (node.id != 0 || thread.interval_open) FollowIntervals(thread, node, owner, top, inside_node);

  if (scope_decides) {
    site->phase = PhaseOf(scope->kind);
    site->layer = top.layer;
  } else if (module_decides) {
    site->phase = node.id != 0                                   ? Phase::kRecompute
                  : g_evaluating.load(std::memory_order_relaxed) ? Phase::kEval
                                                                 : Phase::kForward;
    site->layer = top.layer;
  } else if (node.id != 0) {
    site->phase = Phase::kBackward;
    site->layer = owner;
  } else if (top.depth == 0) {
    // No frame of Python's is open. A C++ program has its layers on the native stack; other programs have none there.
    const NativePlace place = CurrentNativePlace();
    site->phase = place.phase;
    site->layer = place.layer;
    // Beside the model that is validated: its loss by a function, a metric.
    if (site->phase == Phase::kOther && g_evaluating.load(std::memory_order_relaxed) && g.grad_enabled != nullptr &&
        !g.grad_enabled()) {
      site->phase = Phase::kEval;
    }
  }
}

Site SiteOfThread() noexcept {
  Site site;
  ReadSiteOfThread(&site);
  return site;
}

void BeginNode(const void* record, uint64_t sequence, uint64_t forward_thread, uint32_t name) noexcept {
  NodeScopes* scopes = g_node_scopes.Get(&t_node_scopes);
  if (scopes == nullptr) return;
  if (scopes->depth++ >= kMaxNodes) return;
  scopes->open[scopes->depth - 1] = {
      .record = record,
      .task = g.engine_task != nullptr ? g.engine_task() : nullptr,
      .running = {
          .id = reinterpret_cast<uint64_t>(record), .sequence = sequence, .thread = forward_thread, .name = name}};
  // This is called even if nothing asks for the site while the node runs: the AccumulateGrad after it needs its
  // layer, and the nodes born in it need an owner.
  SiteOfThread();
}

void EndNode(const void* record) noexcept {
  NodeScopes* scopes = t_node_scopes;
  if (scopes == nullptr || scopes->depth == 0) return;
  if (scopes->depth > kMaxNodes) {
    --scopes->depth;
    return;
  }
  const NodeScope& innermost = scopes->open[scopes->depth - 1];
  if (innermost.record != record) return;
  if (t_thread.interval_open) t_thread.peeked = g.peek();
  scopes->last = innermost;
  --scopes->depth;
}

bool BeginScope(const void* record, UserScope scope) noexcept {
  Thread& thread = t_thread;
  ForgetScopesOfFormerBinding(thread);
  if (thread.scope_depth == kMaxScopes) return false;
  bool outermost = true;
  for (size_t i = 0; i < thread.scope_depth; ++i) {
    if (thread.scopes[i].record == record) return false;  // told twice
    outermost = outermost && PhaseOf(thread.scopes[i].kind) != PhaseOf(scope);
  }
  thread.scopes[thread.scope_depth++] = {
      .record = record, .enters = EnterCount(), .node = RunningNode(), .kind = scope};
  return outermost;
}

UserScope EndScope(const void* record) noexcept {
  Thread& thread = t_thread;
  ForgetScopesOfFormerBinding(thread);
  // A scope may be ended by another thread than the one that began it; then it is not found on this thread.
  size_t depth = thread.scope_depth;
  while (depth != 0 && thread.scopes[depth - 1].record != record) --depth;
  if (depth == 0) return UserScope::kOther;
  const UserScope ended = thread.scopes[depth - 1].kind;
  thread.scope_depth = static_cast<uint32_t>(depth - 1);
  for (size_t i = 0; i + 1 < depth; ++i) {
    if (PhaseOf(thread.scopes[i].kind) == PhaseOf(ended)) return UserScope::kOther;
  }
  return ended;
}

NodeNumber NodeOfThread() noexcept { return t_thread.node; }

NodeNumber OwnerNodeOfThread() noexcept {
  const Thread& thread = t_thread;
  return {.thread = thread.owner_thread,
          .sequence = thread.owner_sequence == kUnknownSequence ? kNoSequence : thread.owner_sequence,
          .pass = thread.node.pass};
}

uint32_t ExchangeOperator(uint32_t op) noexcept {
  const uint32_t before = t_thread.op;
  t_thread.op = op;
  return before;
}

void NoteOperatorEnd() noexcept {
  if (t_thread.interval_open) t_thread.peeked = g.peek();
}

uint64_t TakeForgottenNodes() noexcept { return g_forgotten.exchange(0, std::memory_order_relaxed); }

}  // namespace rfinject
