// File: captured_graphs.h
//
// CapturedGraphs knows which launches were captured into which CUDA graph, so that what a graph's launch runs can be
// told apart afterwards. What is captured has a launch key like any other launch: the layer, phase and operator in
// which it was captured.
//
// CUPTI numbers the nodes of graphs (cuptiGetGraphNodeId). A captured launch creates a node; when the graph is made
// executable every node is cloned, and CUPTI says from which one; a kernel's activity record has the number of its
// clone. A CUPTI that does not say so leaves the order: an executable graph has the launches of its graph in the
// order of the capture, and what it ran is compared with them, name by name and grid by grid, before it is believed
// (time_join.h).
//
// Threads of the program call it inside CUPTI's callbacks. To launch a graph costs a look into a cache of the thread;
// all else happens where a graph is captured, made executable, launched for the first time or destroyed, and takes
// the lock. The thread that ends the steps asks what a graph holds, and settles whether it is believed.
#ifndef RFINJECT_COLLECTOR_CUPTI_CAPTURED_GRAPHS_H_
#define RFINJECT_COLLECTOR_CUPTI_CAPTURED_GRAPHS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collector/cupti/launch_keys.h"
#include "collector/recorder.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class CapturedGraphs {
 public:
  // Of all graphs and executable graphs that live, together some 40 MB.
  static constexpr size_t kMaxNodes = size_t{1} << 19;

  // Why the launches of some graph stay launches of "(CUDA graph)"; bits.
  enum Reason : uint32_t {
    kNotSeen = 1u << 0,      // it was captured before we watched, or while another one was and CUPTI numbers no nodes
    kChanged = 1u << 1,      // the program has changed single nodes of the executable graph
    kConditional = 1u << 2,  // a part of it runs under a condition, or again and again
    kNoRoom = 1u << 3,       // there are more nodes than are kept
    kOtherOrder = 1u << 4,   // it did not run what was captured, in that order
    // What else is to be said: a graph is launched whose kernels were not all counted before.
    kHasRow = 1u << 5,
  };

  struct Node {
    uint64_t id = 0;                    // CUPTI's; 0: none
    uint32_t key = LaunchKeys::kNoKey;  // kNoKey: its capture was not seen
    bool transfer = false;              // a copy or a memory set
    friend bool operator==(const Node&, const Node&) = default;
  };
  // An executable graph that is launched.
  struct Contents {
    std::vector<Node> nodes;  // kernels, copies and memory sets, in the order of the capture or of the cloning
    bool by_id = false;       // each node has the number that activity records have
    uint32_t whole = LaunchKeys::kNoKey;  // the key of the graph as a whole
    bool settled = false;  // it is certain that this is what its launch runs; the thread that ends the steps says so
    // The graph is a row beside those of its kernels: not all of these were counted when it was launched first.
    bool has_row = false;
  };

  // The arguments must outlive the object.
  CapturedGraphs(LaunchKeys& keys, Recorder& recorder) noexcept : keys_(keys), recorder_(recorder) {}

  // --- For the program's threads: a graph that is captured. Handles are identities only.

  // A capture has begun; it has ended and made `graph`, or nothing (null).
  void BeginCapture() noexcept;
  void EndCapture(const void* graph) noexcept;
  // A launch was captured as a node of `graph`; null where CUPTI does not say so, and `node.id` is then 0. `phase` is
  // the launch's.
  void AddLaunch(const void* graph, const Node& node, Phase phase) noexcept;
  // The launch of an executable graph was captured.
  void AddGraphLaunch(const void* executable) noexcept;
  // A node was created that works and is no captured launch.
  void AddNode(const void* graph, uint64_t id, bool transfer) noexcept;
  // Something in the graph makes it unknown what its launch runs.
  void RefuseGraph(const void* graph, Reason reason) noexcept;
  // The node `id` of `graph` was cloned from `original`.
  void AddClone(const void* graph, uint64_t id, uint64_t original) noexcept;
  void DestroyGraph(const void* graph) noexcept;

  // --- For the program's threads: an executable graph.

  // The calling thread begins to make one: what is cloned now, on this thread, belongs to it.
  static void BeginInstantiate() noexcept;
  static bool instantiating() noexcept;
  // It was made, of `graph`; null: that failed.
  void EndInstantiate(const void* executable, const void* graph) noexcept;
  // Its nodes are those of `graph` from now on.
  void Update(const void* executable, const void* graph) noexcept;
  // Something else about its nodes has changed.
  void Change(const void* executable) noexcept;
  void DestroyExecutable(const void* executable) noexcept;

  struct Launch {
    uint32_t number = 0;  // the recorder's; 0: a launch of "(CUDA graph)"
    uint32_t whole = LaunchKeys::kNoKey;
    bool optimizer = false;  // the graph holds (a part of) the optimizer's step
    bool is_new = false;     // what it is recorded as is not known: Define must be called
  };
  // This is on the path of every launch of a graph.
  Launch Find(const void* executable) noexcept;
  // Says which key launches of the graph have as a whole, and `identity` what that stands for.
  Launch Define(const void* executable, uint32_t whole, const LaunchIdentity& identity) noexcept;

  // Whether an optimizer's step was captured since the last call. Asking forgets it.
  bool TakeOptimizerCaptured() noexcept { return optimizer_captured_.exchange(false, std::memory_order_relaxed); }

  // --- For the thread that ends the steps.

  // What the graph with that number of the recorder's holds; null when it is not known any more.
  std::shared_ptr<const Contents> ContentsOf(uint32_t number) const noexcept;
  // Whether a graph whose nodes have no numbers was launched for the first time since the last call: what it runs is
  // to be seen, or its launches stay those of a graph.
  bool TakeUnseen() noexcept { return unseen_.exchange(false, std::memory_order_relaxed); }
  // Says whether a graph whose nodes have no numbers ran what was captured.
  void Settle(uint32_t number, bool as_captured) noexcept;
  // Forgets what was destroyed before the step that has ended was read.
  void Sweep() noexcept;
  // The reasons that have come up since the last call.
  uint32_t TakeReasons() noexcept { return reasons_.exchange(0, std::memory_order_relaxed); }
  // How many nodes are kept.
  size_t nodes() const noexcept;

  void ResetLockInForkedChild() noexcept { lock_.ResetInForkedChild(); }

 private:
  struct Graph {
    std::vector<Node> nodes;
    uint32_t refused = 0;  // a Reason
    bool optimizer = false;
  };
  struct Executable {
    std::shared_ptr<Contents> contents;
    std::vector<GraphMember> members;  // until the first launch
    uint32_t refused = 0;
    Launch launch;
  };
  struct Place {
    const void* graph;
    size_t index;  // of the node in it
  };

  void Append(const void* graph, const Node& node) RFINJECT_REQUIRES(lock_);
  const Graph* FindGraph(const void* graph) const RFINJECT_REQUIRES(lock_);
  void Fill(const void* executable, const Graph* graph, std::vector<Node> nodes, bool by_id) RFINJECT_REQUIRES(lock_);
  std::vector<GraphMember> MembersOf(const std::vector<Node>& nodes);
  void Retire(Executable* executable) RFINJECT_REQUIRES(lock_);
  void Refuse(Executable* executable, uint32_t reason) RFINJECT_REQUIRES(lock_);
  void ForgetCaches() noexcept { generation_.store(++next_generation_, std::memory_order_release); }

  LaunchKeys& keys_;
  Recorder& recorder_;
  std::atomic<bool> optimizer_captured_{false}, unseen_{false};
  std::atomic<uint32_t> reasons_{0};
  // Of what the threads' caches hold. Caches outlive an object only in tests; no two objects share a generation.
  static inline std::atomic<uint32_t> next_generation_{0};
  std::atomic<uint32_t> generation_{++next_generation_};

  mutable Mutex lock_;
  std::unordered_map<const void*, Graph> graphs_ RFINJECT_GUARDED_BY(lock_);
  std::unordered_map<uint64_t, Place> places_ RFINJECT_GUARDED_BY(lock_);  // of the graphs' nodes, by CUPTI's number
  std::unordered_map<const void*, Executable> executables_ RFINJECT_GUARDED_BY(lock_);
  std::unordered_map<uint32_t, std::shared_ptr<Contents>> contents_ RFINJECT_GUARDED_BY(lock_);  // by number
  std::vector<uint32_t> retired_ RFINJECT_GUARDED_BY(lock_);  // numbers of what was destroyed since the last Sweep
  Graph open_ RFINJECT_GUARDED_BY(lock_);                     // captured into a graph that CUPTI does not name
  int captures_ RFINJECT_GUARDED_BY(lock_) = 0;               // in progress
  bool mixed_ RFINJECT_GUARDED_BY(lock_) = false;             // several at a time share open_
  size_t nodes_ RFINJECT_GUARDED_BY(lock_) = 0;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_CAPTURED_GRAPHS_H_
