// File: graph_launches.h
//
// GraphLaunches knows what the launch of a CUDA graph stands for. Such a launch comes out of a ring as one record, so
// that the thread that launches does as little for a graph of a thousand kernels as for one kernel; here, on the
// thread that reads the rings, it becomes the launches of what is in the graph.
//
// A graph whose kernels are not certain yet is not settled: how often it was launched is kept here until what it
// launches is known. The recorder's lock guards the object. All of it may throw std::bad_alloc.
#ifndef RFINJECT_COLLECTOR_RECORD_GRAPH_LAUNCHES_H_
#define RFINJECT_COLLECTOR_RECORD_GRAPH_LAUNCHES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "collector/recorder.h"

namespace rfinject {

class GraphLaunches {
 public:
  // Of all graphs together, some 31 MB.
  static constexpr size_t kMaxMembers = size_t{1} << 19;
  static constexpr uint64_t kAnyStep = UINT64_MAX;

  // As Recorder::DefineGraph.
  uint32_t Define(std::span<const GraphMember> members, const LaunchIdentity& whole, bool settled);

  // Calls add(const LaunchRecord&) for each launch that is alike of a launch of `graph`, or keeps it back, as one of
  // `step`. Returns false where there is no such graph.
  template <typename Add>
  bool Launch(uint32_t graph, uint64_t step, Add add) {
    const auto at = graphs_.find(graph);
    if (at == graphs_.end()) return false;
    if (!at->second.settled) {
      ++at->second.kept_back[step];
    } else {
      ForEach(at->second, 1, add);
    }
    return true;
  }

  // Settles a graph that is not settled, and calls add(uint64_t step, const LaunchRecord&) for what was kept back.
  template <typename Add>
  void Settle(uint32_t graph, bool by_members, Add add) {
    const auto at = graphs_.find(graph);
    if (at == graphs_.end() || at->second.settled) return;
    Graph& found = at->second;
    found.settled = true;
    if (!by_members) {
      count_ -= found.members.size();
      found.members.assign(1, {.identity = found.whole, .launches = 1});
      ++count_;
    }
    for (const auto& [step, times] : found.kept_back) {
      ForEach(found, times, [&, step = step](const LaunchRecord& record) { add(step, record); });
    }
    found.kept_back.clear();
  }

  // Tells in which step `graph` was launched last. It stays known until no ring can hold a launch of it any more: it
  // is then one of GoneBefore(the first step that may still be in one), and the caller erases it.
  void Forget(uint32_t graph, uint64_t step);
  std::vector<uint32_t> GoneBefore(uint64_t step) const;
  void Erase(uint32_t graph);

  std::vector<uint32_t> Unsettled() const;
  size_t members() const { return count_; }

 private:
  struct Graph {
    std::vector<GraphMember> members;
    LaunchIdentity whole;
    bool settled = false;
    std::map<uint64_t, uint64_t> kept_back;  // launches by step
  };

  template <typename Add>
  static void ForEach(const Graph& graph, uint64_t times, Add add) {
    for (const GraphMember& member : graph.members) {
      LaunchRecord record;
      record.identity = member.identity;
      // A record has 32 bits for them, and one value in it means something else.
      constexpr uint64_t kMost = uint64_t{1} << 31;
      for (uint64_t left = times * member.launches; left > 0; left -= record.launches) {
        record.launches = static_cast<uint32_t>(left < kMost ? left : kMost);
        add(record);
      }
    }
  }

  std::unordered_map<uint32_t, Graph> graphs_;
  std::map<uint32_t, uint64_t> gone_;  // that were forgotten, and their last step
  size_t count_ = 0;                   // of members
  uint32_t last_ = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_GRAPH_LAUNCHES_H_
