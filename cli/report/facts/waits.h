// File: waits.h
//
// What a step waits for: how long it takes by the clock, how long the GPU is busy in that time, and what the thread
// that ends the steps waits for; for a run, and for each of its ranks. A step here is an optimizer's step.
#ifndef RFINJECT_CLI_REPORT_FACTS_WAITS_H_
#define RFINJECT_CLI_REPORT_FACTS_WAITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/facts/collectives.h"
#include "cli/report/facts/fact.h"
#include "cli/report/facts/gpu_idle.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

// A part of a step, in ns; nothing where it was not watched.
struct StepPart {
  std::optional<double> mean_ns, p50_ns, p95_ns;
};

// Whose clock says how long a step takes: that of the host, over all steps that were not armed; over steps only that
// counting does not touch; or that of the GPU.
enum class StepClockOf : uint8_t { kHost, kUndisturbed, kGpu };
std::string_view StepClockName(StepClockOf clock);  // "host", "host, undisturbed", "GPU"

struct StepWaits {
  uint64_t steps = 0;  // that counting did not touch
  StepClockOf clock{};
  StepPart wall;       // by that clock
  StepPart gpu_busy;   // something ran on the GPU; of a virtual one what its streams were given, added up
  StepPart data_wait;  // for a batch of a DataLoader
  StepPart gpu_wait;   // in calls that return when the GPU has done its work
  StepPart own;        // the rest of the clock: Python, launching, other waits
  // Nothing runs on the GPU and the host does not wait for data. At least so long, because the GPU counts as idle in
  // a wait for data as far as it can have been; of imports exact.
  StepPart launch_gaps;
  // Nothing runs on the GPU while the host waits for data, at most; of measured runs. With gpu_busy and launch_gaps
  // it is the step.
  StepPart data_idle;
  // The share of the timed steps in which the GPU was idle for more than a tenth.
  std::optional<double> steps_with_gaps_share;
  // Only communication runs on the GPU. It is a part of gpu_busy; nothing where no communication was seen.
  StepPart exposed_communication;
  // What a step takes: by the clock, or as long as the GPU is busy, where a virtual GPU lags behind its host.
  double step_ns() const;
  // The share of a part in that; nothing where the part is not known.
  std::optional<double> Share(const StepPart& part) const;
  // The time in which nothing runs on the GPU.
  std::optional<double> idle_ns() const;
  // What the GPU waits for in at least a tenth of a measured step: "launches", "data", or "nothing"; with ", in part
  // of the steps" where only some have such gaps. Empty where it is not known.
  std::string gpu_waits_for() const;
  // By how much a step would be shorter without these waits, at most: work that the GPU does meanwhile remains.
  std::optional<double> GainWithout(const StepPart& wait) const;
};

std::span<const FactOf<StepWaits>> WaitFacts();

// The waits of all ranks together.
StepWaits WaitsOf(const Run& run);

// "3"; "1024 and above" for all that are not kept one by one.
std::string RankName(uint32_t rank);

struct RankWaits {
  std::string rank;  // RankName
  StepWaits waits;
  // Means of the collectives that all ranks ran; nothing where there are none.
  std::optional<double> late_ns = {}, waits_for_ranks_ns = {};
};

struct WaitTable {
  std::string title;  // of the run
  SourceKind source{};
  bool on_cpu = false;  // an estimate of a program that ran on the CPU: its clock says nothing of a GPU
  bool virtual_gpu = false;
  StepWaits all;
  std::vector<IdleBefore> idle;  // what the GPU is idle before, of a measured run
  std::vector<RankWaits> ranks;  // ascending
  // The slowest of several ranks, by the median step; nothing where they are alike (within 5 %).
  std::optional<size_t> slowest;
  double spread = 0;  // of the medians: the longest less the shortest, over the middle one
  // The one of several ranks that waits for data a tenth of a step longer than the middle one.
  std::optional<size_t> waits_most;
  double middle_data_wait_ns = 0;
  Collectives collectives;
};

// Adds up a run's steps by rank, and finds the ranks that differ from the others.
WaitTable FoldWaits(const Run& run);

// A row for the whole run (rank: nothing), then one a rank where there are several, with the columns of CSV and JSON.
RowSet RowsOf(const WaitTable& table);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_WAITS_H_
