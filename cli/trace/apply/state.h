// File: state.h
//
// What the records of one file have said so far, under the file's ids. Everything that has an id lies in the file's
// order, and an index finds it.
#ifndef RFINJECT_CLI_TRACE_APPLY_STATE_H_
#define RFINJECT_CLI_TRACE_APPLY_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cli/profile/iterations.h"
#include "cli/profile/profile.h"
#include "cli/profile/step_clock.h"
#include "cli/profile/step_durations.h"
#include "cli/trace/apply/id_index.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {

struct ModelState {
  trace::Model model;
  bool has_layers = false;
  std::string name;  // what the profile calls it; known at the end
};

struct LayerState {
  LayerInfo layer;         // with the file's ids
  size_t model_place = 0;  // in State::models
};

struct KeyState {
  trace::LaunchKey key;
  uint64_t launches = 0;
  bool left_out = false;                           // all of its launches are in no complete iteration
  std::vector<std::pair<uint32_t, Stat>> metrics;  // ascending by the metric's place in State::metrics
};

// The sums by step of one metric of one run.
struct SeriesState {
  struct Key {
    int64_t code = 0;  // of the last sum
    std::vector<StepSum> sums;
  };
  std::map<uint64_t, uint64_t> steps;  // and their processes
  std::map<uint32_t, Key> keys;        // by id
  std::vector<uint32_t> last_keys;
};

struct ModuleState {
  trace::NativeModule module;
  uint64_t frames = 0;  // of all stacks so far: each gets a copy of the texts
};

struct RunState {
  Run run;
  ProcessInfo process;
  std::map<uint32_t, DeviceInfo> devices;  // by index
  std::string collector_version;
  std::vector<StepKind> step_kinds;           // of the first steps, measured or not
  std::map<uint64_t, uint64_t> step_samples;  // how many measured steps had so many samples
  // For a process that trains: what it validated, which becomes a run of its own.
  bool validates = false;
  // The last measured steps so far, fewer than an iteration may have, and by step what was launched in them, by the
  // key's place in State::keys: some of them may be in no complete iteration.
  std::deque<trace::Step> last_steps;
  std::map<uint64_t, std::vector<std::pair<size_t, uint64_t>>> step_launches;
  std::vector<uint64_t> left_out_steps;  // that are in step_launches, and are not measured
  // Run.untrained_steps and Run.untrained_keys.
  uint64_t untrained_steps = 0;
  uint32_t untrained_keys = 0;
  StepSums eval;
  bool merged = false;
  std::map<uint32_t, SeriesState> series;             // by metric
  std::map<uint32_t, StepTimes> step_times;           // by rank, where the trace is merged
  std::vector<HostStep> steps;                        // the first kMaxStepDurations that were measured
  std::vector<size_t> undisturbed;                    // their places (StepClock), of a measured run
  trace::MemoryPeak memory_peak;                      // the highest; its layers have no names yet
  std::map<uint32_t, trace::StepTimeline> timelines;  // by device
};

struct State {
  uint64_t budget = 0;    // bytes that may still be kept, roughly
  bool finished = false;  // there was an End record
  std::set<std::string> trace_ids;
  std::vector<std::string> names{std::string()};  // the first one is that of id 0
  IdIndex name_index;
  std::vector<ModelState> models;
  IdIndex model_index;
  absl::flat_hash_map<uint32_t, uint32_t> owners;  // model: merged run
  std::vector<LayerState> layers;
  IdIndex layer_index;
  std::vector<MetricInfo> metrics;
  IdIndex metric_index;
  absl::flat_hash_map<std::string, uint32_t> metric_ids;  // by name
  absl::flat_hash_map<uint32_t, ModuleState> native_modules;
  absl::flat_hash_map<uint32_t, trace::NativeStack> native_stacks;
  absl::flat_hash_map<uint32_t, std::shared_ptr<const SourceLineInfo>> lines;
  std::vector<KeyState> keys;
  IdIndex key_index;
  // What calls of operators compute, by what tells one from another.
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, std::vector<uint32_t>, std::vector<uint64_t>>,
           trace::OperatorWork>
      works;
  std::map<uint32_t, RunState> runs;
  // By key, and by metric's name: known at the end.
  absl::flat_hash_map<uint32_t, std::map<std::string, std::vector<StepSum>>> key_sums;

  // Counts what is about to be kept. The figures are rough on purpose, because they only serve as a bound.
  absl::Status Charge(uint64_t bytes, const Record& record);
  // The id that a record's `run` stands for.
  static uint32_t RunId(uint32_t run) { return run == 0 ? 1 : run; }
  // Finds a run by its id. Run 1 needs no definition, because a process has it even when it knows nothing about
  // itself yet.
  absl::Status FindRun(uint32_t id, const Record& record, RunState** run);
  // The run that a model belongs to.
  uint32_t OwnerOf(uint32_t model) const;
  // Finds a name's text; the empty one for id 0.
  absl::Status FindName(uint32_t id, const Record& record, const std::string** text) const;
  // The text of a name that is known.
  const std::string& NameOf(uint32_t id) const { return names[id == 0 ? 0 : name_index.Find(id)]; }
  // Whether launches of this key are of the run that its run's validation is.
  bool IsValidation(const trace::LaunchKey& key) const {
    const RunState& run = runs.at(key.run);
    return (key.phase == Phase::kEval && !run.merged) || key.id <= run.untrained_keys;
  }
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_STATE_H_
