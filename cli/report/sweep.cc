#include "cli/report/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "absl/strings/str_join.h"
#include "cli/model/statistics.h"
#include "cli/report/roofs.h"
#include "cli/report/run_list.h"
#include "cli/report/run_name.h"

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

constexpr auto kSweepColumns = std::to_array<SweepColumn>({
    {{{.name = "source", .help = "measured, estimated or imported.", .kind = Kind::kText},
      [](const SweepRun& r) { return Cell{std::string(SourceName(r.source))}; }}},
    {{{.name = "model", .help = "Class name of the root module.", .kind = Kind::kText},
      [](const SweepRun& r) { return Cell{r.model}; }}},
    {{{.name = "gpu", .help = "The GPU, or the one that was estimated.", .kind = Kind::kText},
      [](const SweepRun& r) { return Cell{r.gpu}; }}},
    {{{.name = "policy", .help = "What differs from the defaults: TF32, autocast and the like.", .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(r.policy); }}},
    {{{.name = "mode", .help = "training or inference.", .kind = Kind::kText},
      [](const SweepRun& r) { return Cell{std::string(r.training ? "training" : "inference")}; }}},
    {{{.name = "steps", .help = "Measured steps; of inference, batches.", .kind = Kind::kCount},
      [](const SweepRun& r) { return Cell{r.steps}; }}},
    {{{.name = "samples",
       .help = "Samples of all steps; 0 where an input does not tell its batch.",
       .kind = Kind::kCount},
      [](const SweepRun& r) { return Cell{r.samples}; }}},
    {{{.name = "batch_size", .help = "Samples that most steps have.", .kind = Kind::kCount},
      [](const SweepRun& r) { return KnownCell(static_cast<double>(r.batch_size)); }},
     true},
    {{{.name = "short_mode", .kind = Kind::kText, .data = false},
      [](const SweepRun& r) { return Cell{std::string(r.training ? "train" : "infer")}; }}},
    {{{.name = "parameters", .help = "Parameters of the model.", .kind = Kind::kUnit},
      [](const SweepRun& r) { return KnownCell(static_cast<double>(r.parameters)); }},
     true},
    {{{.name = "parameter_bytes", .help = "Bytes of these parameters.", .kind = Kind::kUnit, .unit = "B"},
      [](const SweepRun& r) { return KnownCell(static_cast<double>(r.parameter_bytes)); }}},
    {{{.name = "model_flop_per_step",
       .help = "FLOP that the layers' mathematics asks for.",
       .kind = Kind::kUnit,
       .unit = "FLOP"},
      [](const SweepRun& r) { return KnownCell(r.whole.model_flop() / r.step_count()); }}},
    {{{.name = "flop_per_step", .help = "Executed FLOP.", .kind = Kind::kUnit, .unit = "FLOP"},
      [](const SweepRun& r) { return KnownCell(r.whole.total_flop() / r.step_count()); }},
     true},
    {{{.name = "dram_bytes_per_step",
       .help = "Bytes read from and written to the GPU's memory.",
       .kind = Kind::kUnit,
       .unit = "B"},
      [](const SweepRun& r) { return KnownCell(r.whole.dram_bytes() / r.step_count()); }},
     true},
    {{{.name = "oi_flop_per_byte",
       .help = "Operational intensity: FLOP over DRAM bytes.",
       .kind = Kind::kPlain,
       .unit = "FLOP/B",
       .of_counters = true},
      [](const SweepRun& r) { return Intensity(r.whole); }},
     true},
    {{{.name = "gpu_time_per_step_ns", .help = "GPU time of a step.", .kind = Kind::kUnit, .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.whole.time_ns() / r.step_count()); }},
     true},
    {{{.name = "host_time_per_step_ns",
       .help = "Of an estimate with --host-us, or on a virtual GPU: what the host takes to launch a step.",
       .kind = Kind::kUnit,
       .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.step_host_ns); }}},
    {{{.name = "step_time_ns",
       .help = "With that: a step by the clock, the longer of both along the queue of launches.",
       .kind = Kind::kUnit,
       .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.step_ns); }}},
    {{{.name = "step_bound",
       .help = "With that: launch where the GPU waits for launches, else GPU.",
       .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(r.step_ns <= 0   ? ""
                                              : r.launch_bound ? "launch"
                                                               : "GPU"); }}},
    {{{.name = "host_time_of",
       .help = "Whose time that is: given, or of the machine that the program ran on.",
       .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(r.step_ns <= 0 ? "" : HostTimeName(r.step_host_of)); }}},
    {{{.name = "wall_time_per_step_ns", .help = "A step by the clock.", .kind = Kind::kUnit, .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.wall_ns / r.step_count()); }}},
    {{{.name = "samples_per_s", .help = "Samples over the time that samples_per_s_over names.", .kind = Kind::kPlain},
      [](const SweepRun& r) { return KnownCell(r.samples_per_s); }},
     true},
    {{{.name = "performance_flop_per_s", .help = "FLOP over GPU time.", .kind = Kind::kUnit, .unit = "FLOP/s"},
      [](const SweepRun& r) { return KnownCell(r.whole_derived.performance_flop_per_s); }}},
    {{{.name = "attainable_flop_per_s",
       .help = "FLOP over the least time that the roofs allow.",
       .kind = Kind::kUnit,
       .unit = "FLOP/s"},
      [](const SweepRun& r) { return KnownCell(r.whole_derived.attainable_flop_per_s); }}},
    {{{.name = "attainable_share", .help = "Least time over GPU time: 1 is at the roof.", .kind = Kind::kShare},
      [](const SweepRun& r) { return r.whole.least_ns() > 0 ? Cell{r.whole_derived.attainable_share} : Cell{}; }},
     true},
    {{{.name = "least_compute_time_per_step_ns",
       .help = "Time that the FLOP need at the peaks of their pipes.",
       .kind = Kind::kUnit,
       .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.whole.least_compute_ns() / r.step_count()); }}},
    {{{.name = "least_memory_time_per_step_ns",
       .help = "Time that the DRAM bytes need at full bandwidth.",
       .kind = Kind::kUnit,
       .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.whole.least_memory_ns() / r.step_count()); }}},
    {{{.name = "least_time_per_step_ns",
       .help = "Kernel by kernel the longer of both, summed.",
       .kind = Kind::kUnit,
       .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.whole.least_ns() / r.step_count()); }}},
    {{{.name = "memory_peak_bytes",
       .help = "The most device memory that was in use.",
       .kind = Kind::kUnit,
       .unit = "B"},
      [](const SweepRun& r) { return KnownCell(static_cast<double>(r.memory_peak_bytes)); }},
     true},
    {{{.name = "forward_flop_per_step", .help = "Executed FLOP of the forward.", .kind = Kind::kUnit, .unit = "FLOP"},
      [](const SweepRun& r) { return KnownCell(r.forward.total_flop() / r.step_count()); }}},
    {{{.name = "forward_dram_bytes_per_step", .help = "DRAM bytes of the forward.", .kind = Kind::kUnit, .unit = "B"},
      [](const SweepRun& r) { return KnownCell(r.forward.dram_bytes() / r.step_count()); }}},
    {{{.name = "forward_time_per_step_ns", .help = "GPU time of the forward.", .kind = Kind::kUnit, .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.forward.time_ns() / r.step_count()); }}},
    {{{.name = "forward_time_share", .kind = Kind::kShare, .data = false},
      [](const SweepRun& r) { return Quotient(r.forward.time_ns(), r.whole.time_ns()); }}},
    {{{.name = "forward_least_time_per_step_ns",
       .help = "Least time of the forward.",
       .kind = Kind::kUnit,
       .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.forward.least_ns() / r.step_count()); }}},
    {{{.name = "forward_oi_flop_per_byte",
       .help = "Operational intensity of the forward.",
       .kind = Kind::kPlain,
       .unit = "FLOP/B",
       .of_counters = true},
      [](const SweepRun& r) { return Intensity(r.forward); }}},
    {{{.name = "forward_attainable_share",
       .help = "The forward's least time over its GPU time.",
       .kind = Kind::kShare},
      [](const SweepRun& r) {
        return r.forward.least_ns() > 0 ? Cell{r.forward_derived.attainable_share} : Cell{};
      }}},
    {{{.name = "backward_flop_per_step",
       .help = "Executed FLOP of the backward.",
       .kind = Kind::kUnit,
       .unit = "FLOP"},
      [](const SweepRun& r) { return KnownCell(r.backward.total_flop() / r.step_count()); }}},
    {{{.name = "backward_dram_bytes_per_step",
       .help = "DRAM bytes of the backward.",
       .kind = Kind::kUnit,
       .unit = "B"},
      [](const SweepRun& r) { return KnownCell(r.backward.dram_bytes() / r.step_count()); }}},
    {{{.name = "backward_time_per_step_ns", .help = "GPU time of the backward.", .kind = Kind::kUnit, .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.backward.time_ns() / r.step_count()); }}},
    {{{.name = "optimizer_time_per_step_ns", .help = "The optimizer's GPU time.", .kind = Kind::kUnit, .unit = "ns"},
      [](const SweepRun& r) { return KnownCell(r.optimizer.time_ns() / r.step_count()); }}},
    {{{.name = "backward_flop_per_forward_flop",
       .help = "The backward's FLOP over the forward's.",
       .kind = Kind::kPlain},
      [](const SweepRun& r) {
        return r.backward.total_flop() > 0 ? Quotient(r.backward.total_flop(), r.forward.total_flop()) : Cell{};
      }}},
    {{{.name = "backward_time_per_forward_time",
       .help = "The backward's GPU time over the forward's.",
       .kind = Kind::kPlain},
      [](const SweepRun& r) {
        return r.backward.time_ns() > 0 ? Quotient(r.backward.time_ns(), r.forward.time_ns()) : Cell{};
      }}},
    {{{.name = "samples_per_s_over",
       .help = "wall_time, step_time (with --host-us) or gpu_time.",
       .kind = Kind::kText},
      [](const SweepRun& r) {
        return TextCell(r.samples_per_s <= 0  ? ""
                        : r.samples_over_wall ? "wall_time"
                        : r.host_given()      ? "step_time"
                                              : "gpu_time");
      }}},
    {{{.name = "bound",
       .help = "What keeps most of the time from being shorter: launch, memory, compute, PCIe or NVLink.",
       .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(r.whole.least_ns() <= 0 ? "" : BoundName(r.whole_derived.bound)); }}},
    {{{.name = "started", .help = "When the run began, local time.", .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(r.started); }}},
    {{{.name = "command", .help = "The command of the run.", .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(r.command); }}},
    {{{.name = "alarms", .help = "How many alarms were raised.", .kind = Kind::kCount},
      [](const SweepRun& r) { return Cell{uint64_t{r.alarms}}; }}},
    {{{.name = "alarm_ids", .help = "Which they are.", .kind = Kind::kText},
      [](const SweepRun& r) { return TextCell(absl::StrJoin(r.alarm_ids, " ")); }}},
});

std::vector<SweepCorrelation> Correlate(const std::vector<SweepRun>& runs, const std::vector<size_t>& members) {
  std::vector<SweepCorrelation> correlations;
  std::vector<std::vector<double>> values;
  for (const SweepColumn& column : kSweepColumns) {
    std::vector<double>& list = values.emplace_back();
    for (const size_t i : members) {
      const Cell cell = column.column.value(runs[i]);
      const bool known = !std::holds_alternative<std::monostate>(cell);
      list.push_back(known ? NumberIn(cell) : std::numeric_limits<double>::quiet_NaN());
    }
  }
  for (size_t a = 0; a < kSweepColumns.size(); ++a) {
    for (size_t b = a + 1; b < kSweepColumns.size(); ++b) {
      if (!kSweepColumns[a].correlated || !kSweepColumns[b].correlated) continue;
      SweepCorrelation one{a, b, SpearmanCorrelation(values[a], values[b]), 0};
      for (size_t i = 0; i < members.size(); ++i) one.runs += std::isfinite(values[a][i] + values[b][i]);
      correlations.push_back(one);
    }
  }
  return correlations;
}

}  // namespace

std::span<const SweepColumn> SweepColumns() { return kSweepColumns; }

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
  RowSet set;
  set.size = which.size();
  for (const SweepColumn& column : kSweepColumns) {
    Append(
        std::span(&column.column, 1),
        [&runs = sweep.runs, which](size_t i) -> const SweepRun& { return runs[which[i]]; }, &set);
  }
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
