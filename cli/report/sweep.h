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

struct SweepRun {
  const Report* report = nullptr;
  std::string model, gpu;  // run_name.h
  std::string policy;      // what makes runs of one model and batch differ: "autocast float16"; else empty
  std::string started;     // of its first process
  bool has_twin = false;   // another run is called the same: only when it started tells them apart
};

struct SweepCorrelation {
  std::string_view a, b;      // names in Schema::kSideBySide, a before b
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

// Makes a sweep with one SweepRun for each report, which must outlive it.
Sweep MakeSweep(std::span<const Report> reports);

// "resnet18", and what else must be said to tell it from its neighbours: "resnet18 b8 inference".
std::string SweepRunTitle(const Sweep& sweep, const SweepRun& run);

// The runs `which` of the sweep with all columns.
RowSet RunsOf(const Sweep& sweep, const std::vector<size_t>& which);

// One Report a group, its rows the runs: what the pictures of reports draw as points on shared axes.
std::vector<Report> SweepPictures(const Sweep& sweep);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_SWEEP_H_
