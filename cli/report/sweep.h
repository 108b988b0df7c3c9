// File: sweep.h
//
// A set of runs (models, GPUs, batch sizes, training or inference) side by side: a row for each run, its forward
// beside the whole step, and how the columns correlate.
#ifndef RFINJECT_CLI_REPORT_SWEEP_H_
#define RFINJECT_CLI_REPORT_SWEEP_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/report.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

// What tells one run of a set from the others.
struct SweepName {
  std::string model;  // run_name.h's ModelName
  std::string gpu;
  SourceKind source{};
  std::string policy;            // what makes runs of one model and batch differ: "autocast float16"; else empty
  uint64_t batch_size = 0;       // 0: unknown
  std::string started, command;  // of its first process
  bool has_twin = false;         // another run is called the same: only when it started tells them apart
  bool training = false;
};

struct SweepRun : SweepName {
  uint64_t parameters = 0, parameter_bytes = 0;
  uint64_t steps = 0, samples = 0;
  // Sums over all measured steps; divide by steps (step_count() where that is 0) for a step.
  Sums whole, forward, backward, optimizer;
  Derived whole_derived, forward_derived;
  double wall_ns = 0;  // all measured steps; 0: unknown
  // For a step of an estimate: the host's time for its launches, and what it takes by the clock; 0: unknown.
  double step_host_ns = 0, step_ns = 0;
  bool launch_bound = false;
  HostTime step_host_of = HostTime::kUnknown;
  bool host_given() const { return step_host_of == HostTime::kGiven; }
  // Samples over GPU time for estimates and imports, whose wall time is another machine's or unknown (over step_ns
  // where the host's time is given); over wall time for measurements. 0: unknown.
  double samples_per_s = 0;
  bool samples_over_wall = false;
  uint64_t memory_peak_bytes = 0;  // 0: unknown
  size_t alarms = 0;
  std::vector<std::string> alarm_ids;  // each once, sorted

  double step_count() const { return steps > 0 ? static_cast<double>(steps) : 1; }
};

// Numbers are a step's where their names say so.
std::span<const ColumnOf<SweepRun>> SweepColumns();

struct SweepCorrelation {
  size_t a = 0, b = 0;        // indices of SweepColumns(), a < b
  std::optional<double> rho;  // Spearman's; nullopt: fewer than three runs, or a constant column
  size_t runs = 0;            // with both values
};

// The runs of one GPU and source: only within one such group does the order of runs say something about the models.
struct SweepGroup {
  std::string gpu;
  SourceKind source{};
  std::vector<size_t> runs;  // indices of Sweep::runs
  std::vector<SweepCorrelation> correlations;
};

struct Sweep {
  std::vector<SweepRun> runs;  // by GPU, then the model's parameters, then batch size
  std::vector<SweepGroup> groups;
  bool several_batches = false, several_modes = false;
};

// Makes a sweep with one SweepRun for each report.
Sweep MakeSweep(std::span<const Report> reports);

// "resnet18", and what else must be said to tell it from its neighbours: "resnet18 b8 inference".
std::string SweepRunTitle(const Sweep& sweep, const SweepRun& run);

// The runs `which` of the sweep with all columns.
RowSet RunsOf(const Sweep& sweep, const std::vector<size_t>& which);

// One Report a group, its rows the runs: what the pictures of reports draw as points on shared axes.
std::vector<Report> SweepPictures(const Sweep& sweep, std::span<const Report> reports);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_SWEEP_H_
