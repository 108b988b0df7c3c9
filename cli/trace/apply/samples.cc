// What was sampled step by step, and what the durations of the steps between show.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "proto/wire/saturating_add.h"
#include "proto/wire/sum_code.h"

namespace rfinject::cli {
namespace {

using SampledSteps = std::map<std::string, std::map<uint64_t, uint64_t>>;  // Run::sampled_steps

// Reads the keys of a step, which are written as differences of neighbours.
absl::Status ReadKeys(const v1::SampledStep& message, const Record& record, const State& state,
                      std::vector<uint32_t>* keys) {
  keys->clear();
  uint64_t id = 0;
  for (const uint32_t more : message.key()) {
    id += more;
    if (more == 0) return DamageAt(record.offset, "the keys of a sampled step do not ascend");
    const size_t place = id > UINT32_MAX ? IdIndex::kNone : state.key_index.Find(static_cast<uint32_t>(id));
    if (place == IdIndex::kNone) return Undefined(record, "launch key", id);
    if (state.keys[place].key.run != State::RunId(message.run())) {
      return DamageAt(record.offset, absl::StrCat("launch key ", id, " is sampled in another run's step"));
    }
    keys->push_back(static_cast<uint32_t>(id));
  }
  return absl::OkStatus();
}

// How many steps lie between two sampled ones, usually: the median of the distances, of the metric that is sampled
// most often. 0 where none is sampled twice.
uint64_t DistanceOf(const SampledSteps& sampled_steps) {
  const std::map<uint64_t, uint64_t>* most = nullptr;
  for (const auto& [metric, steps] : sampled_steps) {
    if (most == nullptr || steps.size() > most->size()) most = &steps;
  }
  if (most == nullptr || most->size() < 2) return 0;
  std::vector<uint64_t> distances;
  for (auto at = std::next(most->begin()); at != most->end(); ++at) {
    distances.push_back(at->first - std::prev(at)->first);
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

// The durations of the steps in which nothing was sampled: those with kernel times hold what timing costs, and a run
// with a fifth of its steps timed would seem to have two speeds, or hide them. Where (nearly) every step is sampled,
// all cost alike, and all count.
std::vector<StepDuration> Undisturbed(std::span<const StepDuration> durations, const SampledSteps& sampled_steps) {
  std::vector<StepDuration> undisturbed;
  for (const StepDuration& one : durations) {
    const bool sampled = std::any_of(sampled_steps.begin(), sampled_steps.end(),
                                     [&](const auto& metric) { return metric.second.contains(one.step); });
    if (!sampled) undisturbed.push_back(one);
  }
  if (2 * undisturbed.size() < durations.size()) undisturbed.assign(durations.begin(), durations.end());
  return undisturbed;
}

// What all kernels of each timed step took, where the GPU was measured: the host's rhythm says nothing of its times.
std::vector<StepDuration> GpuTimesOf(const SampledSteps& sampled_steps, const RunState& of, const State& state) {
  const auto timed = sampled_steps.find(std::string(kMetricTime));
  if (timed == sampled_steps.end()) return {};
  std::map<uint64_t, uint64_t> sums;
  for (const auto& [step, processes] : timed->second) sums.emplace_hint(sums.end(), step, 0);
  for (const auto& [metric, series] : of.series) {
    if (state.metrics[state.metric_index.Find(metric)].name != kMetricTime) continue;
    for (const auto& [key, ignored] : series.keys) {
      const auto of_key = state.key_sums.find(key);
      if (of_key == state.key_sums.end()) continue;
      const auto values = of_key->second.find(std::string(kMetricTime));
      if (values == of_key->second.end()) continue;
      for (const StepSum& one : values->second) wire::SaturatingAdd(&sums[one.step], one.sum);
    }
  }
  std::vector<StepDuration> times;
  for (const auto& [step, sum] : sums) times.push_back({step, sum});
  return times;
}

std::vector<StepDuration> DurationsOf(std::span<const HostStep> steps) {
  std::vector<StepDuration> durations;
  for (const HostStep& one : steps) {
    if (!one.armed) durations.push_back({one.step, one.time.wall_ns});
  }
  return durations;
}

// The host's durations of steps that nothing disturbs and that were not timed.
std::vector<StepDuration> CalmDurations(const RunState& of, const SampledSteps& sampled_steps) {
  std::vector<StepDuration> durations;
  for (const size_t place : of.undisturbed) durations.push_back({of.steps[place].step, of.steps[place].time.wall_ns});
  return Undisturbed(durations, sampled_steps);
}

// The median distance from the median, relative to that.
double ScatterOf(std::span<const StepDuration> durations) {
  if (durations.empty()) return 0;
  const auto median = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  std::vector<double> values;
  for (const StepDuration& one : durations) values.push_back(static_cast<double>(one.ns));
  const double usual = median(values);
  for (double& value : values) value = std::fabs(value - usual);
  return usual > 0 ? median(values) / usual : 0;
}

// A host that comes late by a few milliseconds is early by as much in the next step, or was in the one before: the
// GPU did not feel it. Takes such delays out, which would seem to be slow steps.
std::vector<StepDuration> WithoutDelays(std::span<const StepDuration> host) {
  std::vector<uint64_t> values;
  for (const StepDuration& one : host) values.push_back(one.ns);
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto early_by = [&](const StepDuration& neighbour, uint64_t step) {
    return neighbour.step == step && neighbour.ns < *middle ? *middle - neighbour.ns : 0;
  };
  std::vector<StepDuration> without(host.begin(), host.end());
  for (size_t i = 0; i < host.size(); ++i) {
    uint64_t early = 0;
    if (i > 0) early = early_by(host[i - 1], host[i].step - 1);
    if (i + 1 < host.size()) early = std::max(early, early_by(host[i + 1], host[i].step + 1));
    if (host[i].ns > *middle) without[i].ns -= std::min(early, host[i].ns - *middle);
  }
  return without;
}

// What the GPU's times show, and, where the host's durations scatter no more than these, which of all steps were slow
// or of another kind: then the host is in step with the GPU. Else its rhythm is its own.
DurationFindings ExamineMeasured(const RunState& of, const SampledSteps& sampled, const State& state) {
  constexpr double kInStep = 2, kLeastScatter = 0.01;
  const std::vector<StepDuration> gpu = GpuTimesOf(sampled, of, state);
  const uint64_t distance = DistanceOf(sampled);
  DurationFindings found = ExamineDurations(gpu, 0, distance);
  found.slow = found.slow_extra_ns = found.of_kinds = found.rarer_kind = found.in_rhythm = 0;
  const std::vector<StepDuration> host = CalmDurations(of, sampled);
  if (gpu.empty() || ScatterOf(host) > kInStep * std::max(ScatterOf(gpu), kLeastScatter)) return found;
  const DurationFindings of_host = ExamineDurations(host, 0, distance),
                         slow = ExamineDurations(WithoutDelays(host), 0, /*distance=*/0);
  found.slow = slow.slow;
  found.slow_extra_ns = slow.slow_extra_ns;
  found.of_kinds = of_host.of_kinds;
  found.rarer_kind = of_host.rarer_kind;
  found.in_rhythm = of_host.in_rhythm;
  // Steps are timed two in a row, so that kinds that come and go may seem to change seldom.
  if (found.two_speeds && found.of_kinds > 0) found.two_speeds = found.drifting = false;
  return found;
}

void AddFindings(const DurationFindings& found, StepSums* steps) {
  wire::SaturatingAdd(&steps->drifting, found.drifting ? 1 : 0);
  wire::SaturatingAdd(&steps->two_speeds, found.two_speeds ? 1 : 0);
  wire::SaturatingAdd(&steps->slow, found.slow);
  wire::SaturatingAdd(&steps->slow_extra_ns, found.slow_extra_ns);
  wire::SaturatingAdd(&steps->of_kinds, found.of_kinds);
  wire::SaturatingAdd(&steps->rarer_kind, found.rarer_kind);
  wire::SaturatingAdd(&steps->in_rhythm, found.in_rhythm);
}

// What was sampled before the training is not of the training's steps.
void DropUntrained(uint64_t steps, SeriesState* series) {
  series->steps.erase(series->steps.begin(), series->steps.lower_bound(steps));
  for (auto& [key, known] : series->keys) {
    std::erase_if(known.sums, [steps](const StepSum& sum) { return sum.step < steps; });
  }
}

void FinishSeries(const std::string& metric, SeriesState* series, State* state, Run* run) {
  if (series->steps.size() > kMaxSampledStepsKept) {
    series->steps.erase(std::next(series->steps.begin(), kMaxSampledStepsKept), series->steps.end());
  }
  if (series->steps.empty()) return;
  const uint64_t last = series->steps.rbegin()->first;
  for (auto& [key, known] : series->keys) {
    DropStepsAfter(last, &known.sums);
    if (!known.sums.empty()) state->key_sums[key].emplace(metric, std::move(known.sums));
  }
  run->sampled_steps.emplace(metric, std::move(series->steps));
}

}  // namespace

absl::Status Apply(const v1::SampledStep& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  if (!state->metric_index.Has(message.metric())) return Undefined(record, "metric", message.metric());
  SeriesState& series = run->series[message.metric()];
  if (!series.steps.empty() && message.step() <= series.steps.rbegin()->first) {
    return DamageAt(record.offset, "sampled steps do not ascend");
  }
  if (message.key_size() > 0) RFINJECT_TRY(ReadKeys(message, record, *state, &series.last_keys));
  const bool exact = message.sum_size() > 0;
  const auto size = static_cast<size_t>(exact ? message.sum_size() : message.change_size());
  const bool none = size == 0 && message.key_size() == 0;  // no key was sampled in it
  if ((!none && size != series.last_keys.size()) || (exact && message.change_size() > 0)) {
    return DamageAt(record.offset, "a sampled step has not one sum a key");
  }
  RFINJECT_TRY(state->Charge(64 + size * sizeof(StepSum) + series.last_keys.size() * 8, record));
  series.steps.emplace(message.step(), std::max<uint64_t>(message.processes(), 1));
  for (size_t i = 0; i < size; ++i) {
    const auto [key, inserted] = series.keys.try_emplace(series.last_keys[i]);
    if (inserted) RFINJECT_TRY(state->Charge(sizeof(SeriesState::Key) + 160, record));
    uint64_t sum = 0;
    if (exact) {
      sum = message.sum(static_cast<int>(i));
    } else {
      int64_t& code = key->second.code;
      code += wire::UnfoldSign(message.change(static_cast<int>(i)));
      if (code < 0 || code > UINT32_MAX) return DamageAt(record.offset, "a sampled step's sum is impossible");
      sum = wire::SumOfCode(static_cast<uint32_t>(code));
    }
    key->second.sums.push_back({message.step(), sum});
  }
  return absl::OkStatus();
}

void FinishSamples(State* state) {
  for (auto& [id, of] : state->runs) {
    for (auto& [metric, series] : of.series) {
      if (of.untrained_steps != 0) DropUntrained(of.untrained_steps, &series);
      FinishSeries(state->metrics[state->metric_index.Find(metric)].name, &series, state, &of.run);
    }
    const SampledSteps& sampled = of.run.sampled_steps;
    StepSums& steps = of.run.steps;
    if (of.run.key.source == SourceKind::kMeasured) {
      if (of.merged) continue;
      AddFindings(ExamineMeasured(of, sampled, *state), &steps);
      continue;
    }
    uint64_t first = sampled.empty() ? 0 : UINT64_MAX;
    for (const auto& [metric, steps] : sampled) first = std::min(first, steps.begin()->first);
    // A program's first steps make plans and allocate. Where the user skipped these, they are not in the trace.
    const std::vector<StepDuration> durations = DurationsOf(of.steps);
    if (!durations.empty() && durations.front().step > of.untrained_steps) first = 0;
    const DurationFindings found = ExamineDurations(Undisturbed(durations, sampled), first, DistanceOf(sampled));
    AddFindings(found, &steps);
  }
}

}  // namespace rfinject::cli
