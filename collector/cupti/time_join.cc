// File: time_join.cc
#include "collector/cupti/time_join.h"

#include <cstddef>
#include <unordered_map>

#include "collector/cupti/counted_context.h"
#include "collector/cupti/launch_keys.h"

namespace rfinject::cupti {
namespace {

class Joiner {
 public:
  explicit Joiner(std::span<const LaunchLog::Entry> entries) {
    key_of_.reserve(entries.size());
    for (const LaunchLog::Entry& entry : entries) {
      key_of_[entry.correlation_id] = entry.key;
      if (OwnerIsGraph(entry.owner)) graph_of_.try_emplace(entry.correlation_id, kNoRecord);
    }
  }

  TimeJoin Join(std::span<const KernelTimes::Record> records) {
    for (const KernelTimes::Record& record : records) {
      auto graph = graph_of_.find(record.correlation_id);
      if (graph == graph_of_.end()) {
        AddLaunch(record);
        continue;
      }
      if (graph->second == kNoRecord) {
        graph->second = graphs_.size();
        graphs_.push_back({record.correlation_id, 0});
      }
      graphs_[graph->second].ns += record.ns;
    }
    for (const KernelTimes::Record& graph : graphs_) AddLaunch(graph);
    return std::move(join_);
  }

 private:
  static constexpr size_t kNoRecord = SIZE_MAX;

  void AddLaunch(const KernelTimes::Record& record) {
    const auto key = key_of_.find(record.correlation_id);
    if (key == key_of_.end() || key->second == LaunchKeys::kNoKey) {
      ++join_.strangers;
      return;
    }
    join_.launches.push_back({key->second, record.ns});
    const auto [sum, added] = sum_of_.try_emplace(key->second, join_.keys.size());
    if (added) join_.keys.push_back({.key = key->second});
    join_.keys[sum->second].ns += static_cast<double>(record.ns);
    ++join_.keys[sum->second].launches;
  }

  std::unordered_map<uint32_t, uint32_t> key_of_;  // by correlation id
  std::unordered_map<uint32_t, size_t> graph_of_;  // a graph's correlation id to its place in graphs_
  std::unordered_map<uint32_t, size_t> sum_of_;    // a key to its place in join_.keys
  std::vector<KernelTimes::Record> graphs_;
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

TimeJoin JoinTimes(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records) {
  return Joiner(entries).Join(records);
}

}  // namespace rfinject::cupti
