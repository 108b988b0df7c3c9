#include "collector/cupti/captured_graphs.h"

#include <algorithm>
#include <utility>

#include "collector/cupti/lock_waits.h"
#include "collector/hash.h"

namespace rfinject::cupti {
namespace {

// What the executable graph that this thread makes was cloned from so far; null while it makes none.
__thread std::vector<CapturedGraphs::Node>* t_clones = nullptr;

// What this thread has found out about executable graphs. A program launches few of them in turns.
struct Known {
  const void* executable;
  uint32_t generation;
  CapturedGraphs::Launch launch;
};
constexpr size_t kKnown = 16;  // a power of two
__thread Known t_known[kKnown] = {};

}  // namespace

// --- What is captured.

// May throw std::bad_alloc.
void CapturedGraphs::Append(const void* graph, const Node& node) {
  Graph& found = graph != nullptr ? graphs_[graph] : open_;
  if (nodes_ >= kMaxNodes) {
    reasons_.fetch_or(kNoRoom, std::memory_order_relaxed);
    found.refused |= kNoRoom;
    return;
  }
  found.nodes.push_back(node);
  ++nodes_;
  if (node.id != 0 && graph != nullptr) places_[node.id] = {graph, found.nodes.size() - 1};
}

void CapturedGraphs::BeginCapture() noexcept {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  if (captures_++ != 0) {
    mixed_ = true;
    return;
  }
  nodes_ -= open_.nodes.size();
  open_ = {};
  mixed_ = false;
}

void CapturedGraphs::EndCapture(const void* graph) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  if (captures_ > 0) --captures_;
  if (graph == nullptr) return;
  Graph& made = graphs_[graph];
  made.optimizer = made.optimizer || (!mixed_ && open_.optimizer);
  made.refused |= open_.refused;
  if (open_.nodes.empty()) return;
  // While two captures run, it is not known which of them a launch belongs to. Among nodes that CUPTI has numbered,
  // it is not known where one without a number stands.
  if (mixed_ || !made.nodes.empty()) {
    made.refused |= kNotSeen;
    return;
  }
  made.nodes = std::exchange(open_.nodes, {});
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::AddLaunch(const void* graph, const Node& node, Phase phase) noexcept try {
  if (phase == Phase::kOptimizer) optimizer_captured_.store(true, std::memory_order_relaxed);
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  Append(graph, node);
  if (phase == Phase::kOptimizer) (graph != nullptr ? graphs_[graph] : open_).optimizer = true;
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::AddGraphLaunch(const void* executable) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const auto at = executables_.find(executable);
  if (at == executables_.end() || at->second.contents == nullptr) {
    open_.refused |= kNotSeen;
    return;
  }
  for (Node node : at->second.contents->nodes) {
    node.id = 0;
    Append(nullptr, node);
  }
  open_.optimizer = open_.optimizer || at->second.launch.optimizer;
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::AddNode(const void* graph, uint64_t id, bool transfer) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  Append(graph, {.id = id, .key = LaunchKeys::kNoKey, .transfer = transfer});
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::RefuseGraph(const void* graph, Reason reason) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  graphs_[graph].refused |= reason;
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::AddClone(const void* graph, uint64_t id, uint64_t original) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const auto from = places_.find(original);
  if (from == places_.end()) return;  // no kernel, copy or memory set
  Node node = graphs_[from->second.graph].nodes[from->second.index];
  node.id = id;
  if (t_clones != nullptr) {
    t_clones->push_back(node);
    return;
  }
  // CUPTI may have told of its creation before.
  if (const auto known = places_.find(id); known != places_.end()) {
    graphs_[known->second.graph].nodes[known->second.index] = node;
  } else {
    Append(graph, node);
  }
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::DestroyGraph(const void* graph) noexcept {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const auto at = graphs_.find(graph);
  if (at == graphs_.end()) return;
  for (const Node& node : at->second.nodes) places_.erase(node.id);
  nodes_ -= at->second.nodes.size();
  graphs_.erase(at);
}

// --- What is executable.

void CapturedGraphs::BeginInstantiate() noexcept {
  if (t_clones == nullptr) t_clones = new (std::nothrow) std::vector<Node>;
}
bool CapturedGraphs::instantiating() noexcept { return t_clones != nullptr; }

void CapturedGraphs::EndInstantiate(const void* executable, const void* graph) noexcept try {
  const std::unique_ptr<std::vector<Node>> clones(std::exchange(t_clones, nullptr));
  if (executable == nullptr || !lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const Graph* from = FindGraph(graph);
  const bool by_id = clones != nullptr && !clones->empty() && from != nullptr && clones->size() >= from->nodes.size();
  Fill(executable, from, by_id ? std::move(*clones) : from != nullptr ? from->nodes : std::vector<Node>(), by_id);
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

// What was cloned into the executable graph before keeps its numbers, but CUPTI does not say which node is which now.
void CapturedGraphs::Update(const void* executable, const void* graph) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const Graph* from = FindGraph(graph);
  Fill(executable, from, from != nullptr ? from->nodes : std::vector<Node>(), false);
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

const CapturedGraphs::Graph* CapturedGraphs::FindGraph(const void* graph) const {
  const auto at = graphs_.find(graph);
  return at != graphs_.end() ? &at->second : nullptr;
}

void CapturedGraphs::Fill(const void* executable, const Graph* graph, std::vector<Node> nodes, bool by_id) {
  Executable& made = executables_[executable];
  Retire(&made);
  made = {};
  ForgetCaches();
  made.launch.is_new = true;
  if (graph == nullptr) return Refuse(&made, kNotSeen);
  made.launch.optimizer = graph->optimizer;
  if (graph->refused != 0) return Refuse(&made, graph->refused);
  if (nodes_ + nodes.size() > kMaxNodes) return Refuse(&made, kNoRoom);
  if (!by_id) {
    for (Node& node : nodes) node.id = 0;
  }
  nodes_ += nodes.size();
  made.members = MembersOf(nodes);
  made.contents = std::make_shared<Contents>();
  made.contents->nodes = std::move(nodes);
  made.contents->by_id = by_id;
  made.contents->settled = by_id;
}

// Adds up what is alike. Nodes without a key are the caller's.
std::vector<GraphMember> CapturedGraphs::MembersOf(const std::vector<Node>& nodes) {
  std::vector<GraphMember> members;
  std::unordered_map<LaunchIdentity, size_t, IdentityHash> place;
  for (const Node& node : nodes) {
    if (node.key == LaunchKeys::kNoKey) continue;
    const LaunchIdentity identity = keys_.Identity(node.key);
    const auto [at, added] = place.try_emplace(identity, members.size());
    if (added) {
      members.push_back({.identity = identity, .launches = 1});
    } else {
      ++members[at->second].launches;
    }
  }
  return members;
}

// What is refused is launched as a whole, so that its nodes need not be known.
void CapturedGraphs::Refuse(Executable* executable, uint32_t reason) {
  executable->refused |= reason;
  if (executable->contents != nullptr) nodes_ -= executable->contents->nodes.size();
  executable->contents = nullptr;
  executable->members = {};
}

// The contents stay until the step that may have launched them is read.
void CapturedGraphs::Retire(Executable* executable) {
  if (executable->launch.number != 0) {
    retired_.push_back(executable->launch.number);
    recorder_.ForgetGraph(executable->launch.number);
  } else if (executable->contents != nullptr) {
    nodes_ -= executable->contents->nodes.size();
  }
}

void CapturedGraphs::Change(const void* executable) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const auto at = executables_.find(executable);
  if (at == executables_.end()) return;
  Executable changed;
  changed.refused = kChanged;
  changed.launch.is_new = true;
  changed.launch.optimizer = at->second.launch.optimizer;
  Retire(&at->second);
  at->second = std::move(changed);
  ForgetCaches();
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::DestroyExecutable(const void* executable) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return;
  const HeldLock held(lock_);
  const auto at = executables_.find(executable);
  if (at == executables_.end()) return;
  Retire(&at->second);
  executables_.erase(at);
  ForgetCaches();
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

// --- Launches.

CapturedGraphs::Launch CapturedGraphs::Find(const void* executable) noexcept {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  Known& known = t_known[HashMix(0x452821E638D01377u, reinterpret_cast<uintptr_t>(executable)) & (kKnown - 1)];
  if (known.executable == executable && known.generation == generation) return known.launch;
  if (!lock_.LockFor(kLaunchLockWaitNs)) return {};
  const HeldLock held(lock_);
  const auto at = executables_.find(executable);
  if (at == executables_.end()) reasons_.fetch_or(kNotSeen, std::memory_order_relaxed);
  const Launch launch = at != executables_.end() ? at->second.launch : Launch{};
  if (!launch.is_new) known = {executable, generation, launch};
  return launch;
}

CapturedGraphs::Launch CapturedGraphs::Define(const void* executable, uint32_t whole,
                                              const LaunchIdentity& identity) noexcept try {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return {};
  const HeldLock held(lock_);
  const auto at = executables_.find(executable);
  if (at == executables_.end()) return {};
  Executable& found = at->second;
  if (!found.launch.is_new) return found.launch;  // another thread was faster
  found.launch.is_new = false;
  found.launch.whole = whole;
  if (found.contents != nullptr) {
    Contents& contents = *found.contents;
    contents.whole = whole;
    contents.has_row = std::ranges::any_of(contents.nodes, [this](const Node& node) {
      return !node.transfer && (node.key == LaunchKeys::kNoKey || !keys_.IsCounted(node.key));
    });
    if (contents.has_row) {
      found.members.push_back({.identity = identity, .launches = 1});
      reasons_.fetch_or(kHasRow, std::memory_order_relaxed);
    }
    found.launch.number = recorder_.DefineGraph(found.members, identity, contents.settled);
    if (found.launch.number != 0) {
      contents_.emplace(found.launch.number, found.contents);
      if (!contents.settled) unseen_.store(true, std::memory_order_relaxed);
    } else {
      Refuse(&found, kNoRoom);
    }
  }
  found.members = {};
  if (found.refused != 0) reasons_.fetch_or(found.refused, std::memory_order_relaxed);
  ForgetCaches();
  return found.launch;
} catch (...) {
  return {};
}

// --- The end of a step.

std::shared_ptr<const CapturedGraphs::Contents> CapturedGraphs::ContentsOf(uint32_t number) const noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return nullptr;
  const HeldLock held(lock_);
  const auto at = contents_.find(number);
  return at != contents_.end() ? at->second : nullptr;
}

void CapturedGraphs::Settle(uint32_t number, bool as_captured) noexcept try {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  recorder_.SettleGraph(number, as_captured);
  for (auto& [handle, executable] : executables_) {
    if (executable.launch.number != number) continue;
    if (as_captured) {
      executable.contents->settled = true;
      continue;
    }
    // Launches that are on their way with the number are of the graph as a whole, too.
    Executable refused;
    refused.refused = kOtherOrder;
    refused.launch = {.whole = executable.launch.whole, .optimizer = executable.launch.optimizer};
    Retire(&executable);
    executable = std::move(refused);
    ForgetCaches();
    reasons_.fetch_or(kOtherOrder, std::memory_order_relaxed);
  }
} catch (...) {
  recorder_.CountDrop("CUDA graphs: out of memory");
}

void CapturedGraphs::Sweep() noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  for (const uint32_t number : retired_) {
    const auto at = contents_.find(number);
    if (at == contents_.end()) continue;
    nodes_ -= at->second->nodes.size();
    contents_.erase(at);
  }
  retired_.clear();
}

size_t CapturedGraphs::nodes() const noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return 0;
  const HeldLock held(lock_);
  return nodes_;
}

}  // namespace rfinject::cupti
