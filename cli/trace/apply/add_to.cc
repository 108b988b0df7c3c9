// The way from a file's State to an Accumulator: ids become the numbers of texts.
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/trace/apply/apply.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// What a run's layers and launches are added to.
struct Sums {
  Accumulator::RunSum* run = nullptr;
  Accumulator::RunSum* validation = nullptr;  // of what it validates; null: nothing
};

// A model that trains and is validated is two kinds of run: a batch that is validated is no part of a step, and work
// of one is not the other's. The batches stand in the place of the steps.
Run ValidationOf(const RunState& state) {
  Run run = state.run;
  run.key.training = false;
  run.steps = state.eval;
  run.steps.iterations = run.steps.steps;
  // Older libraries did not say the largest batch.
  const uint64_t each = run.steps.steps != 0 ? run.steps.samples / run.steps.steps : 0;
  const bool all_alike = each * run.steps.steps == run.steps.samples;
  const uint64_t most = std::exchange(run.steps.eval_batch_samples, 0);
  run.key.batch_size = most != 0 ? most : all_alike ? each : 0;
  // Only training steps were sampled.
  run.sampled_steps.clear();
  run.pm_windows.clear();
  run.step_spans.clear();
  run.timelines.clear();
  run.memory_peak = {};
  run.step_times.clear();
  run.kept = {};
  return run;
}

// Returns the layers' numbers, in the order of State::layers.
std::vector<Accumulator::Layer> AddLayers(const std::map<uint32_t, Sums>& sums, State* state, Accumulator* sum) {
  std::vector<Accumulator::Text> models;
  for (const ModelState& model : state->models) models.push_back(sum->NumberOf(model.name));
  std::vector<Accumulator::Layer> keys;
  std::vector<uint32_t> owners;
  keys.reserve(state->layers.size());
  // Loss modules that were made anew at every step share a name; the first one stands for all.
  absl::flat_hash_map<std::pair<uint32_t, Accumulator::Layer>, size_t> first;
  for (size_t i = 0; i < state->layers.size(); ++i) {
    const LayerState& known = state->layers[i];
    keys.push_back({models[known.model_place], sum->NumberOf(known.layer.path)});
    owners.push_back(state->OwnerOf(known.layer.model));
    const auto [place, is_new] = first.try_emplace({owners.back(), keys.back()}, i);
    if (!is_new && known.layer.order < state->layers[place->second].layer.order) place->second = i;
  }
  for (size_t i = 0; i < state->layers.size(); ++i) {
    const auto run = sums.find(owners[i]);
    if (run == sums.end() || first.at({owners[i], keys[i]}) != i) continue;
    LayerInfo& layer = state->layers[i].layer;
    ForgetIds(&layer);
    run->second.run->AddLayer(keys[i], layer);
    if (run->second.validation != nullptr) run->second.validation->AddLayer(keys[i], layer);
  }
  return keys;
}

absl::flat_hash_map<uint32_t, std::shared_ptr<const NativeStackInfo>> StacksOf(const State& state) {
  absl::flat_hash_map<uint32_t, std::shared_ptr<const NativeStackInfo>> stacks;
  for (const auto& [id, known] : state.native_stacks) {
    auto stack = std::make_shared<NativeStackInfo>();
    for (size_t i = 0; i < known.module.size(); ++i) {
      const trace::NativeModule& module = state.native_modules.at(known.module[i]).module;
      stack->push_back({module.path, module.build_id, state.NameOf(known.function[i]), known.offset[i]});
    }
    stacks.emplace(id, std::move(stack));
  }
  return stacks;
}

void AddLaunches(const std::map<uint32_t, Sums>& sums, std::span<const Accumulator::Layer> layers, State* state,
                 Accumulator* sum) {
  std::vector<Accumulator::Text> names, metrics;
  for (const std::string& name : state->names) names.push_back(sum->NumberOf(name));
  for (const MetricInfo& metric : state->metrics) metrics.push_back(sum->NumberOf(metric.name));
  const auto number = [&](uint32_t id) { return id == 0 ? 0 : names[state->name_index.Find(id)]; };
  const auto stacks = StacksOf(*state);
  for (const KeyState& known : state->keys) {
    const trace::LaunchKey& key = known.key;
    if (known.left_out) continue;
    Accumulator::Launch launch;
    if (key.layer != 0) launch.layer = layers[state->layer_index.Find(key.layer)];
    launch.phase = static_cast<uint32_t>(key.phase);
    launch.op = number(key.op);
    launch.kernel = number(key.kernel);
    launch.signature = number(key.signature);
    launch.node = number(key.node);
    launch.grid = key.grid;
    launch.block = key.block;
    launch.dynamic_shared_bytes = key.dynamic_shared_bytes;
    launch.device = key.device;
    const bool validation = state->IsValidation(key);
    if (validation && key.phase == Phase::kForward) launch.phase = static_cast<uint32_t>(Phase::kEval);
    Accumulator::RunSum& run = validation ? *sums.at(key.run).validation : *sums.at(key.run).run;
    Accumulator::LaunchSum& into = run.Of(launch);
    wire::SaturatingAdd(&into.stats().launches, known.launches);
    if (key.stack != 0) into.stats().MergeStack(stacks.at(key.stack));
    if (key.line != 0) into.stats().MergeLine(state->lines.at(key.line));
    for (const auto& [metric, stat] : known.metrics) into.AddMetric(metrics[metric], stat);
    const auto series = validation ? state->key_sums.end() : state->key_sums.find(key.id);
    if (series == state->key_sums.end()) continue;
    LaunchStats sampled;
    sampled.step_sums = std::move(series->second);
    run.AddStepSums(&into, std::move(sampled));
  }
}

}  // namespace

void Applier::AddTo(Accumulator* sum) && {
  sum->AddTraceIds(std::move(state_.trace_ids));
  for (const MetricInfo& metric : state_.metrics) sum->AddMetric(metric);
  std::map<uint32_t, Sums> sums;
  for (auto& [id, of] : state_.runs) {
    Sums& of_run = sums[id];
    if (of.eval != StepSums{} || of.validates) of_run.validation = &sum->Add(ValidationOf(of));
    of_run.run = &sum->Add(std::move(of.run));
  }
  const std::vector<Accumulator::Layer> layers = AddLayers(sums, &state_, sum);
  AddLaunches(sums, layers, &state_, sum);
}

}  // namespace rfinject::cli
