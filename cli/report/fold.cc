#include "cli/report/fold.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cli/report/advice/advice.h"
#include "cli/report/advice/facts.h"
#include "cli/report/alarms/invariants.h"
#include "cli/report/keys/bounds.h"
#include "cli/report/keys/expect.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/report/keys/sampled_run.h"
#include "cli/report/rows/grouping.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

// What the trace says about the run, besides its launches.
Report DescribeRun(const Run& run, const Machine& machine, StepBy step_by) {
  Report report;
  report.run = run.key;
  report.process = ProcessesOf(run);
  report.device = {.name = run.key.gpu, .list = run.devices, .clock = SampledClockOf(run)};
  report.machine = machine;
  report.steps = StepsOf(run, step_by);
  report.waits = WaitsOf(run);
  report.clock = ClockOf(run, report.steps, report.waits);
  report.memory = {.peak_bytes = run.steps.memory_peak_bytes};
  report.sampling = PmSamplingOf(run);
  trace::ForEachList([](const auto* from, auto* into) { into->assign(from->begin(), from->end()); }, &run.kept,
                     &report.kept);
  std::ranges::stable_sort(report.kept.graph_break, std::ranges::greater{},
                           [](const trace::GraphBreak& one) { return std::pair(one.bytes, one.count); });
  return report;
}

// Reads the quantities of a run's launch keys one by one. Who needs all of them reads them again, which takes less
// than a microsecond each, so that a run of many keys is not held twice.
struct KeyQuantitiesOfRun {
  const Machine& machine;
  const SampledRun& sampled;
  const KeyReader reader;
  const std::optional<ExpectedTimes>& expected;
  const std::optional<ExpectedTimes>& usual;
  const std::optional<ExpectedTimes>& other;
  const bool measured;

  // All but the bound time.
  KeyQuantities Read(const LaunchKey& key, const LaunchStats& stats) const {
    KeyQuantities quantities = ReadSampled(reader, sampled, key, stats);
    if (expected) ApplyExpected(key, *expected, quantities);
    // What bytes a kernel moves that were not counted may be what it is bound by.
    if (!measured || quantities.has_bytes) AddLeastTimes(machine, quantities.sums);
    if (usual) AddUsual(key, stats, *usual, &quantities.sums);
    if (usual && other) AddOther(key, stats, *other, &quantities.sums);
    return quantities;
  }
};

// Which launch keys the GPU waits for, in the order of run.launches. Of an estimate the queue says it. What ran on a
// GPU has idle time of its own (StepWaits::launch_gaps), and its kernels are bound by what they do.
std::vector<bool> FindLaunchWaits(const Run& run, const KeyQuantitiesOfRun& keys, const FoldOptions& options,
                                  Report* report) {
  std::vector<double> times;
  times.reserve(run.launches.size());
  for (const auto& [key, stats] : run.launches) times.push_back(keys.Read(key, stats).sums.time_ns());
  report->queue.floor_ns = options.launch_floor_ns;
  if (run.key.source != SourceKind::kEstimated) return std::vector<bool>(run.launches.size());
  report->queue.interval = IntervalOf(options.host_ns_per_launch, options.launch_floor_ns);
  return AddLaunchWaits(run, times, report->steps, report->waits, &report->queue);
}

// The groupings that the rows of a report are made of.
struct Groupings {
  RowGrouping rows, layer_phases, group_phases;

  Groupings(By by, size_t depth)
      : rows{.by = by, .depth = depth},
        layer_phases{.by = By::kLayer, .split = true, .depth = depth},
        group_phases{.by = By::kClass, .split = true, .depth = depth} {}
  bool has_layer_phases() const { return rows.by == By::kLayer; }
  bool has_group_phases() const { return rows.by == By::kClass; }
};
constexpr RowGrouping kPhases = {.by = By::kPhase}, kLayers = {.by = By::kLayer};

// One pass over the launch keys; each consumer adds what it needs.
void ReadKeys(const KeyQuantitiesOfRun& keys, const std::vector<bool>& waited_for, const Run& run, RowFolder* rows,
              FactCollector* facts, AttributionCollector* attribution, Report* report) {
  size_t place = 0;
  for (const auto& [key, stats] : run.launches) {
    KeyQuantities quantities = keys.Read(key, stats);
    AddBoundTime(waited_for[place++], quantities.sums);
    // An estimate leaves out what is zero; hardware that counted nothing must say so.
    const bool counted = quantities.has_bytes && (quantities.has_flop || run.key.source == SourceKind::kEstimated);
    if (counted) quantities.sums[Quantity::kTimeWithCounters] = quantities.sums.time_ns();
    if (quantities.sums[Quantity::kPcieBytes] > 0) quantities.sums[Quantity::kCopyTime] = quantities.sums.time_ns();
    facts->Add(key, stats, quantities.sums);
    rows->Add(key, stats, quantities);
    attribution->Add(key, stats, quantities);
    const double least_ns = quantities.least_launch_ns;
    double& shortest_ns = report->queue.shortest_ns;
    if (least_ns > 0 && (shortest_ns == 0 || least_ns < shortest_ns)) shortest_ns = least_ns;
  }
  facts->Finish();
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

}  // namespace

std::string ChipOf(const Run& run) {
  for (const DeviceInfo& device : run.devices) {
    if (!device.chip.empty()) return device.chip;
  }
  const Gpu* gpu = FindGpu(run.key.estimated_gpu.empty() ? run.key.gpu : run.key.estimated_gpu);
  return gpu != nullptr ? std::string(gpu->chip) : std::string();
}

std::vector<Report> FoldRunBy(const Profile& profile, const Run& run, const Machine& machine,
                              const FoldOptions& options, std::span<const By> groupings) {
  Report whole = DescribeRun(run, machine, options.step_by);
  const std::string chip = ChipOf(run);
  const SampledRun sampled(profile, run);
  const Calibration& calibration = options.calibration != nullptr ? *options.calibration : Calibration::Shipped();
  const std::optional<ExpectedTimes> expected = ModelOf(run, calibration);
  const std::optional<ExpectedTimes> usual = UsualModelOf(run, machine.name, calibration);
  if (expected) whole.device.own_calibration = calibration.OwnSource(run.key.estimated_gpu);
  std::optional<ExpectedTimes> other;
  if (options.on != nullptr) other.emplace(*options.on, calibration);
  const KeyQuantitiesOfRun keys{machine, sampled, {profile.metrics, chip, run},           expected,
                                usual,   other,   run.key.source == SourceKind::kMeasured};
  const std::vector<bool> waited_for = FindLaunchWaits(run, keys, options, &whole);

  const bool measured = run.key.source == SourceKind::kMeasured;
  const std::optional<ExpectedTimes>& model = measured ? usual : expected;
  FactCollector facts(run, machine, model ? &*model : nullptr);
  AttributionCollector attribution(run);
  RowFolder rows(run, sampled);
  rows.Want(kPhases);
  rows.Want(kLayers);
  for (const By by : groupings) {
    const Groupings wanted(by, options.depth);
    rows.Want(wanted.rows);
    if (wanted.has_layer_phases()) rows.Want(wanted.layer_phases);
    if (wanted.has_group_phases()) rows.Want(wanted.group_phases);
  }
  ReadKeys(keys, waited_for, run, &rows, &facts, &attribution, &whole);

  whole.total = rows.Total();
  const Sums& sums = whole.total.sums;
  const double total_ns = sums.time_ns();
  whole.attribution = attribution.Found(sums);
  if (whole.steps.count > 0) {
    whole.clock.gpu_ns = total_ns / whole.steps.divisor();
    whole.sampling.kernel_dram_bytes = sums.dram_bytes() / whole.steps.divisor();
  }
  whole.queue.launch_bound = whole.queue.gpu_waits_share > 0 && whole.queue.host_ns > whole.clock.gpu_ns;
  whole.slow = SlowStepsOf(run, sampled);
  whole.device.sm_hz = MeasuredSmClock(run, profile.metrics);
  if (whole.device.sm_hz == 0) whole.device.sm_hz = whole.device.clock.mean_hz;
  whole.roofs = MakeRoofs(machine, sums, whole.device.sm_hz, options.roofs);
  if (options.on != nullptr) {
    whole.device.other = OtherGpuOf(std::string(options.on->name), sums, whole.steps.divisor());
  }
  whole.phases = rows.Rows(kPhases, total_ns);

  whole.advice = Advise(ShippedRules(), facts.Values(whole));

  const std::vector<Row> layers = rows.Rows(kLayers, total_ns);
  const AlarmList of_keys = CheckKeys(profile, run, machine, chip);
  std::vector<Report> reports;
  for (const By by : groupings) {
    Report& report = reports.emplace_back(whole);
    const Groupings wanted(by, options.depth);
    report.by = by;
    report.rows = rows.Rows(wanted.rows, total_ns);
    if (wanted.has_layer_phases()) report.layer_phases = rows.Rows(wanted.layer_phases, total_ns);
    if (wanted.has_group_phases()) report.group_phases = rows.Rows(wanted.group_phases, total_ns);
    if (options.theory != nullptr) AddTheory(*options.theory, run, options.depth, report);
    for (std::vector<Row>* const scaled :
         {&report.rows, &report.phases, &report.layer_phases, &report.group_phases}) {
      ScaleOther(report.device.other, *scaled);
    }
    ScaleOther(report.device.other, std::span(&report.total, 1));
    report.alarms = CheckReport(of_keys, run, report);
    report.headline = MakeHeadline(report, layers);
  }
  return reports;
}

Report FoldRun(const Profile& profile, const Run& run, const Machine& machine, const FoldOptions& options) {
  return std::move(FoldRunBy(profile, run, machine, options, std::span(&options.by, 1)).front());
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
