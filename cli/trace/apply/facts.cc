// What a run is: its process, its devices and its policy, and what was said about it.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "cli/trace/step_spans.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// What a Run record keeps: about its own size in memory, and a struct for each message and element in it.
uint64_t SizeOf(const v1::Run& message, const Record& record) {
  const v1::Merged& merged = message.merged();
  const uint64_t processes = 1 + static_cast<uint64_t>(merged.process_size());
  const uint64_t devices = static_cast<uint64_t>(message.device_size()) + static_cast<uint64_t>(merged.device_size());
  const uint64_t elements = static_cast<uint64_t>(message.rank_size() + message.process().argv_size()) +
                            static_cast<uint64_t>(merged.root_size() + merged.model_size());
  return processes * sizeof(ProcessInfo) + devices * sizeof(DeviceInfo) + 64 * elements + 4 * record.size;
}

absl::Status ApplyOwners(const trace::Run& said, const Record& record, State* state) {
  for (const uint32_t id : said.merged.model) {
    const auto [it, inserted] = state->owners.try_emplace(id, said.id);
    if (!inserted && it->second != said.id) return Redefined(record, "the run of model", id);
    const size_t model = state->model_index.Find(id);
    if (inserted && model != IdIndex::kNone && state->models[model].has_layers) {
      return DamageAt(record.offset, absl::StrCat("model ", id, " changes its run after its first layer"));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyMerged(trace::Merged said, const Record& record, State* state, RunState* of) {
  of->merged = true;
  Run& run = of->run;
  if (!said.gpu.empty()) run.key.gpu = said.gpu;
  run.key.models.insert(run.key.models.end(), said.root.begin(), said.root.end());
  std::move(said.process.begin(), said.process.end(), std::back_inserter(run.process_list));
  std::move(said.device.begin(), said.device.end(), std::back_inserter(run.devices));
  for (PmWindowInfo& window : said.pm_window) {
    RFINJECT_TRY(state->Charge(sizeof(PmWindowInfo), record));
    KeepPmWindow(std::move(window), &run);
  }
  for (const trace::StepSpan& one : said.step_span) {
    if (run.step_spans.size() >= kMostStepSpans) break;
    RFINJECT_TRY(state->Charge(sizeof(StepSpan), record));
    run.step_spans.push_back(SpanOf(one));
  }
  run.collector_versions.insert(said.collector_version.begin(), said.collector_version.end());
  if (said.unfinished != 0) run.unfinished = said.unfinished;
  if (said.parameters != 0) run.key.parameters = said.parameters;
  run.key.training = run.key.training || said.training;
  return absl::OkStatus();
}

// The GPU that a process's numbers belong to: the one that it launched on, or the first one that it knows of.
std::string GpuName(const RunKey& key, const std::map<uint32_t, DeviceInfo>& devices,
                    const std::set<uint32_t>& used) {
  if (!key.estimated_gpu.empty()) return key.estimated_gpu;
  std::set<std::string> names;
  for (const auto& [index, device] : devices) {
    if (used.contains(index)) names.insert(device.name);
  }
  if (names.empty() && !devices.empty()) names.insert(devices.begin()->second.name);
  return absl::StrJoin(names, " + ");
}

// What a process says of itself, which a merged trace has for all of them.
void FinishProcess(const std::set<uint32_t>& devices_used, bool finished, RunState* state) {
  Run& run = state->run;
  // A process is one rank, and learns late which.
  const bool ranked = state->process.world_size > 0;
  const uint32_t rank = ranked ? std::min(state->process.rank, kMaxRanksKept) : 0;
  for (const auto& [ignored, times] : state->step_times) run.step_times[rank].Merge(times);
  run.key.gpu = GpuName(run.key, state->devices, devices_used);
  for (auto& [index, device] : state->devices) run.devices.push_back(std::move(device));
  if (run.ranks.empty() && ranked) run.ranks.insert(state->process.rank);
  run.process_list.push_back(std::move(state->process));
  if (!state->collector_version.empty()) run.collector_versions.insert(state->collector_version);
  run.unfinished = finished ? 0 : 1;
}

// The steps before the training were batches of validation.
void LeaveUntrainedOut(RunState* state) {
  for (const trace::Step& step : state->last_steps) AddMeasuredStep(step, state);
  StepSums& steps = state->run.steps;
  wire::SaturatingAdd(&state->eval.steps, steps.steps);
  wire::SaturatingAdd(&state->eval.samples, steps.samples);
  for (const auto& [samples, count] : state->step_samples) {
    state->eval.eval_batch_samples = std::max(state->eval.eval_batch_samples, samples);
  }
  steps = {};
  state->step_kinds.clear();
  state->step_samples.clear();
  state->step_times.clear();
  state->steps.clear();
  state->undisturbed.clear();
  state->step_launches.clear();
  state->left_out_steps.clear();
  state->last_steps.clear();
}

// A batch is what more than half of the steps had: the last one of an epoch may be smaller. Older libraries said what
// the first call had.
void NoteBatchSize(RunState* state) {
  uint64_t steps = 0;
  for (const auto& [samples, count] : state->step_samples) steps += count;
  for (const auto& [samples, count] : state->step_samples) {
    if (samples != 0 && 2 * count > steps) state->run.key.batch_size = samples;
  }
}

}  // namespace

absl::Status Apply(const std::string& trace_id, const Record& record, State* state) {
  RFINJECT_TRY(state->Charge(96 + record.size, record));
  state->trace_ids.insert(trace_id);
  return absl::OkStatus();
}

absl::Status Apply(const v1::Run& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "run");
  const auto [it, inserted] = state->runs.try_emplace(message.id());
  RFINJECT_TRY(state->Charge((inserted ? sizeof(RunState) : 0) + SizeOf(message, record), record));
  trace::Run said;
  RFINJECT_TRY(ReadRecord(message, record, &said));
  RunState& of = it->second;
  RunKey& key = of.run.key;
  if (said.source != SourceKind::kUnspecified) key.source = said.source;
  if (said.tier != trace::Tier::kUnspecified) of.run.tier = static_cast<int>(said.tier);
  Update(said.process, &of.process);
  for (const trace::Device& one : said.device) {
    Update(one, &of.devices.try_emplace(one.index, DeviceInfo{.index = one.index}).first->second);
  }
  Update(said.policy, &key.policy);
  if (said.processes != 0) of.run.processes = said.processes;
  of.run.ranks.insert(said.rank.begin(), said.rank.end());
  if (said.untrained_steps > of.untrained_steps) {
    // What steps the file had so far are all among them.
    of.untrained_steps = said.untrained_steps;
    of.untrained_keys = said.untrained_keys;
    LeaveUntrainedOut(&of);
  }
  if (said.batch_size != 0) key.batch_size = said.batch_size;
  if (!said.estimated_gpu.empty()) key.estimated_gpu = said.estimated_gpu;
  if (!said.collector.empty()) key.collector = said.collector;
  if (!said.collector_version.empty()) of.collector_version = said.collector_version;
  if (!message.has_merged()) return absl::OkStatus();
  RFINJECT_TRY(ApplyOwners(said, record, state));
  return ApplyMerged(std::move(said.merged), record, state, &of);
}

absl::Status Apply(const v1::End& /*message*/, const Record& /*record*/, State* state) {
  state->finished = true;
  return absl::OkStatus();
}

void FinishFacts(State* state) {
  std::map<uint32_t, std::set<uint32_t>> devices_used;
  for (const KeyState& known : state->keys) {
    if (known.launches > 0) devices_used[known.key.run].insert(known.key.device);
  }
  for (auto& [id, of] : state->runs) {
    Run& run = of.run;
    if (run.processes == 0) run.processes = 1;
    NoteBatchSize(&of);
    if (of.merged) {
      run.step_times = std::move(of.step_times);
    } else {
      FinishProcess(devices_used[id], state->finished, &of);
    }
    std::sort(run.devices.begin(), run.devices.end());
    if (run.devices.size() > kMaxDevicesKept) run.devices.resize(kMaxDevicesKept);
    std::sort(run.process_list.begin(), run.process_list.end(), ProcessOrder());
    if (run.process_list.size() > kMaxProcessesKept) run.process_list.resize(kMaxProcessesKept);
    while (run.collector_versions.size() > kMaxCollectorVersionsKept) {
      run.collector_versions.erase(std::prev(run.collector_versions.end()));
    }
  }
}

}  // namespace rfinject::cli
