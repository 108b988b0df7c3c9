#include "cli/report/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "cli/model/statistics.h"
#include "cli/report/run_name.h"

namespace rfinject::cli {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double Known(double value) { return value > 0 ? value : kUnknown; }
double Quotient(double a, double b) { return b > 0 ? a / b : kUnknown; }

Sums OfPhase(const Report& report, Phase phase) {
  Sums sums;
  for (const Row& row : report.phases) {
    if (row.phase == kPhaseNames[static_cast<size_t>(phase)]) sums.Add(row.sums);
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
  const double time_ns = run.samples_over_wall ? run.wall_ns : run.whole.time_ns;
  if (run.samples > 0 && time_ns > 0) run.samples_per_s = static_cast<double>(run.samples) / time_ns * 1e9;
  run.memory_peak_bytes = report.memory_peak_bytes;
  run.alarms = report.alarms.size();
  std::set<std::string> ids;
  for (const Alarm& alarm : report.alarms) ids.insert(alarm.id);
  run.alarm_ids.assign(ids.begin(), ids.end());
  return run;
}

constexpr auto kColumns = std::to_array<SweepColumn>({
    {"batch_size", "batch", [](const SweepRun& r) { return Known(static_cast<double>(r.batch_size)); }, true},
    {"parameters", "params", [](const SweepRun& r) { return Known(static_cast<double>(r.parameters)); }, true},
    {"parameter_bytes", "", [](const SweepRun& r) { return Known(static_cast<double>(r.parameter_bytes)); }},
    {"model_flop_per_step", "", [](const SweepRun& r) { return Known(r.whole.model_flop / r.step_count()); }},
    {"flop_per_step", "FLOP", [](const SweepRun& r) { return Known(r.whole.total_flop() / r.step_count()); }, true},
    {"dram_bytes_per_step", "bytes", [](const SweepRun& r) { return Known(r.whole.dram_bytes / r.step_count()); },
     true},
    {"oi_flop_per_byte", "FLOP/B",
     [](const SweepRun& r) { return Quotient(r.whole.total_flop(), r.whole.dram_bytes); }, true},
    {"gpu_time_per_step_ns", "time", [](const SweepRun& r) { return Known(r.whole.time_ns / r.step_count()); }, true},
    {"wall_time_per_step_ns", "", [](const SweepRun& r) { return Known(r.wall_ns / r.step_count()); }},
    {"samples_per_s", "img/s", [](const SweepRun& r) { return Known(r.samples_per_s); }, true},
    {"performance_flop_per_s", "", [](const SweepRun& r) { return Known(r.whole_derived.performance_flop_per_s); }},
    {"attainable_flop_per_s", "", [](const SweepRun& r) { return Known(r.whole_derived.attainable_flop_per_s); }},
    {"attainable_share", "of roof",
     [](const SweepRun& r) { return r.whole.least_ns > 0 ? r.whole_derived.attainable_share : kUnknown; }, true},
    {"least_compute_time_per_step_ns", "",
     [](const SweepRun& r) { return Known(r.whole.least_compute_ns / r.step_count()); }},
    {"least_memory_time_per_step_ns", "",
     [](const SweepRun& r) { return Known(r.whole.least_memory_ns / r.step_count()); }},
    {"least_time_per_step_ns", "", [](const SweepRun& r) { return Known(r.whole.least_ns / r.step_count()); }},
    {"memory_peak_bytes", "memory", [](const SweepRun& r) { return Known(static_cast<double>(r.memory_peak_bytes)); },
     true},
    {"forward_flop_per_step", "", [](const SweepRun& r) { return Known(r.forward.total_flop() / r.step_count()); }},
    {"forward_dram_bytes_per_step", "",
     [](const SweepRun& r) { return Known(r.forward.dram_bytes / r.step_count()); }},
    {"forward_time_per_step_ns", "", [](const SweepRun& r) { return Known(r.forward.time_ns / r.step_count()); }},
    {"forward_least_time_per_step_ns", "",
     [](const SweepRun& r) { return Known(r.forward.least_ns / r.step_count()); }},
    {"forward_oi_flop_per_byte", "",
     [](const SweepRun& r) { return Quotient(r.forward.total_flop(), r.forward.dram_bytes); }},
    {"forward_attainable_share", "",
     [](const SweepRun& r) { return r.forward.least_ns > 0 ? r.forward_derived.attainable_share : kUnknown; }},
    {"backward_flop_per_step", "", [](const SweepRun& r) { return Known(r.backward.total_flop() / r.step_count()); }},
    {"backward_dram_bytes_per_step", "",
     [](const SweepRun& r) { return Known(r.backward.dram_bytes / r.step_count()); }},
    {"backward_time_per_step_ns", "", [](const SweepRun& r) { return Known(r.backward.time_ns / r.step_count()); }},
    {"optimizer_time_per_step_ns", "", [](const SweepRun& r) { return Known(r.optimizer.time_ns / r.step_count()); }},
    {"backward_flop_per_forward_flop", "",
     [](const SweepRun& r) {
       return r.backward.total_flop() > 0 ? Quotient(r.backward.total_flop(), r.forward.total_flop()) : kUnknown;
     }},
    {"backward_time_per_forward_time", "",
     [](const SweepRun& r) {
       return r.backward.time_ns > 0 ? Quotient(r.backward.time_ns, r.forward.time_ns) : kUnknown;
     }},
});

std::vector<SweepCorrelation> Correlate(const std::vector<SweepRun>& runs, const std::vector<size_t>& members) {
  std::vector<SweepCorrelation> correlations;
  std::vector<std::vector<double>> values;
  for (const SweepColumn& column : kColumns) {
    std::vector<double>& list = values.emplace_back();
    for (const size_t i : members) list.push_back(column.value(runs[i]));
  }
  for (size_t a = 0; a < kColumns.size(); ++a) {
    for (size_t b = a + 1; b < kColumns.size(); ++b) {
      if (!kColumns[a].correlated || !kColumns[b].correlated) continue;
      SweepCorrelation one{a, b, SpearmanCorrelation(values[a], values[b]), 0};
      for (size_t i = 0; i < members.size(); ++i) one.runs += std::isfinite(values[a][i] + values[b][i]);
      correlations.push_back(one);
    }
  }
  return correlations;
}

}  // namespace

std::span<const SweepColumn> SweepColumns() { return kColumns; }

Sweep MakeSweep(std::span<const Report> reports) {
  Sweep sweep;
  for (const Report& report : reports) sweep.runs.push_back(MakeRun(report));
  std::stable_sort(sweep.runs.begin(), sweep.runs.end(), [](const SweepRun& a, const SweepRun& b) {
    // Training before inference.
    return std::tuple(a.gpu, a.source, a.parameters, a.model, !a.training, a.policy, a.batch_size) <
           std::tuple(b.gpu, b.source, b.parameters, b.model, !b.training, b.policy, b.batch_size);
  });
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
  return title;
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
      const double steps = run.step_count();
      row.sums = run.whole;
      for (double* sum : {&row.sums.time_ns, &row.sums.model_flop, &row.sums.dram_bytes, &row.sums.compulsory_bytes,
                          &row.sums.l2_bytes, &row.sums.l1_bytes, &row.sums.least_compute_ns,
                          &row.sums.least_memory_ns, &row.sums.least_ns, &row.sums.time_with_counters_ns}) {
        *sum /= steps;
      }
      for (double& flop : row.sums.flop) flop /= steps;
      row.sums.launches = static_cast<uint64_t>(std::llround(static_cast<double>(run.whole.launches) / steps));
      row.derived = Derive(row.sums);
      for (RoofLine& roof : picture.roofs) {
        roof.used = roof.used || row.sums.flop[static_cast<size_t>(roof.precision)] > 0;
      }
      picture.total.Add(row.sums);
      picture.rows.push_back(std::move(row));
    }
    for (Row& row : picture.rows) {
      if (picture.total.time_ns > 0) row.time_share = row.sums.time_ns / picture.total.time_ns;
    }
    picture.total_derived = Derive(picture.total);
    picture.step_gpu_ns = picture.total.time_ns;
    picture.counters_share =
        picture.total.time_ns > 0 ? picture.total.time_with_counters_ns / picture.total.time_ns : 0;
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace rfinject::cli
