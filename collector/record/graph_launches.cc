#include "collector/record/graph_launches.h"

namespace rfinject {

uint32_t GraphLaunches::Define(std::span<const GraphMember> members, const LaunchIdentity& whole, bool settled) {
  if (count_ + members.size() > kMaxMembers || last_ == UINT32_MAX) return 0;
  Graph graph;
  graph.members.assign(members.begin(), members.end());
  graph.whole = whole;
  graph.settled = settled;
  graphs_.emplace(last_ + 1, std::move(graph));
  count_ += members.size();
  return ++last_;
}

void GraphLaunches::Forget(uint32_t graph, uint64_t step) {
  if (graphs_.contains(graph)) gone_.emplace(graph, step);
}

std::vector<uint32_t> GraphLaunches::GoneBefore(uint64_t step) const {
  std::vector<uint32_t> found;
  for (const auto& [graph, last] : gone_) {
    if (last < step) found.push_back(graph);
  }
  return found;
}

void GraphLaunches::Erase(uint32_t graph) {
  gone_.erase(graph);
  const auto at = graphs_.find(graph);
  if (at == graphs_.end()) return;
  count_ -= at->second.members.size();
  graphs_.erase(at);
}

std::vector<uint32_t> GraphLaunches::Unsettled() const {
  std::vector<uint32_t> found;
  for (const auto& [number, graph] : graphs_) {
    if (!graph.settled) found.push_back(number);
  }
  return found;
}

}  // namespace rfinject
