// File: apply.h
//
// Makes a Profile of records: they are added up under the file's ids, which are resolved at the end. A record that
// contradicts itself or what came before (an id that was never defined, an id defined twice) is damage.
//
//   Applier applier(max_bytes);
//   for (each record) applier.Apply(record);
//   applier.Resolve();
//   std::move(applier).AddTo(&sum);
#ifndef RFINJECT_CLI_TRACE_APPLY_H_
#define RFINJECT_CLI_TRACE_APPLY_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cli/profile/accumulator.h"
#include "cli/profile/iterations.h"
#include "cli/profile/profile.h"
#include "cli/profile/step_durations.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {

// Finds the place of what has an id. Writers count ids from 1, so that most are found by one look into an array.
class IdIndex {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  size_t Find(uint32_t id) const {
    if (id < near_.size() && near_[id] != 0) return near_[id] - 1;
    return far_.empty() ? kNone : FindFar(id);
  }
  bool Has(uint32_t id) const { return Find(id) != kNone; }
  // Returns where the id's element lies, and whether that is `place` because the id is new.
  std::pair<size_t, bool> TryEmplace(uint32_t id, size_t place) {
    const size_t known = Find(id);
    if (known != kNone) return {known, false};
    // The array is not longer than twice the number of ids.
    if (id < 2 * place + 64 && place < UINT32_MAX) {
      if (id >= near_.size()) near_.resize(2 * (place + 64));
      near_[id] = static_cast<uint32_t>(place + 1);
    } else {
      far_.emplace(id, place);
    }
    return {place, true};
  }

 private:
  size_t FindFar(uint32_t id) const;

  std::vector<uint32_t> near_;  // by id: the place and 1; 0: not here
  absl::flat_hash_map<uint32_t, size_t> far_;
};

class Applier {
 public:
  // `max_bytes` bounds what is kept, roughly.
  explicit Applier(uint64_t max_bytes) : budget_(max_bytes) {}

  // After a failure (DamageAt), which may have come in the middle of a record, the state must not be used any more.
  absl::Status Apply(const Record& record);
  bool finished() const { return finished_; }  // there was an End record

  // Resolves the ids. Must be called after the last record, and before the functions below.
  void Resolve();
  std::set<std::string>& trace_ids() { return trace_ids_; }
  const std::vector<MetricInfo>& metrics() const { return metrics_; }
  bool anything() const { return !runs_.empty(); }
  // The names of the operators of each run whose process ended, ascending. The texts live as long as this.
  std::vector<std::pair<RunKey, std::vector<std::string_view>>> Operators() const;

  // Metrics must agree with those that are in `sum` (Profile::Merge).
  void AddTo(Accumulator* sum) &&;
  // Returns the Profile of this one trace.
  Profile Finish() &&;

 private:
  struct ModelState {
    uint32_t id = 0;
    bool has_layers = false;
    ModelInfo info;
    std::string name;  // what the profile calls it; known at the end
  };
  struct LayerState {
    uint32_t model = 0;
    uint32_t parent = 0;
    size_t model_place = 0;  // in models_
    std::string path;
    LayerInfo info;
  };
  struct KeyIdentity {
    uint32_t kernel = 0, op = 0, signature = 0, node = 0;  // names
    uint32_t layer = 0, run = 0;
    Phase phase = Phase::kOther;
    std::array<uint32_t, 3> grid{}, block{};
    uint32_t dynamic_shared_bytes = 0, device = 0, stack = 0, line = 0;
    friend bool operator==(const KeyIdentity&, const KeyIdentity&) = default;
  };
  struct KeyState {
    uint32_t id = 0;
    KeyIdentity identity;
    uint64_t launches = 0;
    std::vector<std::pair<uint32_t, Stat>> metrics;  // ascending by the metric's place in metrics_
  };
  // The sums by step of one metric of one run.
  struct SeriesState {
    struct Key {
      int64_t code = 0;  // of the last sum
      std::vector<StepSum> sums;
    };
    std::map<uint64_t, uint64_t> steps;  // and their processes
    std::map<uint32_t, Key> keys;
    std::vector<uint32_t> last_keys;
  };
  struct ModuleState {
    std::string path, build_id;
    uint64_t frames = 0;  // of all stacks so far: each gets a copy of the above
  };
  struct StackState {
    std::vector<uint32_t> modules, functions;
    std::vector<uint64_t> offsets;
  };
  struct RunState {
    Run run;
    ProcessInfo process;
    std::map<uint32_t, DeviceInfo> devices;  // by index
    std::string collector_version;
    std::vector<StepKind> step_kinds;  // of the first steps, measured or not
    // For a process that trains: what it validated, which becomes a run of its own.
    bool validates = false;
    StepSums eval;
    bool merged = false;
    std::map<uint32_t, SeriesState> series;    // by metric
    std::map<uint32_t, StepTimes> step_times;  // by rank, where the trace is merged
    std::vector<StepDuration> durations;       // of measured steps that were not armed
    // A part of run.memory_peak, whose place has no name yet.
    struct MemoryPart {
      uint32_t layer = 0;
      Phase phase = Phase::kOther;
      uint64_t bytes = 0;
    };
    std::vector<MemoryPart> memory_parts;
    MemoryPart memory_refused;
  };

  absl::Status Charge(uint64_t bytes, uint64_t offset);
  absl::Status FindRun(uint64_t offset, uint32_t id, RunState** run);
  static Run ValidationOf(const RunState& state);
  // Whether launches of this key are of the run that its run's validation is.
  bool IsValidation(const KeyIdentity& key) const { return key.phase == Phase::kEval && !runs_.at(key.run).merged; }
  const std::string& NameOf(uint32_t id) const { return names_[id == 0 ? 0 : name_index_.Find(id)]; }
  // The run that a model belongs to.
  uint32_t OwnerOf(uint32_t model) const;

  absl::Status ApplyRun(const v1::Run& message, const Record& record);
  absl::Status ApplyMerged(const v1::Merged& message, const Record& record, uint32_t run_id, RunState* state);
  absl::Status ApplyName(const v1::Name& message, const Record& record);
  absl::Status ApplyModel(const v1::Model& message, const Record& record);
  absl::Status ApplyLayer(const v1::Layer& message, const Record& record);
  absl::Status ApplyMetric(const v1::Metric& message, const Record& record);
  absl::Status ApplyNativeModule(const v1::NativeModule& message, const Record& record);
  absl::Status ApplyNativeStack(const v1::NativeStack& message, const Record& record);
  absl::Status ApplySourceLine(const v1::SourceLine& message, const Record& record);
  absl::Status ApplyKey(const v1::LaunchKey& message, const Record& record);
  absl::Status ApplyStats(const Record& record);
  absl::Status ApplyRepeatedLaunches(const v1::RepeatedLaunches& message, const Record& record);
  absl::Status ApplySampledStep(const v1::SampledStep& message, const Record& record);
  absl::Status ApplyStep(const v1::Step& message, const Record& record);
  absl::Status ApplyMemoryPeak(const v1::MemoryPeak& message, const Record& record);
  absl::Status ApplyPmWindow(const v1::PmWindow& message, const Record& record);
  absl::Status ApplyDiagnostic(const v1::Diagnostic& message, const Record& record);
  absl::Status ApplyDrop(const v1::Drop& message, const Record& record);
  absl::Status AddStepTimes(const v1::Step& message, const Record& record, StepTimes* times);
  absl::Status ReadSpread(const v1::Spread& message, uint64_t offset, Spread* spread);
  absl::Status ApplyRankSteps(const v1::RankSteps& message, const Record& record);
  absl::Status ApplyStepStats(const v1::StepStats& message, const Record& record);
  static void KeepPmWindow(PmWindowInfo window, Run* run);

  void NameModels();
  void FinishModels();
  void FinishFacts();
  void FinishSeries();
  void FinishMemory();
  absl::flat_hash_map<uint32_t, std::shared_ptr<const NativeStackInfo>> FinishStacks() const;
  // What a run's layers and launches are added to.
  struct Sums {
    Accumulator::RunSum* run = nullptr;
    Accumulator::RunSum* validation = nullptr;  // of what it validates; null: nothing
  };
  std::vector<Accumulator::Layer> AddLayers(const std::map<uint32_t, Sums>& sums, Accumulator* sum) const;
  void AddLaunches(const std::map<uint32_t, Sums>& sums, std::span<const Accumulator::Layer> layers,
                   Accumulator* sum);

  uint64_t budget_;
  bool finished_ = false;
  // Elements that have an index by id lie in the file's order.
  std::vector<std::string> names_{std::string()};  // the first one is that of id 0
  IdIndex name_index_;
  std::vector<ModelState> models_;
  IdIndex model_index_;
  absl::flat_hash_map<uint32_t, uint32_t> owners_;  // model: merged run
  std::vector<LayerState> layers_;
  IdIndex layer_index_;
  std::vector<MetricInfo> metrics_;
  IdIndex metric_index_;
  absl::flat_hash_map<std::string, uint32_t> metric_ids_;  // by name
  absl::flat_hash_map<uint32_t, ModuleState> native_modules_;
  absl::flat_hash_map<uint32_t, StackState> native_stacks_;
  absl::flat_hash_map<uint32_t, std::shared_ptr<const SourceLineInfo>> lines_;
  std::vector<KeyState> keys_;
  IdIndex key_index_;
  std::map<uint32_t, RunState> runs_;
  std::set<std::string> trace_ids_;
  absl::flat_hash_map<uint32_t, std::map<std::string, std::vector<StepSum>>> key_sums_;  // by key, by metric's name
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_H_
