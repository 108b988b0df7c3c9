#include "collector/cupti/time_join.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

#include "collector/cupti/counted_context.h"
#include "collector/cupti/launch_keys.h"

namespace rfinject::cupti {
namespace {

using Contents = CapturedGraphs::Contents;
using Node = CapturedGraphs::Node;
using Record = KernelTimes::Record;

class Joiner {
 public:
  Joiner(std::span<const LaunchLog::Entry> entries, const CapturedGraphs& graphs, LaunchKeys& keys)
      : graphs_(graphs), keys_(keys) {
    key_of_.reserve(entries.size());
    for (const LaunchLog::Entry& entry : entries) {
      key_of_[entry.correlation_id] = entry.key;
      if (OwnerIsGraph(entry.owner)) place_.try_emplace(entry.correlation_id, kNoRecord, GraphOfOwner(entry.owner));
    }
  }

  TimeJoin Join(std::span<const Record> records) {
    for (const Record& record : records) {
      const auto graph = place_.find(record.correlation_id);
      if (graph == place_.end()) {
        AddLaunch(record.correlation_id, record.ns);
        continue;
      }
      auto& [place, number] = graph->second;
      if (place == kNoRecord) {
        place = launches_.size();
        launches_.push_back({number, {}});
      }
      launches_[place].records.push_back(record);
    }
    for (GraphLaunch& launch : launches_) Check(&launch);
    for (const GraphLaunch& launch : launches_) AddGraph(launch);
    return std::move(join_);
  }

 private:
  static constexpr size_t kNoRecord = SIZE_MAX;
  struct GraphLaunch {
    uint32_t number;  // the recorder's; 0: none
    std::vector<Record> records;
  };
  struct Graph {
    std::shared_ptr<const Contents> contents;
    std::unordered_map<uint64_t, uint32_t> key_of;  // its nodes' numbers
    bool refused = false;
  };

  void AddLaunch(uint32_t correlation_id, uint64_t ns) {
    const auto key = key_of_.find(correlation_id);
    if (key == key_of_.end() || key->second == LaunchKeys::kNoKey) {
      ++join_.strangers;
      return;
    }
    Add(key->second, ns);
  }

  void Add(uint32_t key, uint64_t ns) {
    join_.launches.push_back({key, ns});
    const auto [sum, added] = sum_of_.try_emplace(key, join_.keys.size());
    if (added) join_.keys.push_back({.key = key});
    join_.keys[sum->second].ns += static_cast<double>(ns);
    ++join_.keys[sum->second].launches;
  }

  Graph& Known(uint32_t number) {
    const auto [at, added] = known_.try_emplace(number);
    Graph& graph = at->second;
    if (!added || number == 0) return graph;
    graph.contents = graphs_.ContentsOf(number);
    if (graph.contents == nullptr) return graph;
    for (const Node& node : graph.contents->nodes) {
      if (node.id != 0) graph.key_of.emplace(node.id, node.key);
    }
    return graph;
  }

  static bool HasNumbers(const Graph& graph, const GraphLaunch& launch) {
    return graph.contents->by_id && std::any_of(launch.records.begin(), launch.records.end(),
                                                [](const Record& record) { return record.node_id != 0; });
  }

  // Compares what a launch whose records have no numbers ran with what was captured. One that differs makes all
  // launches of the graph launches as a whole.
  void Check(GraphLaunch* launch) {
    Graph& graph = Known(launch->number);
    if (graph.contents == nullptr || HasNumbers(graph, *launch)) return;
    std::vector<Record>& records = launch->records;
    std::stable_sort(records.begin(), records.end(),
                     [](const Record& a, const Record& b) { return a.start_ns < b.start_ns; });
    const std::vector<Node>& nodes = graph.contents->nodes;
    const bool same = std::equal(nodes.begin(), nodes.end(), records.begin(), records.end(),
                                 [this](const Node& node, const Record& record) { return Ran(node, record); });
    graph.refused = graph.refused || !same;
    if (graph.contents->settled && same) return;
    const auto known = std::find_if(join_.checks.begin(), join_.checks.end(),
                                    [&](const TimeJoin::Check& check) { return check.number == launch->number; });
    if (known == join_.checks.end()) {
      join_.checks.push_back({.number = launch->number, .as_captured = same});
    } else {
      known->as_captured = known->as_captured && same;
    }
  }

  void AddGraph(const GraphLaunch& launch) {
    const Graph& graph = Known(launch.number);
    if (graph.contents == nullptr || graph.refused) return AddWhole(launch);
    HasNumbers(graph, launch) ? AddById(graph, launch) : AddByOrder(graph, launch);
  }

  void AddWhole(const GraphLaunch& launch) {
    uint64_t ns = 0;
    for (const Record& record : launch.records) ns += record.ns;
    AddLaunch(launch.records.front().correlation_id, ns);
  }

  // What has no known node is the graph's own row's; a copy whose capture was not seen has none.
  void AddById(const Graph& graph, const GraphLaunch& launch) {
    uint64_t rest = 0;
    for (const Record& record : launch.records) {
      const auto node = graph.key_of.find(record.node_id);
      const uint32_t key = node != graph.key_of.end() ? node->second : LaunchKeys::kNoKey;
      if (key != LaunchKeys::kNoKey) {
        Add(key, record.ns);
      } else if (!record.transfer) {
        rest += record.ns;
      }
    }
    if (graph.contents->has_row) Add(graph.contents->whole, rest);
  }

  void AddByOrder(const Graph& graph, const GraphLaunch& launch) {
    const std::vector<Node>& nodes = graph.contents->nodes;
    for (size_t i = 0; i < nodes.size(); ++i) Add(nodes[i].key, launch.records[i].ns);
    if (graph.contents->has_row) Add(graph.contents->whole, 0);
  }

  // Whether the record is of the launch that was captured.
  bool Ran(const Node& node, const Record& record) {
    if (node.key == LaunchKeys::kNoKey || node.transfer != record.transfer) return false;
    if (node.transfer) return true;
    const LaunchIdentity captured = keys_.Identity(node.key);
    return captured.kernel == record.kernel && captured.grid == record.grid && captured.block == record.block;
  }

  const CapturedGraphs& graphs_;
  LaunchKeys& keys_;
  std::unordered_map<uint32_t, uint32_t> key_of_;  // by correlation id
  // A graph's correlation id to its place in launches_, and its number.
  std::unordered_map<uint32_t, std::pair<size_t, uint32_t>> place_;
  std::unordered_map<uint32_t, size_t> sum_of_;  // a key to its place in join_.keys
  std::vector<GraphLaunch> launches_;
  std::unordered_map<uint32_t, Graph> known_;  // by number
  TimeJoin join_;
};

}  // namespace

uint64_t BusyNs(std::span<const KernelTimes::Record> records) {
  std::vector<KernelTimes::Record> order(records.begin(), records.end());
  std::sort(order.begin(), order.end(),
            [](const KernelTimes::Record& a, const KernelTimes::Record& b) { return a.start_ns < b.start_ns; });
  uint64_t busy = 0, until = 0;
  for (const KernelTimes::Record& one : order) {
    const uint64_t end = one.start_ns + one.ns;
    if (end > until) busy += end - std::max(one.start_ns, until);
    until = std::max(until, end);
  }
  return busy;
}

TimeJoin JoinTimes(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records,
                   const CapturedGraphs& graphs, LaunchKeys& keys) {
  return Joiner(entries, graphs, keys).Join(records);
}

}  // namespace rfinject::cupti
