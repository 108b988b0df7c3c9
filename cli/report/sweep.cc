#include "cli/report/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "cli/model/statistics.h"
#include "cli/report/facts/schemas.h"
#include "cli/report/rows/roofs.h"

namespace rfinject::cli {
namespace {

SweepRun MakeRun(const Report& report) {
  return {.report = &report,
          .model = TextOf(report, "model"),
          .gpu = TextOf(report, "gpu"),
          .policy = TextOf(report, "policy"),
          .started = TextOf(report, "started")};
}

uint64_t Parameters(const Report& report) {
  uint64_t sum = 0;
  for (const ModelInfo& model : report.process.models) sum += model.parameters;
  return sum;
}

// Columns that are correlated with one another, within a group.
constexpr auto kCorrelated = std::to_array<std::string_view>(
    {"batch_size", "parameters", "flop_per_step", "dram_bytes_per_step", "oi_flop_per_byte", "gpu_time_per_step_ns",
     "samples_per_s", "attainable_share", "memory_peak_bytes"});

std::vector<SweepCorrelation> Correlate(const std::vector<SweepRun>& runs, const std::vector<size_t>& members) {
  std::vector<std::string_view> columns;
  std::vector<std::vector<double>> values;
  for (const ListedFact& fact : FactsIn(Schema::kSideBySide)) {
    if (std::ranges::find(kCorrelated, fact.name) == kCorrelated.end()) continue;
    columns.push_back(fact.name);
    std::vector<double>& list = values.emplace_back();
    for (const size_t i : members) {
      const Cell cell = fact.ValueIn(*runs[i].report);
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

Sweep MakeSweep(std::span<const Report> reports) {
  Sweep sweep;
  for (const Report& report : reports) sweep.runs.push_back(MakeRun(report));
  std::stable_sort(sweep.runs.begin(), sweep.runs.end(), [](const SweepRun& a, const SweepRun& b) {
    const auto order = [](const SweepRun& run) {
      const RunKey& key = run.report->run;
      // Training before inference.
      return std::tuple(std::string_view(run.gpu), key.source, Parameters(*run.report), std::string_view(run.model),
                        !key.training, std::string_view(run.policy), key.batch_size, std::string_view(run.started));
    };
    return order(a) < order(b);
  });
  for (size_t i = 0; i + 1 < sweep.runs.size(); ++i) {
    SweepRun &a = sweep.runs[i], &b = sweep.runs[i + 1];
    const RunKey &of_a = a.report->run, &of_b = b.report->run;
    if (std::tie(a.gpu, of_a.source, a.model, of_a.training, a.policy, of_a.batch_size) ==
        std::tie(b.gpu, of_b.source, b.model, of_b.training, b.policy, of_b.batch_size)) {
      a.has_twin = b.has_twin = true;
    }
  }
  std::set<uint64_t> batches;
  std::set<bool> modes;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const std::string& gpu = sweep.runs[i].gpu;
    const RunKey& key = sweep.runs[i].report->run;
    batches.insert(key.batch_size);
    modes.insert(key.training);
    if (sweep.groups.empty() || sweep.groups.back().gpu != gpu || sweep.groups.back().source != key.source) {
      sweep.groups.push_back({gpu, key.source, {}, {}});
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
  const RunKey& key = run.report->run;
  if (sweep.several_batches && key.batch_size > 0) title += " b" + std::to_string(key.batch_size);
  if (sweep.several_modes && !key.training) title += " inference";
  if (!run.policy.empty()) title += " " + run.policy;
  if (run.has_twin && !run.started.empty()) title += " of " + run.started;
  return title;
}

RowSet RunsOf(const Sweep& sweep, const std::vector<size_t>& which) {
  return FactRows(Schema::kSideBySide, {.size = which.size()},
                  [&sweep, which](size_t row) -> const Report& { return *sweep.runs[which[row]].report; });
}

std::vector<Report> SweepPictures(const Sweep& sweep) {
  std::vector<Report> pictures;
  for (const SweepGroup& group : sweep.groups) {
    Report& picture = pictures.emplace_back();
    picture.by = By::kModel;
    picture.rows_are_runs = true;
    // Everything that is the GPU's comes from a report of it; the batch and the policy are facts of the rows.
    const Report& same = *sweep.runs[group.runs.front()].report;
    picture.run.source = group.source;
    picture.run.gpu = picture.device.name = group.gpu;
    picture.run.models = {std::to_string(group.runs.size()) + (group.runs.size() == 1 ? " run" : " runs")};
    picture.run.estimated_gpu = same.run.estimated_gpu;
    picture.run.collector = same.run.collector;
    picture.machine = same.machine;
    picture.roofs = same.roofs;
    for (RoofLine& roof : picture.roofs) roof.used = false;
    // Rows of different numbers of steps become comparable as one step each.
    picture.steps.count = 1;
    Sums& total = picture.total.sums;
    for (const size_t i : group.runs) {
      const SweepRun& run = sweep.runs[i];
      Row& row = picture.rows.emplace_back();
      row.model = SweepRunTitle(sweep, run);
      row.parameters = Parameters(*run.report);
      row.sums = run.report->total.sums.OfOneStep(run.report->steps.divisor());
      row.derived = Derive(row.sums);
      for (RoofLine& roof : picture.roofs) roof.used = roof.used || UsesRoof(row.sums, roof);
      total.Add(row.sums);
    }
    for (Row& row : picture.rows) {
      if (total.time_ns() > 0) row.time_share = row.sums.time_ns() / total.time_ns();
    }
    picture.total.derived = Derive(total);
    picture.clock.gpu_ns = total.time_ns();
    picture.attribution.counters_share = total.time_ns() > 0 ? total.time_with_counters_ns() / total.time_ns() : 0;
  }
  return pictures;
}

}  // namespace rfinject::cli
