#include "cli/report/rows/grouping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/report/rows/kernel_name.h"
#include "cli/report/rows/layer_group.h"
#include "cli/report/rows/stacks.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

// As a training step goes; recomputation happens inside the backward.
constexpr std::array<Phase, 8> kPhaseOrder = {Phase::kForward,  Phase::kEval,      Phase::kRecompute,
                                              Phase::kBackward, Phase::kOptimizer, Phase::kCommunication,
                                              Phase::kData,     Phase::kOther};

size_t PhaseRank(std::optional<Phase> phase) {
  return static_cast<size_t>(std::find(kPhaseOrder.begin(), kPhaseOrder.end(), phase) - kPhaseOrder.begin());
}

// The names that rows have for the layer of a launch: its path, as far as the rows keep it, and its group.
struct LayerNames {
  std::string_view path, group;
};

RowKey KeyFor(By by, const LaunchKey& key, const LayerNames& names) {
  RowKey row;
  row.model = key.layer.model;
  switch (by) {
    case By::kModel:
      if (row.model.empty()) row.phase = key.phase;
      break;
    case By::kPhase:
      row.phase = key.phase;
      break;
    case By::kLayer:
      row.layer = names.path;
      if (row.model.empty()) row.phase = key.phase;
      break;
    case By::kClass:
      row.group = names.group;
      if (row.model.empty()) row.phase = key.phase;
      break;
    case By::kOp:
      row.phase = key.phase;
      row.op = key.op;
      break;
    case By::kKernel:
      row.phase = key.phase;
      row.layer = names.path;
      row.op = key.op;
      row.kernel = key.kernel;
      row.signature = key.signature;
      break;
    case By::kSource:
      row.model.clear();
      row.phase = key.phase;
      break;
  }
  return row;
}

// A line stands for all phases: what its forward made runs in the backward for it.
void NameLine(const SourceLineInfo& line, RowKey* row) {
  row->phase.reset();
  row->file = line.file;
  row->function = line.function;
  row->line_number = line.line;
}

// What the key's operator launched (kMetricKernelPrefix).
void AddKernels(const LaunchStats& stats, FoldedRow* into) {
  for (auto at = stats.metrics.lower_bound(std::string(kMetricKernelPrefix));
       at != stats.metrics.end() && at->first.starts_with(kMetricKernelPrefix); ++at) {
    constexpr Uint128 kMost = UINT64_MAX / 2;  // of a hostile trace
    uint64_t& launches = into->kernels[at->first];
    launches = static_cast<uint64_t>(std::min(Uint128{launches} + std::min(at->second.sum, kMost), kMost));
  }
}

// Kernels that have the same short name count as one.
void NameKernels(const FoldedRow& folded, Row* row) {
  std::map<std::string, uint64_t> named;
  for (const auto& [metric, launches] : folded.kernels) {
    named[ShortKernelName(metric.substr(kMetricKernelPrefix.size()))] += launches;
  }
  for (const auto& [name, launches] : named) row->kernels.push_back({name, launches});
  std::ranges::stable_sort(row->kernels, std::ranges::greater{}, &Row::LaunchedKernel::launches);
}

Row MakeRow(const RowKey& key, const FoldedRow& folded, double total_time_ns) {
  Row row;
  static_cast<RowNames&>(row) = key;
  if (key.line_number > 0) row.line = absl::StrCat(key.file, ":", key.line_number);
  row.layers = folded.layers.size();
  NameKernels(folded, &row);
  if (!folded.caller_ns.empty() && key.line_number == 0) {
    // Of equally long ones the first by name is taken.
    const auto longest = std::max_element(folded.caller_ns.begin(), folded.caller_ns.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    row.caller = longest->first;
    row.other_callers = folded.caller_ns.size() - 1;
  }
  row.sums = folded.sums;
  row.derived = Derive(folded.sums);
  if (total_time_ns > 0) row.time_share = folded.sums.time_ns() / total_time_ns;
  return row;
}

// How much of a row is not known: the share of its time whose spread is not known, of that the share of launches that
// were never sampled at all, and by how much these may change the value, relative to it.
struct NotKnown {
  double spread = 0, value = 0, change = 0;
};

// Makes the interval of one quantity of a row. `by_launch` is the half-width that independent launches would have.
Knowledge MakeInterval(const SampledRun& sampled, Sampled what, const SampledRun::Series& series, double value,
                       double by_launch, NotKnown not_known) {
  Knowledge interval;
  // Nothing is known of the bytes of a file that has none; every launch has a time.
  if (value > 0 || what == Sampled::kTime) interval.lacks = std::clamp(not_known.spread, 0.0, 1.0);
  if (!(value > 0)) return interval;
  if (!sampled.has(what)) {
    interval.relative = by_launch / value;
    if (interval.relative > 0) {
      interval.trust = Trust::kByLaunch;
    } else if (interval.lacks > 0) {
      interval.trust = Trust::kFewSteps;  // one sample is no interval
    }
    return interval;
  }
  const StepInterval steps = sampled.IntervalOf(what, series);
  interval.trust = steps.trust;
  interval.close = steps.close;
  if (!(steps.mean > 0)) return interval;
  interval.spread = steps.spread / steps.mean;
  interval.p95 = steps.p95;
  if (!HasInterval(steps.trust)) return interval;
  // Where what was never sampled is much, nothing is known of the sum.
  constexpr double kMostUnsampled = 0.01, kMostChange = 0.02, kMostWithoutSpread = 0.25;
  if (not_known.value > kMostUnsampled || not_known.change > kMostChange || interval.lacks > kMostWithoutSpread) {
    interval.trust = Trust::kFewSteps;
  } else {
    interval.relative = steps.half_width / steps.mean + not_known.change;
  }
  return interval;
}

// `most_bytes_per_ns`: of any launch key of the run.
void AddIntervals(const SampledRun& sampled, const FoldedRow& folded, double most_bytes_per_ns, Row* row) {
  // What was never sampled is taken to last as long as the others, and may well last three times as long.
  constexpr double kLonger = 2;
  const double timed = folded.launches - folded.untimed_launches, timed_ns = folded.sums.time_ns();
  const double untimed_ns = timed > 0 ? timed_ns * folded.untimed_launches / timed : 0;
  const double all_ns = timed_ns + untimed_ns;
  const double untimed = timed > 0 ? (all_ns > 0 ? untimed_ns / all_ns : 0) : folded.untimed_launches > 0 ? 1 : 0;
  const auto share = [&](double ns) { return (all_ns > 0 ? ns / all_ns : 0) + untimed; };
  row->time = MakeInterval(sampled, Sampled::kTime, folded.series, timed_ns, std::sqrt(folded.time_error_squared),
                           {share(folded.unsure_ns), untimed, kLonger * untimed});
  const double uncounted = share(folded.uncounted_ns), bytes = folded.sums.dram_bytes();
  const double dense = bytes > 0 ? folded.uncounted_ns * most_bytes_per_ns / bytes : 0;
  row->bytes = MakeInterval(sampled, Sampled::kBytes, folded.series, bytes,
                            std::hypot(std::sqrt(folded.bytes_error_squared), folded.shared_bytes_error),
                            {share(folded.unsure_bytes_ns), uncounted, std::max(kLonger * uncounted, dense)});
}

void DescribeLayer(const Run& run, Row& row) {
  const auto layer = run.layers.find(LayerKey{row.model, row.layer});
  if (layer == run.layers.end()) return;
  row.class_name = layer->second.class_name;
  row.parameters = layer->second.parameters;
  row.parameter_bytes = layer->second.parameter_bytes;
  row.input_shape = layer->second.input_shape;
  row.output_shape = layer->second.output_shape;
  row.order = layer->second.order;
  row.group = LayerGroup(layer->second);
}

}  // namespace

std::vector<Row> RowFolder::Rows(const RowGrouping& grouping, double total_time_ns) const {
  const By by = grouping.by;
  const auto found = std::ranges::find(maps_, grouping, &RowMap::grouping);
  std::vector<Row> rows;
  rows.reserve(found->rows.size());
  for (const auto& [key, folded] : found->rows) {
    Row row = MakeRow(key, folded, total_time_ns);
    if (run_.key.source != SourceKind::kEstimated) AddIntervals(sampled_, folded, whole_.most_bytes_per_ns, &row);
    row.bytes.shared = folded.shared && (by == By::kOp || by == By::kKernel);
    if (by == By::kLayer || by == By::kKernel) {
      if (!row.model.empty()) DescribeLayer(run_, row);
    } else if (by == By::kModel) {
      const auto model = run_.models.find(row.model);
      if (model != run_.models.end()) {
        row.class_name = row.model;
        row.parameters = model->second.parameters;
        row.parameter_bytes = model->second.parameter_bytes;
      }
    }
    rows.push_back(std::move(row));
  }
  // A map's order is the tie-break everywhere, so equal profiles give equal reports.
  const auto outside = [](const Row& row) { return row.model.empty(); };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    switch (by) {
      case By::kLayer:
        if (outside(a) != outside(b)) return outside(b);
        if (outside(a)) return PhaseRank(a.phase) < PhaseRank(b.phase);
        // Merging can give layers of two models the same place in the order.
        return std::tuple(a.order, std::string_view(a.model), std::string_view(a.layer), PhaseRank(a.phase)) <
               std::tuple(b.order, std::string_view(b.model), std::string_view(b.layer), PhaseRank(b.phase));
      case By::kPhase:
        if (a.phase != b.phase) return PhaseRank(a.phase) < PhaseRank(b.phase);
        break;
      case By::kModel:
        if (outside(a) != outside(b)) return outside(b);
        return a.sums.time_ns() > b.sums.time_ns();
      case By::kClass:
        if (outside(a) != outside(b)) return outside(b);
        break;
      case By::kSource:
        if (a.line.empty() != b.line.empty()) return b.line.empty();
        break;
      case By::kOp:
      case By::kKernel:
        break;
    }
    return a.sums.time_ns() > b.sums.time_ns();
  });
  return rows;
}

void RowFolder::Want(const RowGrouping& grouping) {
  if (std::ranges::find(maps_, grouping, &RowMap::grouping) == maps_.end()) maps_.push_back({grouping, {}});
}

std::string_view RowFolder::GroupOf(const LaunchKey& key, size_t depth) {
  const auto layer =
      depth == 0 ? run_.layers.find(key.layer)
                 : run_.layers.find(LayerKey{key.layer.model, std::string(FirstParts(key.layer.path, depth))});
  if (layer == run_.layers.end()) return {};
  const auto [group, fresh] = groups_.try_emplace(&layer->second);
  if (fresh) group->second = LayerGroup(layer->second);
  return group->second;
}

void RowFolder::Add(const LaunchKey& key, const LaunchStats& stats, const KeyQuantities& quantities) {
  // A program in Python has lines, which say more than the interpreter's `_start`.
  const bool outside = key.layer.model.empty();
  const bool named = outside && stats.stack && !(stats.line && IsPlumbingOnly(*stats.stack));
  const std::string caller = named ? CallerOf(*stats.stack) : std::string();
  whole_.Add(quantities);
  for (auto& [grouping, rows] : maps_) {
    LayerNames names{FirstParts(key.layer.path, grouping.depth), {}};
    if (grouping.by == By::kClass) names.group = GroupOf(key, grouping.depth);
    RowKey row = KeyFor(grouping.by, key, names);
    if (grouping.split) row.phase = key.phase;
    // Kernels' rows are split by caller.
    if (grouping.by == By::kKernel) row.caller = caller;
    if (grouping.by == By::kSource && stats.line) NameLine(*stats.line, &row);
    FoldedRow& into = rows[row];
    into.Add(quantities);
    if (!caller.empty()) into.caller_ns[caller] += quantities.sums.time_ns();
    AddKernels(stats, &into);
    sampled_.Add(stats, &into.series);
    if (grouping.by == By::kClass && !outside) into.layers.insert(names.path);
  }
}

Row RowFolder::Total() const {
  FoldedRow whole = whole_;
  whole.series = sampled_.total();
  Row total;
  total.sums = whole.sums;
  total.derived = Derive(whole.sums);
  total.time_share = whole.sums.time_ns() > 0 ? 1 : 0;
  if (run_.key.source != SourceKind::kEstimated) AddIntervals(sampled_, whole, whole.most_bytes_per_ns, &total);
  return total;
}

void FoldedRow::Add(const KeyQuantities& quantities) {
  sums.Add(quantities.sums);
  const double time_ns = quantities.sums.time_ns(), count = static_cast<double>(quantities.sums.launches);
  launches += count;
  if (!quantities.has_time) untimed_launches += count;
  if (!quantities.time_spread_known) unsure_ns += time_ns;
  if (!quantities.bytes_spread_known) unsure_bytes_ns += time_ns;
  // A copy between host and GPU is no kernel, and has no counters.
  const bool is_copy = quantities.sums[Quantity::kPcieBytes] > 0;
  if (!quantities.has_bytes && !is_copy) uncounted_ns += time_ns;
  if (time_ns > 0) most_bytes_per_ns = std::max(most_bytes_per_ns, quantities.sums.dram_bytes() / time_ns);
  time_error_squared += quantities.time_error_squared;
  shared = shared || quantities.shared;
  if (quantities.shared) {
    // Shares of one sum err together.
    shared_bytes_error += std::sqrt(quantities.bytes_error_squared);
  } else {
    bytes_error_squared += quantities.bytes_error_squared;
  }
}

}  // namespace rfinject::cli
