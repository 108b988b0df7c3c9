#include "collector/cupti/time_join.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

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
    logged_.reserve(entries.size());
    for (const LaunchLog::Entry& entry : entries) {
      logged_[entry.correlation_id] = {entry.key, entry.step};
      if (entry.graph == LaunchLog::kNoGraph) continue;
      place_.try_emplace(entry.correlation_id, kNoRecord, entry.graph != LaunchLog::kUnknownGraph ? entry.graph : 0);
    }
  }

  TimeJoin Join(std::span<const Record> records) {
    for (const Record& record : records) {
      const auto graph = place_.find(record.correlation_id);
      if (graph == place_.end()) {
        AddRan(record, AddLaunch(record.correlation_id, record.ns));
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
    std::sort(join_.ran.begin(), join_.ran.end(),
              [](const TimeJoin::Ran& a, const TimeJoin::Ran& b) { return a.start_ns < b.start_ns; });
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

  // Returns the launch's place in join_.launches.
  uint32_t AddLaunch(uint32_t correlation_id, uint64_t ns) {
    const auto logged = logged_.find(correlation_id);
    if (logged == logged_.end() || logged->second.key == LaunchKeys::kNoKey) {
      ++join_.strangers;
      return TimeJoin::kNoLaunch;
    }
    return Add(logged->second.key, ns, logged->second.step, /*in_graph=*/false);
  }

  uint32_t Add(uint32_t key, uint64_t ns, uint64_t step, bool in_graph) {
    join_.launches.push_back({key, ns, step});
    const auto [sum, added] = sum_of_.try_emplace(key, join_.keys.size());
    if (added) join_.keys.push_back({.key = key});
    join_.keys[sum->second].ns += static_cast<double>(ns);
    ++join_.keys[sum->second].launches;
    join_.keys[sum->second].in_graph = join_.keys[sum->second].in_graph && in_graph;
    return static_cast<uint32_t>(join_.launches.size() - 1);
  }

  void AddRan(const Record& record, uint32_t launch) {
    join_.ran.push_back(
        {launch, record.transfer, record.device, record.start_ns, record.start_ns + record.ns, record.stream});
  }

  uint64_t StepOf(const GraphLaunch& launch) const {
    const auto logged = logged_.find(launch.records.front().correlation_id);
    return logged != logged_.end() ? logged->second.step : 0;
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
    const uint32_t whole = AddLaunch(launch.records.front().correlation_id, ns);
    for (const Record& record : launch.records) AddRan(record, whole);
  }

  // What has no known node is the graph's own row's; a copy whose capture was not seen has none.
  void AddById(const Graph& graph, const GraphLaunch& launch) {
    uint64_t rest = 0;
    const uint64_t step = StepOf(launch);
    std::vector<const Record*> of_rest;
    for (const Record& record : launch.records) {
      const auto node = graph.key_of.find(record.node_id);
      const uint32_t key = node != graph.key_of.end() ? node->second : LaunchKeys::kNoKey;
      if (key != LaunchKeys::kNoKey) {
        AddRan(record, Add(key, record.ns, step, /*in_graph=*/true));
        continue;
      }
      if (!record.transfer) rest += record.ns;
      of_rest.push_back(&record);
    }
    const uint32_t whole =
        graph.contents->has_row ? Add(graph.contents->whole, rest, step, /*in_graph=*/false) : TimeJoin::kNoLaunch;
    for (const Record* record : of_rest) AddRan(*record, whole);
  }

  void AddByOrder(const Graph& graph, const GraphLaunch& launch) {
    const std::vector<Node>& nodes = graph.contents->nodes;
    const uint64_t step = StepOf(launch);
    for (size_t i = 0; i < nodes.size(); ++i) {
      AddRan(launch.records[i], Add(nodes[i].key, launch.records[i].ns, step, /*in_graph=*/true));
    }
    if (graph.contents->has_row) Add(graph.contents->whole, 0, step, /*in_graph=*/false);
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
  struct Logged {
    uint32_t key = LaunchKeys::kNoKey;
    uint64_t step = 0;
  };
  std::unordered_map<uint32_t, Logged> logged_;  // by correlation id
  // A graph's correlation id to its place in launches_, and its number.
  std::unordered_map<uint32_t, std::pair<size_t, uint32_t>> place_;
  std::unordered_map<uint32_t, size_t> sum_of_;  // a key to its place in join_.keys
  std::vector<GraphLaunch> launches_;
  std::unordered_map<uint32_t, Graph> known_;  // by number
  TimeJoin join_;
};

}  // namespace

std::vector<GpuAdvance> AdvancesOf(const TimeJoin& join, std::span<const Stretch> waits) {
  std::vector<GpuAdvance> advances(join.launches.size());
  uint64_t until = 0;
  for (const TimeJoin::Ran& ran : join.ran) {
    if (ran.launch != TimeJoin::kNoLaunch) {
      GpuAdvance& advance = advances[ran.launch];
      advance.known = advance.known && until != 0;
      if (until != 0 && ran.start_ns > until) {
        advance.idle_ns += ran.start_ns - until;
        for (const Stretch& wait : waits) {
          const uint64_t begin = std::max(wait.begin_ns, until), end = std::min(wait.end_ns, ran.start_ns);
          advance.data_idle_ns += end - std::min(begin, end);
        }
      }
      if (ran.end_ns > until) advance.busy_ns += ran.end_ns - std::max(ran.start_ns, until);
    }
    until = std::max(until, ran.end_ns);
  }
  return advances;
}

size_t LaunchesBehind(const TimeJoin& join, uint64_t ended_ns, int64_t lag_ns) {
  const auto waiting = std::partition_point(
      join.ran.begin(), join.ran.end(), [ended_ns](const TimeJoin::Ran& ran) { return ran.start_ns <= ended_ns; });
  const auto launches = static_cast<double>(join.launches.size());
  const auto window_ns = static_cast<double>(join.ran.back().end_ns - join.ran.front().start_ns);
  if (waiting == join.ran.begin() && window_ns > 0) {
    return static_cast<size_t>(static_cast<double>(lag_ns) / window_ns * launches);
  }
  return static_cast<size_t>(join.ran.end() - waiting);
}

TimeJoin JoinTimes(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records,
                   const CapturedGraphs& graphs, LaunchKeys& keys) {
  return Joiner(entries, graphs, keys).Join(records);
}

}  // namespace rfinject::cupti
