#include "cli/report/fold.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cli/report/advice/advice.h"
#include "cli/report/advice/facts.h"
#include "cli/report/alarms/invariants.h"
#include "cli/report/facts/attribution.h"
#include "cli/report/facts/headline.h"
#include "cli/report/facts/queue.h"
#include "cli/report/facts/theory.h"
#include "cli/report/keys/bounds.h"
#include "cli/report/keys/expect.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/report/keys/sampled_run.h"
#include "cli/report/rows/kernel_name.h"
#include "cli/report/rows/layer_group.h"
#include "cli/report/rows/roofs.h"
#include "cli/report/rows/stacks.h"
#include "cli/report/run_list.h"
#include "gpus/gpus.h"
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

// What a row is of; the line of the program by its parts, so that lines stand in the order of their numbers.
struct RowKey : RowNames {
  std::string file;
  uint32_t line_number = 0;  // 0: of no line that is known

  // By the phase's name, as a reader would sort: rows that take equally long stand in this order.
  friend auto operator<=>(const RowKey& a, const RowKey& b) { return a.Texts() <=> b.Texts(); }

 private:
  std::tuple<std::string_view, std::string_view, std::string_view, std::string_view, std::string_view,
             std::string_view, std::string_view, std::string_view, std::string_view, std::string_view, uint32_t>
  Texts() const {
    return {model, PhaseName(phase), layer, group, op, kernel, signature, caller, file, function, line_number};
  }
};

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

struct Folded {
  Sums sums;
  double time_error_squared = 0;
  double bytes_error_squared = 0;
  double shared_bytes_error = 0;
  bool shared = false;
  std::map<std::string, double> caller_ns;  // of what is in no layer
  // By the metric's name, which the profile holds: launches of kernels below estimated operators.
  absl::flat_hash_map<std::string_view, uint64_t> kernels;
  absl::flat_hash_set<std::string_view> layers;  // of a group: the paths, which the run's launch keys hold
  SampledRun::Series series;
  double launches = 0, untimed_launches = 0;
  // GPU time of keys whose times have no known spread, of those whose bytes have none, and of those whose bytes were
  // never counted.
  double unsure_ns = 0, unsure_bytes_ns = 0, uncounted_ns = 0;

  void Add(const KeyQuantities& quantities) {
    sums.Add(quantities.sums);
    const double time_ns = quantities.sums.time_ns(), count = static_cast<double>(quantities.sums.launches);
    launches += count;
    if (!quantities.has_time) untimed_launches += count;
    if (!quantities.time_spread_known) unsure_ns += time_ns;
    if (!quantities.bytes_spread_known) unsure_bytes_ns += time_ns;
    // A copy between host and GPU is no kernel, and has no counters.
    const bool is_copy = quantities.sums[Quantity::kPcieBytes] > 0;
    if (!quantities.has_bytes && !is_copy) uncounted_ns += time_ns;
    time_error_squared += quantities.time_error_squared;
    shared = shared || quantities.shared;
    if (quantities.shared) {
      // Shares of one sum err together.
      shared_bytes_error += std::sqrt(quantities.bytes_error_squared);
    } else {
      bytes_error_squared += quantities.bytes_error_squared;
    }
  }
};

// What the key's operator launched (kMetricKernelPrefix).
void AddKernels(const LaunchStats& stats, Folded* into) {
  for (auto at = stats.metrics.lower_bound(std::string(kMetricKernelPrefix));
       at != stats.metrics.end() && at->first.starts_with(kMetricKernelPrefix); ++at) {
    constexpr Uint128 kMost = UINT64_MAX / 2;  // of a hostile trace
    uint64_t& launches = into->kernels[at->first];
    launches = static_cast<uint64_t>(std::min(Uint128{launches} + std::min(at->second.sum, kMost), kMost));
  }
}

// Kernels that have the same short name count as one.
void NameKernels(const Folded& folded, Row* row) {
  std::map<std::string, uint64_t> named;
  for (const auto& [metric, launches] : folded.kernels) {
    named[ShortKernelName(metric.substr(kMetricKernelPrefix.size()))] += launches;
    row->kernel_launches += launches;
  }
  for (const auto& [name, launches] : named) row->kernels.push_back({name, launches});
  std::ranges::stable_sort(row->kernels, std::ranges::greater{}, &Row::LaunchedKernel::launches);
}

Row MakeRow(const RowKey& key, const Folded& folded, double total_time_ns) {
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

// How much of a row is not known: the share of its time whose spread is not known, and of that the share of launches
// that were never sampled at all, which are taken to last as long as the others.
struct NotKnown {
  double spread = 0, value = 0;
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
  if (!(steps.mean > 0)) return interval;
  interval.spread = steps.spread / steps.mean;
  interval.p95 = steps.p95;
  if (!HasInterval(steps.trust)) return interval;
  // What was never sampled may well last twice as long as the others; where it is much, nothing is known of the sum.
  constexpr double kMostUnsampled = 0.01, kMostWithoutSpread = 0.25;
  if (not_known.value > kMostUnsampled || interval.lacks > kMostWithoutSpread) {
    interval.trust = Trust::kFewSteps;
  } else {
    interval.relative = steps.half_width / steps.mean + 2 * not_known.value;
  }
  return interval;
}

void AddIntervals(const SampledRun& sampled, const Folded& folded, Row* row) {
  const double timed = folded.launches - folded.untimed_launches, timed_ns = folded.sums.time_ns();
  const double untimed_ns = timed > 0 ? timed_ns * folded.untimed_launches / timed : 0;
  const double all_ns = timed_ns + untimed_ns;
  const double untimed = timed > 0 ? (all_ns > 0 ? untimed_ns / all_ns : 0) : folded.untimed_launches > 0 ? 1 : 0;
  const auto share = [&](double ns) { return (all_ns > 0 ? ns / all_ns : 0) + untimed; };
  row->time = MakeInterval(sampled, Sampled::kTime, folded.series, timed_ns, std::sqrt(folded.time_error_squared),
                           {share(folded.unsure_ns), untimed});
  row->bytes = MakeInterval(sampled, Sampled::kBytes, folded.series, folded.sums.dram_bytes(),
                            std::hypot(std::sqrt(folded.bytes_error_squared), folded.shared_bytes_error),
                            {share(folded.unsure_bytes_ns), share(folded.uncounted_ns)});
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

std::vector<Row> MakeRows(By by, const std::map<RowKey, Folded>& folded, const Run& run, const SampledRun& sampled,
                          double total_time_ns) {
  std::vector<Row> rows;
  rows.reserve(folded.size());
  for (const auto& [key, sums] : folded) {
    Row row = MakeRow(key, sums, total_time_ns);
    if (run.key.source != SourceKind::kEstimated) AddIntervals(sampled, sums, &row);
    row.counters_shared = sums.shared && (by == By::kOp || by == By::kKernel);
    if (by == By::kLayer || by == By::kKernel) {
      if (!row.model.empty()) DescribeLayer(run, row);
    } else if (by == By::kModel) {
      const auto model = run.models.find(row.model);
      if (model != run.models.end()) {
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

// What the trace says about the run, besides its launches.
Report DescribeRun(const Run& run, const Machine& machine, By by, StepBy step_by) {
  Report report;
  report.run = run.key;
  report.processes = run.process_list;
  report.process_count = run.processes;
  report.different_commands = DifferentCommands(run.process_list);
  report.unfinished = run.unfinished;
  report.device_name = run.key.gpu;
  report.devices = run.devices;
  report.machine = machine;
  report.tier = run.tier;
  report.steps = StepCount(run.steps, step_by);
  report.step_by = step_by;
  report.optimizer_steps = run.steps.steps;
  report.samples = run.steps.samples;
  report.step_wall_ns = run.steps.duration_ns.mean();
  if (report.steps > 0) {
    report.step_wall_ns *= static_cast<double>(run.steps.steps) / static_cast<double>(report.steps);
  }
  report.waits = WaitsOf(run);
  report.memory_peak_bytes = run.steps.memory_peak_bytes;
  report.pm_windows = run.steps.pm_dram_bytes.n;
  report.pm_dram_bytes = run.steps.pm_dram_bytes.mean();
  if (run.steps.pm_tensor_active_ns.n > 0 && run.steps.pm_duration_ns.sum > 0) {
    report.pm_tensor_share = run.steps.pm_tensor_active_ns.mean() / run.steps.pm_duration_ns.mean();
  }
  report.by = by;
  for (const auto& [name, model] : run.models) report.models.push_back(model);
  trace::ForEachList([](const auto* from, auto* into) { into->assign(from->begin(), from->end()); }, &run.kept,
                     &report.kept);
  auto& breaks = report.kept.graph_break;
  std::stable_sort(breaks.begin(), breaks.end(), [](const trace::GraphBreak& a, const trace::GraphBreak& b) {
    return std::pair(a.bytes, a.count) > std::pair(b.bytes, b.count);
  });
  return report;
}

// The launch keys of a run, added up by what each kind of row keeps of them.
struct Folding {
  Folded whole;  // its series is the run's own
  std::map<RowKey, Folded> rows, phases, layers, layer_phases, group_phases;
  double shortest_launch_ns = 0;  // 0: unknown
  Attribution attribution;
  uint64_t untimed_launches = 0, untimed_keys = 0;
  bool compiled = false;  // torch.compile made a kernel

  explicit Folding(int tier) : attribution(tier) {}

  // What the launches say of the run beside their sums.
  void AddFacts(const LaunchKey& key, const LaunchStats& stats, const KeyQuantities& quantities) {
    if (!quantities.has_time) untimed_launches += stats.launches, ++untimed_keys;
    const double least_ns = quantities.least_launch_ns;
    if (least_ns > 0 && (shortest_launch_ns == 0 || least_ns < shortest_launch_ns)) shortest_launch_ns = least_ns;
    // Inductor's names of what it makes: pointwise work, reductions of two kinds, templates, several in one.
    compiled |= key.kernel.starts_with("triton_") && key.kernel.find("_fused_") != std::string::npos;
    attribution.Add(key, stats, quantities.sums.time_ns());
  }
};

// Reads the quantities of a run's launch keys one by one. Who needs all of them reads them again, which takes less
// than a microsecond each, so that a run of many keys is not held twice.
struct KeyQuantitiesOfRun {
  const Machine& machine;
  const SampledRun& sampled;
  const KeyReader reader;
  const std::optional<ExpectedTimes>& expected;
  const std::optional<ExpectedTimes>& usual;

  // All but the bound time.
  KeyQuantities Read(const LaunchKey& key, const LaunchStats& stats) const {
    KeyQuantities quantities = ReadSampled(reader, sampled, stats);
    if (expected) ApplyExpected(key, *expected, quantities);
    AddLeastTimes(machine, quantities.sums);
    if (usual) AddUsual(key, stats, *usual, &quantities.sums);
    return quantities;
  }
};

// Which launch keys the GPU waits for, in the order of run.launches.
std::vector<bool> FindLaunchWaits(const Run& run, const KeyQuantitiesOfRun& keys, const FoldOptions& options,
                                  Report* report) {
  std::vector<double> times;
  times.reserve(run.launches.size());
  double launches = 0, gpu_ns = 0;
  for (const auto& [key, stats] : run.launches) {
    times.push_back(keys.Read(key, stats).sums.time_ns());
    launches += static_cast<double>(stats.launches);
    gpu_ns += times.back();
  }
  report->launch_floor_ns = options.launch_floor_ns;
  report->launch_interval =
      IntervalOf(*report, launches, gpu_ns, options.host_ns_per_launch, options.launch_floor_ns);
  return AddLaunchWaits(run, times, report);
}

Folding FoldLaunches(const KeyQuantitiesOfRun& keys, const std::vector<bool>& waited_for, const Run& run,
                     const FoldOptions& options, FactCollector* facts) {
  Folding folding(run.tier);
  const By by = options.by;
  const bool by_layer = by == By::kLayer || by == By::kClass;
  absl::flat_hash_map<const LayerInfo*, std::string> groups;  // that were made already
  size_t place = 0;
  for (const auto& [key, stats] : run.launches) {
    KeyQuantities quantities = keys.Read(key, stats);
    AddBoundTime(waited_for[place++], quantities.sums);
    // An estimate leaves out what is zero; hardware that counted nothing must say so.
    const bool counted = quantities.has_bytes && (quantities.has_flop || run.key.source == SourceKind::kEstimated);
    const double time_ns = quantities.sums.time_ns();
    if (counted) quantities.sums[Quantity::kTimeWithCounters] = time_ns;
    facts->Add(key, quantities.sums);
    // Named anew: clang 14 captures no structured binding. A program in Python has lines, which say more than the
    // interpreter's `_start`.
    const bool named = key.layer.model.empty() && stats.stack && !(stats.line && IsPlumbingOnly(*stats.stack));
    const std::string caller = named ? CallerOf(*stats.stack) : std::string();
    const auto add = [&, &of_key = stats](Folded& into) {
      into.Add(quantities);
      if (!caller.empty()) into.caller_ns[caller] += time_ns;
      AddKernels(of_key, &into);
      keys.sampled.Add(of_key, &into.series);
    };
    LayerNames names{FirstParts(key.layer.path, options.depth), {}};
    if (by_layer) {
      const auto layer = options.depth == 0 ? run.layers.find(key.layer)
                                            : run.layers.find(LayerKey{key.layer.model, std::string(names.path)});
      if (layer != run.layers.end()) {
        const auto [group, fresh] = groups.try_emplace(&layer->second);
        if (fresh) group->second = LayerGroup(layer->second);
        names.group = group->second;
      }
    }
    RowKey row = KeyFor(by, key, names);
    // Kernels' rows are split by caller.
    if (by == By::kKernel) row.caller = caller;
    if (by == By::kSource && stats.line) NameLine(*stats.line, &row);
    Folded& into = folding.rows[row];
    add(into);
    if (by == By::kClass && !key.layer.model.empty()) into.layers.insert(names.path);
    add(folding.phases[KeyFor(By::kPhase, key, names)]);
    add(folding.layers[KeyFor(By::kLayer, key, {key.layer.path, names.group})]);
    if (by_layer) {
      RowKey layer = KeyFor(By::kLayer, key, names);
      layer.phase = key.phase;
      add(folding.layer_phases[layer]);
      RowKey group = KeyFor(By::kClass, key, names);
      group.phase = key.phase;
      Folded& of_group = folding.group_phases[group];
      add(of_group);
      if (!key.layer.model.empty()) of_group.layers.insert(names.path);
    }
    folding.whole.Add(quantities);
    folding.AddFacts(key, stats, quantities);
  }
  return folding;
}

void AddTotals(const Folding& folding, Report& report) {
  report.total = folding.whole.sums;
  report.total_derived = Derive(report.total);
  report.shortest_launch_ns = folding.shortest_launch_ns;
  report.compiled = folding.compiled;
  folding.attribution.WriteTo(report);
  const double total_ns = report.total.time_ns();
  if (total_ns > 0) report.counters_share = report.total.time_with_counters_ns() / total_ns;
  if (total_ns > 0 && report.run.source == SourceKind::kMeasured) {
    report.untimed_launches = folding.untimed_launches;
    report.untimed_keys = folding.untimed_keys;
  }
  if (report.steps > 0) {
    const double steps = static_cast<double>(report.steps);
    report.step_gpu_ns = total_ns / steps;
    report.kernel_dram_bytes_per_step = report.total.dram_bytes() / steps;
  }
}

void AddTheory(const Profile& theory, const Run& run, size_t depth, Report& report) {
  const Run* const estimate = FindTheory(theory, report, run.process_list);
  if (estimate == nullptr) {
    report.theory.state = TheoryUse::State::kMissing;
    return;
  }
  report.theory = ApplyTheory(FoldRun(theory, *estimate, Machine{}, {.by = report.by, .depth = depth}), report);
  if (report.theory.state == TheoryUse::State::kApplied) FindDifferingLayers(*estimate, run, &report.theory);
}

void AddRatios(Report& report) {
  Sums forward, backward;
  for (const Row& row : report.phases) {
    if (row.phase == Phase::kForward) forward.Add(row.sums);
    if (row.phase == Phase::kBackward) backward.Add(row.sums);
  }
  const auto ratio = [](double a, double b) { return a > 0 && b > 0 ? a / b : 0; };
  report.backward_over_forward_model_flop = ratio(backward.model_flop(), forward.model_flop());
  report.backward_over_forward_flop = ratio(backward.total_flop(), forward.total_flop());
  report.backward_over_forward_time = ratio(backward.time_ns(), forward.time_ns());
}

}  // namespace

uint64_t StepCount(const StepSums& steps, StepBy step_by) {
  switch (step_by) {
    case StepBy::kIteration:
      if (steps.iterations > 0) return steps.iterations;
      break;
    case StepBy::kForward:
      if (steps.calls > 0) return steps.calls;
      break;
    case StepBy::kOptimizer:
      break;
  }
  return steps.steps;
}

std::string ChipOf(const Run& run) {
  for (const DeviceInfo& device : run.devices) {
    if (!device.chip.empty()) return device.chip;
  }
  const Gpu* gpu = FindGpu(run.key.estimated_gpu.empty() ? run.key.gpu : run.key.estimated_gpu);
  return gpu != nullptr ? std::string(gpu->chip) : std::string();
}

Report FoldRun(const Profile& profile, const Run& run, const Machine& machine, const FoldOptions& options) {
  Report report = DescribeRun(run, machine, options.by, options.step_by);
  const std::string chip = ChipOf(run);
  const SampledRun sampled(profile, run);
  const Calibration& calibration = options.calibration != nullptr ? *options.calibration : Calibration::Shipped();
  const std::optional<ExpectedTimes> expected = ModelOf(run, calibration);
  const std::optional<ExpectedTimes> usual = UsualModelOf(run, machine.name, calibration);
  if (expected) report.own_calibration = calibration.OwnSource(run.key.estimated_gpu);
  FactCollector facts(run, machine, expected ? &*expected : nullptr);
  const KeyQuantitiesOfRun keys{machine, sampled, {profile.metrics, chip, run.key.source}, expected, usual};
  const std::vector<bool> waited_for = FindLaunchWaits(run, keys, options, &report);
  const Folding folding = FoldLaunches(keys, waited_for, run, options, &facts);
  AddTotals(folding, report);
  report.validation = std::any_of(run.launches.begin(), run.launches.end(),
                                  [](const auto& one) { return one.first.phase == Phase::kEval; });
  const double total_ns = report.total.time_ns();
  report.rows = MakeRows(options.by, folding.rows, run, sampled, total_ns);
  report.phases = MakeRows(By::kPhase, folding.phases, run, sampled, total_ns);
  if (options.by == By::kLayer) {
    report.layer_phases = MakeRows(By::kLayer, folding.layer_phases, run, sampled, total_ns);
  }
  report.group_phases = MakeRows(By::kClass, folding.group_phases, run, sampled, total_ns);
  if (run.key.source != SourceKind::kEstimated) {
    Folded whole = folding.whole;
    whole.series = sampled.total();
    Row total;
    AddIntervals(sampled, whole, &total);
    report.total_time = total.time;
    report.total_bytes = total.bytes;
    report.sampled_steps = sampled.steps(Sampled::kTime).size();
    report.slow_sampled_steps = std::max(sampled.slow(Sampled::kTime), sampled.slow(Sampled::kBytes));
    report.slow_steps = run.steps.slow;
    report.slow_extra_ns = static_cast<double>(run.steps.slow_extra_ns);
    report.timed_steps = run.steps.duration_ns.n;
  }
  report.sm_hz = MeasuredSmClock(run, profile.metrics);
  report.roofs = MakeRoofs(machine, report.total, report.sm_hz, options.roofs);
  if (options.theory != nullptr) AddTheory(*options.theory, run, options.depth, report);
  AddRatios(report);
  report.alarms = CheckInvariants(profile, run, chip, report);
  report.headline = MakeHeadline(report, MakeRows(By::kLayer, folding.layers, run, sampled, total_ns));
  report.advice = Advise(ShippedRules(), facts.Values(report));
  return report;
}

std::vector<Report> FoldProfile(const Profile& profile, const std::function<Machine(const Run&)>& machine_for,
                                const FoldOptions& options) {
  std::vector<Report> reports;
  for (const auto& [key, run] : profile.runs) {
    reports.push_back(FoldRun(profile, run, machine_for(run), options));
  }
  return reports;
}

}  // namespace rfinject::cli
