#include "cli/report/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"
#include "cli/model/statistics.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/rows/roofs.h"
#include "cli/report/run_list.h"

namespace rfinject::cli {
namespace {

Cell Quotient(double a, double b) { return b > 0 ? Cell{a / b} : Cell{}; }

Sums OfPhase(const Report& report, Phase phase) {
  Sums sums;
  for (const Row& row : report.phases) {
    if (row.phase == phase) sums.Add(row.sums);
  }
  return sums;
}

std::string PolicyText(const PolicyInfo& policy) {
  return policy.autocast_dtype.empty() ? "" : "autocast " + policy.autocast_dtype;
}

SweepRun MakeRun(const Report& report) {
  SweepRun run;
  run.model = ModelName(report.run, report.processes);
  run.gpu = GpuTitle(report.run);
  run.source = report.run.source;
  run.policy = PolicyText(report.run.policy);
  run.batch_size = report.run.batch_size;
  if (const ProcessInfo* first = FirstProcess(report.processes)) {
    run.started = StartText(first->start_unix_ns);
    run.command = CommandText(first->argv);
  }
  run.training = report.run.training;
  for (const ModelInfo& model : report.models) {
    run.parameters += model.parameters;
    run.parameter_bytes += model.parameter_bytes;
  }
  run.steps = report.steps;
  run.samples = report.samples;
  run.whole = report.total;
  run.forward = OfPhase(report, Phase::kForward);
  run.backward = OfPhase(report, Phase::kBackward);
  run.optimizer = OfPhase(report, Phase::kOptimizer);
  run.whole_derived = report.total_derived;
  run.forward_derived = Derive(run.forward);
  run.wall_ns = report.step_wall_ns * static_cast<double>(report.steps);
  run.samples_over_wall = run.source == SourceKind::kMeasured && run.wall_ns > 0;
  run.step_host_ns = report.step_host_ns;
  run.step_ns = report.step_ns;
  run.launch_bound = report.launch_bound();
  run.step_host_of = report.step_host_of;
  const double time_ns = run.samples_over_wall ? run.wall_ns
                         : run.host_given()    ? run.step_ns * run.step_count()
                                               : run.whole.time_ns();
  if (run.samples > 0 && time_ns > 0) run.samples_per_s = static_cast<double>(run.samples) / time_ns * 1e9;
  run.memory_peak_bytes = report.memory_peak_bytes;
  run.alarms = report.alarms.size();
  std::set<std::string> ids;
  for (const Alarm& alarm : report.alarms) ids.insert(alarm.id);
  run.alarm_ids.assign(ids.begin(), ids.end());
  return run;
}

// A run without FLOP is one whose FLOP are not known.
Cell Intensity(const Sums& sums) {
  return sums.total_flop() > 0 ? Quotient(sums.total_flop(), sums.dram_bytes()) : Cell();
}

std::string_view StepBound(const SweepRun& run) {
  if (run.step_ns <= 0) return "";
  return run.launch_bound ? "launch" : "GPU";
}

// Columns that are correlated with one another, within a group.
constexpr auto kCorrelated = std::to_array<std::string_view>(
    {"batch_size", "parameters", "flop_per_step", "dram_bytes_per_step", "oi_flop_per_byte", "gpu_time_per_step_ns",
     "samples_per_s", "attainable_share", "memory_peak_bytes"});

constexpr auto kSweepColumns =
    std::to_array<ColumnOf<SweepRun>>({
        {TextColumn("source", "measured, estimated or imported."),
         [](const SweepRun& r) { return Cell{std::string(SourceName(r.source))}; }},
        {TextColumn("model", "Class name of the root module."), [](const SweepRun& r) { return Cell{r.model}; }},
        {TextColumn("gpu", "The GPU, or the one that was estimated."), [](const SweepRun& r) { return Cell{r.gpu}; }},
        {TextColumn("policy", "What differs from the defaults: TF32, autocast and the like."),
         [](const SweepRun& r) { return TextCell(r.policy); }},
        {TextColumn("mode", "training or inference."),
         [](const SweepRun& r) { return Cell{std::string(r.training ? "training" : "inference")}; }},
        {CountColumn("steps", "Measured steps; of inference, batches."),
         [](const SweepRun& r) { return Cell{r.steps}; }},
        {CountColumn("samples", "Samples of all steps; 0 where an input does not tell its batch."),
         [](const SweepRun& r) { return Cell{r.samples}; }},
        {CountColumn("batch_size", "Samples that most steps have."),
         [](const SweepRun& r) { return KnownCell(static_cast<double>(r.batch_size)); }},
        {TextColumn("short_mode").ShownOnly(),
         [](const SweepRun& r) { return Cell{std::string(r.training ? "train" : "infer")}; }},
        {UnitColumn("parameters", "", "Parameters of the model."),
         [](const SweepRun& r) { return KnownCell(static_cast<double>(r.parameters)); }},
        {UnitColumn("parameter_bytes", "B", "Bytes of these parameters."),
         [](const SweepRun& r) { return KnownCell(static_cast<double>(r.parameter_bytes)); }},
        {UnitColumn("model_flop_per_step", "FLOP", "FLOP that the layers' mathematics asks for."),
         [](const SweepRun& r) { return KnownCell(r.whole.model_flop() / r.step_count()); }},
        {UnitColumn("flop_per_step", "FLOP", "Executed FLOP."),
         [](const SweepRun& r) { return KnownCell(r.whole.total_flop() / r.step_count()); }},
        {UnitColumn("dram_bytes_per_step", "B", "Bytes read from and written to the GPU's memory."),
         [](const SweepRun& r) { return KnownCell(r.whole.dram_bytes() / r.step_count()); }},
        {PlainColumn("oi_flop_per_byte", "Operational intensity: FLOP over DRAM bytes.", "", "FLOP/B").OfCounters(),
         [](const SweepRun& r) { return Intensity(r.whole); }},
        {UnitColumn("gpu_time_per_step_ns", "ns", "GPU time of a step."),
         [](const SweepRun& r) { return KnownCell(r.whole.time_ns() / r.step_count()); }},
        {UnitColumn("host_time_per_step_ns", "ns",
                    "Of an estimate with --host-us, or on a virtual GPU: what the host takes to launch a step."),
         [](const SweepRun& r) { return KnownCell(r.step_host_ns); }},
        {UnitColumn("step_time_ns", "ns",
                    "With that: a step by the clock, the longer of both along the queue of launches."),
         [](const SweepRun& r) { return KnownCell(r.step_ns); }},
        {TextColumn("step_bound", "With that: launch where the GPU waits for launches, else GPU."),
         [](const SweepRun& r) { return TextCell(StepBound(r)); }},
        {TextColumn("host_time_of", "Whose time that is: given, or of the machine that the program ran on."),
         [](const SweepRun& r) { return TextCell(r.step_ns <= 0 ? "" : HostTimeName(r.step_host_of)); }},
        {UnitColumn("wall_time_per_step_ns", "ns", "A step by the clock."),
         [](const SweepRun& r) { return KnownCell(r.wall_ns / r.step_count()); }},
        {PlainColumn("samples_per_s", "Samples over the time that samples_per_s_over names."),
         [](const SweepRun& r) { return KnownCell(r.samples_per_s); }},
        {UnitColumn("performance_flop_per_s", "FLOP/s", "FLOP over GPU time."),
         [](const SweepRun& r) { return KnownCell(r.whole_derived.performance_flop_per_s); }},
        {UnitColumn("attainable_flop_per_s", "FLOP/s", "FLOP over the least time that the roofs allow."),
         [](const SweepRun& r) { return KnownCell(r.whole_derived.attainable_flop_per_s); }},
        {ShareColumn("attainable_share", "Least time over GPU time: 1 is at the roof."),
         [](const SweepRun& r) { return r.whole.least_ns() > 0 ? Cell{r.whole_derived.attainable_share} : Cell{}; }},
        {UnitColumn("least_compute_time_per_step_ns", "ns", "Time that the FLOP need at the peaks of their pipes."),
         [](const SweepRun& r) { return KnownCell(r.whole.least_compute_ns() / r.step_count()); }},
        {UnitColumn("least_memory_time_per_step_ns", "ns", "Time that the DRAM bytes need at full bandwidth."),
         [](const SweepRun& r) { return KnownCell(r.whole.least_memory_ns() / r.step_count()); }},
        {UnitColumn("least_time_per_step_ns", "ns", "Kernel by kernel the longer of both, summed."),
         [](const SweepRun& r) { return KnownCell(r.whole.least_ns() / r.step_count()); }},
        {UnitColumn("memory_peak_bytes", "B", "The most device memory that was in use."),
         [](const SweepRun& r) { return KnownCell(static_cast<double>(r.memory_peak_bytes)); }},
        {UnitColumn("forward_flop_per_step", "FLOP", "Executed FLOP of the forward."),
         [](const SweepRun& r) { return KnownCell(r.forward.total_flop() / r.step_count()); }},
        {UnitColumn("forward_dram_bytes_per_step", "B", "DRAM bytes of the forward."),
         [](const SweepRun& r) { return KnownCell(r.forward.dram_bytes() / r.step_count()); }},
        {UnitColumn("forward_time_per_step_ns", "ns", "GPU time of the forward."),
         [](const SweepRun& r) { return KnownCell(r.forward.time_ns() / r.step_count()); }},
        {ShareColumn("forward_time_share").ShownOnly(),
         [](const SweepRun& r) { return Quotient(r.forward.time_ns(), r.whole.time_ns()); }},
        {UnitColumn("forward_least_time_per_step_ns", "ns", "Least time of the forward."),
         [](const SweepRun& r) { return KnownCell(r.forward.least_ns() / r.step_count()); }},
        {PlainColumn("forward_oi_flop_per_byte", "Operational intensity of the forward.", "", "FLOP/B").OfCounters(),
         [](const SweepRun& r) { return Intensity(r.forward); }},
        {ShareColumn("forward_attainable_share", "The forward's least time over its GPU time."),
         [](const SweepRun& r) {
           return r.forward.least_ns() > 0 ? Cell{r.forward_derived.attainable_share} : Cell{};
         }},
        {UnitColumn("backward_flop_per_step", "FLOP", "Executed FLOP of the backward."),
         [](const SweepRun& r) { return KnownCell(r.backward.total_flop() / r.step_count()); }},
        {UnitColumn("backward_dram_bytes_per_step", "B", "DRAM bytes of the backward."),
         [](const SweepRun& r) { return KnownCell(r.backward.dram_bytes() / r.step_count()); }},
        {UnitColumn("backward_time_per_step_ns", "ns", "GPU time of the backward."),
         [](const SweepRun& r) { return KnownCell(r.backward.time_ns() / r.step_count()); }},
        {UnitColumn("optimizer_time_per_step_ns", "ns", "The optimizer's GPU time."),
         [](const SweepRun& r) { return KnownCell(r.optimizer.time_ns() / r.step_count()); }},
        {PlainColumn("backward_flop_per_forward_flop", "The backward's FLOP over the forward's."),
         [](const SweepRun& r) {
           return r.backward.total_flop() > 0 ? Quotient(r.backward.total_flop(), r.forward.total_flop()) : Cell{};
         }},
        {PlainColumn("backward_time_per_forward_time", "The backward's GPU time over the forward's."),
         [](const SweepRun& r) {
           return r.backward.time_ns() > 0 ? Quotient(r.backward.time_ns(), r.forward.time_ns()) : Cell{};
         }},
        {TextColumn("samples_per_s_over", "wall_time, step_time (with --host-us) or gpu_time."),
         [](const SweepRun& r) {
           return TextCell(r.samples_per_s <= 0  ? ""
                           : r.samples_over_wall ? "wall_time"
                           : r.host_given()      ? "step_time"
                                                 : "gpu_time");
         }},
        {TextColumn("bound",
                    "What keeps most of the time from being shorter: launch, memory, compute, PCIe or NVLink."),
         [](const SweepRun& r) { return TextCell(r.whole.least_ns() <= 0 ? "" : BoundName(r.whole_derived.bound)); }},
        {TextColumn("started", "When the run began, local time."),
         [](const SweepRun& r) { return TextCell(r.started); }},
        {TextColumn("command", "The command of the run."), [](const SweepRun& r) { return TextCell(r.command); }},
        {CountColumn("alarms", "How many alarms were raised."),
         [](const SweepRun& r) { return Cell{uint64_t{r.alarms}}; }},
        {TextColumn("alarm_ids", "Which they are."),
         [](const SweepRun& r) { return TextCell(absl::StrJoin(r.alarm_ids, " ")); }},
    });

std::vector<SweepCorrelation> Correlate(const std::vector<SweepRun>& runs, const std::vector<size_t>& members) {
  std::vector<size_t> columns;
  std::vector<std::vector<double>> values;
  for (size_t c = 0; c < kSweepColumns.size(); ++c) {
    if (std::ranges::find(kCorrelated, kSweepColumns[c].info.name) == kCorrelated.end()) continue;
    columns.push_back(c);
    std::vector<double>& list = values.emplace_back();
    for (const size_t i : members) {
      const Cell cell = kSweepColumns[c].value(runs[i]);
      const bool known = !std::holds_alternative<std::monostate>(cell);
      list.push_back(known ? NumberIn(cell) : std::numeric_limits<double>::quiet_NaN());
    }
  }
  std::vector<SweepCorrelation> correlations;
  for (size_t a = 0; a < columns.size(); ++a) {
    for (size_t b = a + 1; b < columns.size(); ++b) {
      SweepCorrelation one{columns[a], columns[b], SpearmanCorrelation(values[a], values[b]), 0};
      for (size_t i = 0; i < members.size(); ++i) one.runs += std::isfinite(values[a][i] + values[b][i]);
      correlations.push_back(one);
    }
  }
  return correlations;
}

}  // namespace

std::span<const ColumnOf<SweepRun>> SweepColumns() { return kSweepColumns; }

Sweep MakeSweep(std::span<const Report> reports) {
  Sweep sweep;
  for (const Report& report : reports) sweep.runs.push_back(MakeRun(report));
  std::stable_sort(sweep.runs.begin(), sweep.runs.end(), [](const SweepRun& a, const SweepRun& b) {
    // Training before inference.
    return std::tuple(a.gpu, a.source, a.parameters, a.model, !a.training, a.policy, a.batch_size, a.started) <
           std::tuple(b.gpu, b.source, b.parameters, b.model, !b.training, b.policy, b.batch_size, b.started);
  });
  for (size_t i = 0; i + 1 < sweep.runs.size(); ++i) {
    SweepRun &a = sweep.runs[i], &b = sweep.runs[i + 1];
    if (std::tie(a.gpu, a.source, a.model, a.training, a.policy, a.batch_size) ==
        std::tie(b.gpu, b.source, b.model, b.training, b.policy, b.batch_size)) {
      a.has_twin = b.has_twin = true;
    }
  }
  std::set<uint64_t> batches;
  std::set<bool> modes;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const SweepRun& run = sweep.runs[i];
    batches.insert(run.batch_size);
    modes.insert(run.training);
    if (sweep.groups.empty() || sweep.groups.back().gpu != run.gpu || sweep.groups.back().source != run.source) {
      sweep.groups.push_back({run.gpu, run.source, {}, {}});
    }
    sweep.groups.back().runs.push_back(i);
  }
  for (SweepGroup& group : sweep.groups) group.correlations = Correlate(sweep.runs, group.runs);
  sweep.several_batches = batches.size() > 1;
  sweep.several_modes = modes.size() > 1;
  return sweep;
}

std::string SweepRunTitle(const Sweep& sweep, const SweepRun& run) {
  std::string title = run.model;
  if (sweep.several_batches && run.batch_size > 0) title += " b" + std::to_string(run.batch_size);
  if (sweep.several_modes && !run.training) title += " inference";
  if (!run.policy.empty()) title += " " + run.policy;
  if (run.has_twin && !run.started.empty()) title += " of " + run.started;
  return title;
}

RowSet RunsOf(const Sweep& sweep, const std::vector<size_t>& which) {
  RowSet set{.size = which.size(), .columns = {}};
  Append(
      SweepColumns(), [&runs = sweep.runs, which](size_t i) -> const SweepRun& { return runs[which[i]]; }, &set);
  return set;
}

std::vector<Report> SweepPictures(const Sweep& sweep, std::span<const Report> reports) {
  std::vector<Report> pictures;
  for (const SweepGroup& group : sweep.groups) {
    Report picture;
    picture.by = By::kModel;
    picture.rows_are_runs = true;
    // Everything that is the GPU's comes from a report of it; the batch and the policy are facts of the rows.
    const auto same = std::find_if(reports.begin(), reports.end(), [&](const Report& report) {
      return GpuTitle(report.run) == group.gpu && report.run.source == group.source;
    });
    picture.run.source = group.source;
    picture.run.gpu = picture.device_name = group.gpu;
    picture.run.models = {std::to_string(group.runs.size()) + (group.runs.size() == 1 ? " run" : " runs")};
    if (same != reports.end()) {
      picture.run.estimated_gpu = same->run.estimated_gpu;
      picture.run.collector = same->run.collector;
      picture.machine = same->machine;
      picture.roofs = same->roofs;
    }
    for (RoofLine& roof : picture.roofs) roof.used = false;
    // Rows of different numbers of steps become comparable as one step each.
    picture.steps = 1;
    for (const size_t i : group.runs) {
      const SweepRun& run = sweep.runs[i];
      Row row;
      row.model = SweepRunTitle(sweep, run);
      row.parameters = run.parameters;
      row.sums = run.whole.OfOneStep(run.step_count());
      row.derived = Derive(row.sums);
      for (RoofLine& roof : picture.roofs) roof.used = roof.used || UsesRoof(row.sums, roof);
      picture.total.Add(row.sums);
      picture.rows.push_back(std::move(row));
    }
    for (Row& row : picture.rows) {
      if (picture.total.time_ns() > 0) row.time_share = row.sums.time_ns() / picture.total.time_ns();
    }
    picture.total_derived = Derive(picture.total);
    picture.step_gpu_ns = picture.total.time_ns();
    picture.counters_share =
        picture.total.time_ns() > 0 ? picture.total.time_with_counters_ns() / picture.total.time_ns() : 0;
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace rfinject::cli
