// How long the steps of a process take, and by whose clock.
#include <algorithm>
#include <utility>
#include <vector>

#include "cli/trace/apply/records.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// Of an estimate, and of what only has steps, the host's clock is the only one.
void AddAll(const RunState& of, StepTimes* times) {
  for (const HostStep& one : of.steps) {
    if (!one.armed) times->Add(one.time);
  }
}

std::vector<uint64_t> TimedSteps(const RunState& of, const State& state) {
  std::vector<uint64_t> timed;
  for (const auto& [metric, series] : of.series) {
    if (state.metrics[state.metric_index.Find(metric)].name != kMetricTime) continue;
    for (const auto& [step, processes] : series.steps) timed.push_back(step);
  }
  return timed;
}

void AddMeasured(const State& state, RunState* of, StepTimes* times) {
  const auto& kept = of->run.kept.gpu_step;
  const std::vector<trace::GpuStep> gpu_steps(kept.begin(), kept.end());
  const size_t period = StepsOfIteration(of->step_kinds);
  StepClock clock = ReadStepClock(of->steps, gpu_steps, TimedSteps(*of, state), period);
  std::vector<bool> added(of->steps.size());
  for (const size_t place : clock.undisturbed) {
    times->Add(of->steps[place].time);
    added[place] = true;
  }
  // Steps that were timed may be disturbed by the host's clock, and are right by the GPU's.
  for (size_t i = 0; i < of->steps.size(); ++i) {
    const HostStep& one = of->steps[i];
    if (!added[i] && !one.armed && one.time.gpu_busy_ns) times->gpu_busy_ns.Add(*one.time.gpu_busy_ns);
  }
  for (const trace::GpuStep& one : gpu_steps) {
    if (one.period_ns > 0) {
      times->period_ns.Add(one.period_ns);
      wire::SaturatingAdd(&times->timed_idle_ns, one.period_ns - std::min(one.period_ns, one.busy_ns));
      wire::SaturatingAdd(&times->timed_data_idle_ns, one.data_idle_ns);
    }
    if (one.busy_ns > 0) times->gpu_busy_ns.Add(one.busy_ns);
  }
  of->undisturbed = std::move(clock.undisturbed);
  if (clock.usual_ns > 0) times->usual_ns.Add(clock.usual_ns);
  if (clock.busy_ns > 0) times->usual_busy_ns.Add(clock.busy_ns);
  wire::SaturatingAdd(&times->by_gpu_clock, clock.by_gpu ? 1 : 0);
  const bool launch_waits =
      std::ranges::all_of(of->undisturbed, [of](size_t place) { return of->steps[place].time.launch_waits; });
  wire::SaturatingAdd(&times->launch_waits, launch_waits ? 1 : 0);
  wire::SaturatingAdd(&of->run.steps.counting_ns, clock.counting_ns);
  wire::SaturatingAdd(&of->run.steps.counting_steps, clock.counting_steps);
}

}  // namespace

void FinishTimes(State* state) {
  for (auto& [id, of] : state->runs) {
    if (of.steps.empty()) continue;
    StepTimes& times = of.step_times[0];
    if (of.run.key.source == SourceKind::kMeasured) {
      AddMeasured(*state, &of, &times);
    } else {
      AddAll(of, &times);
    }
  }
}

}  // namespace rfinject::cli
