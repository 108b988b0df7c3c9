// Steps, one by one and as sums, and what PM sampling saw of them.
#include <algorithm>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "proto/wire/saturating_add.h"
#include "proto/wire/step_times.h"

namespace rfinject::cli {
namespace {

constexpr uint64_t kBytesOfACode = 64;  // of a Spread, roughly

// Adds `add()` to the times, and charges what they grow by.
template <typename Add>
absl::Status AddTimes(const Record& record, State* state, StepTimes* times, Add add) {
  const size_t before = times->places();
  add();
  return state->Charge(kBytesOfACode * (times->places() - before), record);
}

absl::Status Apply(const v1::RankSteps& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  StepTimes said;
  RFINJECT_TRY(ReadRecord(message, record, &said));
  const auto [it, inserted] = run->step_times.try_emplace(std::min(said.rank, kMaxRanksKept));
  if (inserted) RFINJECT_TRY(state->Charge(sizeof(StepTimes), record));
  StepTimes& times = it->second;
  return AddTimes(record, state, &times, [&] { times.Merge(said); });
}

absl::Status Apply(const v1::RunSteps& message, const Record& record, State* state) {
  StepSums sums;
  RFINJECT_TRY(ReadRecord(message, record, &sums));
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  // What was validated becomes a run of its own.
  if (sums.steps != 0) {
    // Sums come behind all single steps, so none of these is one of the last.
    for (const trace::Step& step : std::exchange(run->last_steps, {})) AddMeasuredStep(step, run);
  }
  wire::SaturatingAdd(&run->eval.steps, std::exchange(sums.eval_batches, 0));
  wire::SaturatingAdd(&run->eval.samples, std::exchange(sums.eval_samples, 0));
  run->eval.eval_batch_samples = std::max(run->eval.eval_batch_samples, std::exchange(sums.eval_batch_samples, 0));
  Merge(sums, &run->run.steps);
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const v1::Step& message, const Record& record, State* state) {
  trace::Step step;
  RFINJECT_TRY(ReadRecord(message, record, &step));
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(step.run, record, &run));
  if (step.index < run->untrained_steps) {
    if (!step.measured) return absl::OkStatus();
    wire::SaturatingAdd(&run->eval.steps, 1);
    wire::SaturatingAdd(&run->eval.samples, step.samples);
    run->eval.eval_batch_samples = std::max(run->eval.eval_batch_samples, step.samples);
    return absl::OkStatus();
  }
  if (run->step_kinds.size() < kMostStepsLookedAt) run->step_kinds.push_back({step.kind, step.optimizer});
  if (!step.measured && run->step_launches.contains(step.index)) {
    run->left_out_steps.push_back(step.index);
    return state->Charge(sizeof(step.index), record);
  }
  if (!step.measured) return absl::OkStatus();
  run->last_steps.push_back(step);
  if (run->last_steps.size() < kMostStepsOfIteration) return state->Charge(sizeof(trace::Step), record);
  const trace::Step oldest = run->last_steps.front();
  run->last_steps.pop_front();
  return state->Charge(AddMeasuredStep(oldest, run), record);
}

uint64_t AddMeasuredStep(const trace::Step& step, RunState* run) {
  // More different batches than this have no usual one.
  constexpr size_t kMostBatchSizes = 4096;
  if (run->step_samples.size() < kMostBatchSizes) ++run->step_samples[step.samples];
  const bool armed = !wire::AddStep(step, &run->run.steps);
  wire::SaturatingAdd(&run->run.steps.all_ns, step.duration_ns);
  if (run->steps.size() < kMaxStepDurations) {
    run->steps.push_back({step.index, armed, wire::TimeOf(step)});
    return sizeof(HostStep);
  }
  if (armed) return 0;
  StepTimes& times = run->step_times[0];
  const size_t before = times.places();
  times.Add(wire::TimeOf(step));
  return kBytesOfACode * (times.places() - before);
}

absl::Status Apply(const v1::StepStats& message, const Record& record, State* state) {
  for (const v1::RunSteps& one : message.run()) RFINJECT_TRY(Apply(one, record, state));
  for (const v1::RankSteps& one : message.rank()) RFINJECT_TRY(Apply(one, record, state));
  return absl::OkStatus();
}

absl::Status Apply(const v1::PmWindow& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  PmWindowInfo window;
  RFINJECT_TRY(ReadRecord(message, record, &window));
  ForgetIds(&window);
  StepSums& steps = run->run.steps;
  uint64_t bytes = window.dram_read_bytes;
  wire::SaturatingAdd(&bytes, window.dram_write_bytes);
  steps.pm_dram_bytes.Add(bytes);
  steps.pm_duration_ns.Add(window.duration_ns);
  if (window.has_tensor) steps.pm_tensor_active_ns.Add(std::min(window.tensor_active_ns, window.duration_ns));
  KeepPmWindow(std::move(window), &run->run);
  return absl::OkStatus();
}

// Of windows as of processes, the smallest few are kept. What a process writes comes in ascending order.
void KeepPmWindow(PmWindowInfo window, Run* run) {
  std::vector<PmWindowInfo>& kept = run->pm_windows;
  if (kept.size() >= kMaxPmWindowsKept && !(window < kept.back())) return;
  // More bins than any writer makes would only take memory.
  constexpr size_t kMaxBins = 64;
  if (window.bin_dram_bytes.size() > kMaxBins) window.bin_dram_bytes.resize(kMaxBins);
  if (window.bin_tensor_permille.size() > kMaxBins) window.bin_tensor_permille.resize(kMaxBins);
  kept.insert(std::upper_bound(kept.begin(), kept.end(), window), std::move(window));
  if (kept.size() > kMaxPmWindowsKept) kept.pop_back();
}

}  // namespace rfinject::cli
