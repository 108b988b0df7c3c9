#include "cli/profile/profile.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

using wire::SaturatingAdd;

// The smallest `kept` of the union of two lists that ascend. What is among the smallest of the whole is among the
// smallest of every part that holds it, so the order of merging does not matter. Of a job's thousand ranks most come
// behind those that are kept, which one comparison tells.
template <typename T, typename Order = std::less<T>>
void MergeSmallest(std::vector<T>& into, std::vector<T> other, size_t kept, bool unique, Order order = {}) {
  const size_t before = into.size();
  for (T& one : other) {
    if (before >= kept && !order(one, into[before - 1])) break;
    into.push_back(std::move(one));
  }
  if (into.size() == before) return;
  std::inplace_merge(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(before), into.end(), order);
  if (unique) into.erase(std::unique(into.begin(), into.end()), into.end());
  if (into.size() > kept) into.resize(kept);
}

// Adds a sorted map to another. Parts of one job have nearly the same keys, so both are walked side by side.
template <typename Map, typename Add>
void MergeSorted(Map& into, Map& other, Add add) {
  auto at = into.begin();
  for (auto& [key, value] : other) {
    while (at != into.end() && at->first < key) ++at;
    if (at != into.end() && !(key < at->first)) {
      add(at->second, value);
    } else {
      at = into.emplace_hint(at, key, std::move(value));
    }
  }
}

// Adds two series that ascend by step.
void MergeStepSums(std::vector<StepSum>& into, const std::vector<StepSum>& other) {
  std::vector<StepSum> both;
  both.reserve(into.size() + other.size());
  auto a = into.begin();
  for (const StepSum& b : other) {
    for (; a != into.end() && a->step < b.step; ++a) both.push_back(*a);
    both.push_back(b);
    if (a != into.end() && a->step == b.step) SaturatingAdd(&both.back().sum, (a++)->sum);
  }
  both.insert(both.end(), a, into.end());
  into = std::move(both);
}

}  // namespace

bool ProcessOrder::operator()(const ProcessInfo& a, const ProcessInfo& b) const {
  std::strong_ordering texts = std::strong_ordering::equal, lists = texts, rest = texts;
  trace::ForEachPair(a, b, [&](const auto& x, const auto& y) {
    using Value = std::decay_t<decltype(x)>;
    std::strong_ordering& order = std::is_same_v<Value, std::string>                ? texts
                                  : std::is_same_v<Value, std::vector<std::string>> ? lists
                                                                                    : rest;
    if (order == 0) order = x <=> y;
  });
  return (texts != 0 ? texts : lists != 0 ? lists : rest) < 0;
}

std::string_view SourceName(SourceKind source) {
  switch (source) {
    case SourceKind::kMeasured:
      return "measured";
    case SourceKind::kEstimated:
      return "estimated";
    case SourceKind::kImported:
      return "imported";
    case SourceKind::kNone:
    case SourceKind::kUnspecified:
      break;
  }
  return "none";
}

void LaunchStats::MergeStack(const std::shared_ptr<const NativeStackInfo>& other) {
  if (other && (!stack || *other < *stack)) stack = other;
}

void LaunchStats::MergeLine(const std::shared_ptr<const SourceLineInfo>& other) {
  if (other && (!line || *other < *line)) line = other;
}

void LaunchStats::Merge(const LaunchStats& other) {
  MergeStack(other.stack);
  MergeLine(other.line);
  SaturatingAdd(&launches, other.launches);
  auto at = metrics.begin();
  for (const auto& [name, stat] : other.metrics) {
    while (at != metrics.end() && at->first < name) ++at;
    if (at == metrics.end() || at->first != name) at = metrics.emplace_hint(at, name, Stat{});
    at->second.Merge(stat);
  }
  for (const auto& [name, sums] : other.step_sums) MergeStepSums(step_sums[name], sums);
}

void DropStepsAfter(uint64_t last, std::vector<StepSum>* sums) {
  const auto end = std::upper_bound(sums->begin(), sums->end(), last,
                                    [](uint64_t step, const StepSum& sum) { return step < sum.step; });
  sums->erase(end, sums->end());
}

void LayerInfo::Merge(const LayerInfo& other) {
  trace::Merge(other, this);
  if (parent_path.empty() || (!other.parent_path.empty() && other.parent_path < parent_path)) {
    parent_path = other.parent_path;
  }
}

namespace {

// Of steps as of processes, the smallest are kept: what is among the first of the whole is among those of every part.
void KeepFirstSampledSteps(Run& run) {
  for (auto& [metric, steps] : run.sampled_steps) {
    if (steps.size() <= kMaxSampledStepsKept) continue;
    steps.erase(std::next(steps.begin(), kMaxSampledStepsKept), steps.end());
    const uint64_t last = steps.rbegin()->first;
    for (auto& [key, stats] : run.launches) {
      const auto sums = stats.step_sums.find(metric);
      if (sums == stats.step_sums.end()) continue;
      DropStepsAfter(last, &sums->second);
      if (sums->second.empty()) stats.step_sums.erase(sums);
    }
  }
}

}  // namespace

void Run::Merge(Run other) {
  MergeSmallest(devices, std::move(other.devices), kMaxDevicesKept, /*unique=*/true);
  MergeSmallest(process_list, std::move(other.process_list), kMaxProcessesKept, /*unique=*/false, ProcessOrder());
  SaturatingAdd(&processes, other.processes);
  ranks.merge(other.ranks);
  tier = std::max(tier, other.tier);
  MergeSorted(models, other.models, [](ModelInfo& a, const ModelInfo& b) { trace::Merge(b, &a); });
  MergeSorted(layers, other.layers, [](LayerInfo& a, const LayerInfo& b) { a.Merge(b); });
  MergeSorted(launches, other.launches, [](LaunchStats& a, LaunchStats& b) { a.Merge(b); });
  trace::Merge(other.steps, &steps);
  for (const auto& [rank, times] : other.step_times) step_times[rank].Merge(times);
  // Ordered by bytes first, refused and allocated: the highest stands.
  memory_peak = std::max(memory_peak, other.memory_peak);
  for (auto& [device, timeline] : other.timelines) {
    StepTimelineInfo& known = timelines[device];
    if (known < timeline) known = std::move(timeline);
  }
  for (auto& [metric, steps] : other.sampled_steps) {
    std::map<uint64_t, uint64_t>& known = sampled_steps[metric];
    for (const auto& [step, processes] : steps) SaturatingAdd(&known[step], processes);
  }
  KeepFirstSampledSteps(*this);
  MergeSmallest(pm_windows, std::move(other.pm_windows), kMaxPmWindowsKept, /*unique=*/false);
  step_spans.clear();  // nothing says whose they would be
  collector_versions.merge(other.collector_versions);
  while (collector_versions.size() > kMaxCollectorVersionsKept) {
    collector_versions.erase(std::prev(collector_versions.end()));
  }
  cli::Merge(other.kept, &kept);
  SaturatingAdd(&unfinished, other.unfinished);
}

absl::Status MetricsDisagree(const MetricInfo& there, const MetricInfo& here) {
  return absl::InvalidArgumentError(
      absl::StrFormat("metric '%s' is in %s x %f there and in %s x %f here; such sums cannot be added", here.name,
                      there.unit, there.scale, here.unit, here.scale));
}

absl::Status Profile::Merge(Profile other) {
  for (const auto& [name, metric] : other.metrics) {
    const auto it = metrics.find(name);
    if (it != metrics.end() && it->second != metric) {
      return MetricsDisagree(it->second, metric);
    }
  }
  trace_ids.merge(other.trace_ids);
  metrics.merge(other.metrics);
  for (auto& [key, run] : other.runs) {
    auto [it, inserted] = runs.try_emplace(key, std::move(run));
    if (!inserted) it->second.Merge(std::move(run));
  }
  return absl::OkStatus();
}

}  // namespace rfinject::cli
