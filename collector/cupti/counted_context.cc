#include "collector/cupti/counted_context.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace rfinject::cupti {
namespace {

constexpr size_t kMinRanges = 256;
constexpr size_t kMaxRanges = 65536;  // a step with more launches is not counted

}  // namespace

uint64_t OwnerOf(const LaunchIdentity& identity, bool graph) {
  return uint64_t{identity.site.layer} << 16 | static_cast<uint64_t>(identity.site.phase) << 1 | (graph ? 1 : 0);
}

void CountedContext::SetBackend(std::unique_ptr<CounterBackend> backend) {
  backend_ = std::move(backend);
  if (backend_ != nullptr) samples_.Describe(*backend_);
}

void CountedContext::Lose() noexcept {
  [[maybe_unused]] const CounterBackend* leaked = backend_.release();
  started_ = false;
}

int CountedContext::Start(CounterMode mode, size_t group) {
  const bool layers = mode == CounterMode::kLayers;
  // There are never more ranges than launches, so that many are enough.
  const size_t expected = layers && last_ranges_ != 0 ? last_ranges_ : last_launches_;
  const size_t max_ranges = std::clamp<size_t>(expected + expected / 4, kMinRanges, kMaxRanges);
  mode_ = mode;
  group_ = group;
  range_result_.store(0);
  range_backend_ = backend_.get();
  const int result = backend_->Start(group, max_ranges, layers);
  if (result != 0) return result;
  started_ = true;
  if (layers) {
    log_.Open(LaunchLog::Mode::kRanges, context(), expected_launches(), &NextRange, this);
  } else {
    log_.Open(LaunchLog::Mode::kCounting, context(), max_ranges);
  }
  return 0;
}

bool CountedContext::NextRange(void* self, size_t ordinal) noexcept {
  auto* counted = static_cast<CountedContext*>(self);
  const int result = counted->range_backend_->PushRange(ordinal);
  int none = 0;
  if (result != 0) counted->range_result_.compare_exchange_strong(none, result);
  return result == 0;
}

void CountedContext::Abandon() {
  std::vector<LaunchLog::Entry> entries;
  log_.Close(&entries);
  if (started_ && backend_ != nullptr) backend_->Abandon();
  started_ = false;
}

CountedContext::Outcome CountedContext::Stop(bool usable, const CapturedGraphs& graphs) {
  Outcome outcome;
  std::vector<LaunchLog::Entry> entries;
  const bool whole = log_.Close(&entries);
  if (!started_ || backend_ == nullptr) return outcome;
  started_ = false;
  const bool layers = mode_ == CounterMode::kLayers;
  std::vector<double> values;
  size_t ranges = 0, dropped = 0;
  outcome.call = "reading the counters of a step";
  outcome.result = backend_->Stop(&values, &ranges, &dropped);
  if (outcome.result != 0) return outcome;
  last_launches_ = std::max(entries.size(), layers ? 0 : ranges + dropped);
  if (layers) {
    last_ranges_ = log_.ranges();
    outcome.call = "opening a range";
    outcome.result = range_result_.load();
    if (outcome.result != 0) return outcome;
  }
  if (!usable) return outcome;
  const size_t wanted = layers ? log_.ranges() : entries.size();
  if (!whole || dropped != 0 || ranges != wanted) {
    recorder_.CountDrop("armed steps whose ranges did not match their launches");
    // That some ranges found no room is no mismatch worth a message: the next step has more room.
    if (dropped == 0) {
      outcome.mismatch = std::to_string(ranges) + " ranges, " + std::to_string(wanted) + " expected";
    }
    return outcome;
  }
  outcome.valid = true;
  outcome.has_bytes = samples_.HasDramBytes(group_);
  layers ? ReadLayers(entries, values, graphs, &outcome) : ReadKernels(entries, values, &outcome);
  samples_.Flush();
  return outcome;
}

void CountedContext::ReadKernels(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values,
                                 Outcome* outcome) {
  const size_t width = backend_->groups()[group_].metrics.size();
  struct Sum {
    double dram = 0;
    uint32_t launches = 0;
  };
  std::unordered_map<uint32_t, Sum> sums;
  for (size_t range = 0; range < entries.size(); ++range) {
    const uint32_t key = entries[range].key;
    if (key == LaunchKeys::kNoKey) continue;
    const double* row = values.data() + range * width;
    samples_.AddLaunch(group_, key, row);
    Sum& sum = sums[key];
    ++sum.launches;
    sum.dram += samples_.DramBytes(group_, row);
    outcome->sparse = outcome->sparse || samples_.IsSparse(group_, row);
  }
  for (const auto& [key, sum] : sums) outcome->counts.push_back({key, sum.dram / sum.launches});
}

// All ranges of one layer and phase are added up first: how often the program's threads took turns differs from step
// to step, while what a layer does in a step does not.
void CountedContext::ReadLayers(const std::vector<LaunchLog::Entry>& entries, const std::vector<double>& values,
                                const CapturedGraphs& graphs, Outcome* outcome) {
  const size_t width = backend_->groups()[group_].metrics.size();
  struct Layer {
    std::vector<uint32_t> keys;  // of its launches
    std::vector<double> row;
    bool whole = true;
  };
  std::unordered_map<uint64_t, Layer> layers;
  std::vector<uint64_t> owners(log_.ranges(), UINT64_MAX);
  for (const LaunchLog::Entry& entry : entries) {
    owners[entry.range] = entry.owner;
    Layer& layer = layers[entry.owner];
    if (entry.key == LaunchKeys::kNoKey) layer.whole = false;  // a launch without a key can be given no share
    layer.keys.push_back(entry.key);
  }
  for (size_t range = 0; range < owners.size(); ++range) {
    auto at = layers.find(owners[range]);
    if (at == layers.end()) continue;  // its launches all failed
    const double* row = values.data() + range * width;
    std::vector<double>& sum = at->second.row;
    sum.resize(width, 0);
    for (size_t i = 0; i < width; ++i) sum[i] += row[i];
    outcome->sparse = outcome->sparse || samples_.IsSparse(group_, row);
  }
  // Graphs come last: what they have beyond what is known of their kernels depends on the layers.
  for (auto& [owner, layer] : layers) {
    if (!layer.whole || GraphOfOwner(owner) != 0) continue;
    std::sort(layer.keys.begin(), layer.keys.end());
    samples_.AddRange(group_, layer.keys, layer.row.data());
    const double bytes = samples_.DramBytes(group_, layer.row.data()) / static_cast<double>(layer.keys.size());
    layer.keys.erase(std::unique(layer.keys.begin(), layer.keys.end()), layer.keys.end());
    for (uint32_t key : layer.keys) outcome->counts.push_back({key, bytes});
  }
  for (const auto& [owner, layer] : layers) {
    const uint32_t number = GraphOfOwner(owner);
    if (number == 0 || layer.row.empty()) continue;
    // Of a graph that is not settled nothing is known to be launched yet.
    const std::shared_ptr<const CapturedGraphs::Contents> graph = graphs.ContentsOf(number);
    if (graph != nullptr && graph->settled) ReadGraph(*graph, layer.keys.size(), layer.row.data(), outcome);
  }
}

// What a graph's launches have counted is not told apart. Kernels that were all counted outside of graphs keep the
// values that they had there; else the graph has a row, which gets what theirs leave.
void CountedContext::ReadGraph(const CapturedGraphs::Contents& graph, uint64_t launches, const double* row,
                               Outcome* outcome) {
  if (!graph.has_row) return;
  std::vector<uint32_t> keys;
  for (const CapturedGraphs::Node& node : graph.nodes) {
    if (node.key != LaunchKeys::kNoKey && !node.transfer) keys.push_back(node.key);
  }
  samples_.AddRest(group_, graph.whole, launches, keys, row);
  outcome->counts.push_back({graph.whole, samples_.DramBytes(group_, row) / static_cast<double>(launches)});
}

}  // namespace rfinject::cupti
