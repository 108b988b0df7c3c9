// File: apply.h
//
// Records -> Profile: what the records of one trace say, added up with the file's ids, and resolved at the end. A
// record that contradicts itself or what came before (an id that was never defined, an id defined twice) is damage.
#ifndef RFINJECT_CLI_TRACE_APPLY_H_
#define RFINJECT_CLI_TRACE_APPLY_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cli/profile/profile.h"
#include "cli/profile/step_durations.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {

class Applier {
 public:
  // `max_bytes` bounds what is kept, roughly.
  explicit Applier(uint64_t max_bytes) : budget_(max_bytes) {}

  // After a failure (DamageAt), which may have come in the middle of a record, the state is good for nothing.
  absl::Status Apply(const Record& record);
  bool finished() const { return finished_; }  // there was an End record
  Profile Finish() &&;

 private:
  struct ModelState {
    uint32_t id = 0;
    bool has_layers = false;
    ModelInfo info;
  };
  struct LayerState {
    uint32_t model = 0;
    uint32_t parent = 0;
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
    std::vector<std::pair<uint32_t, Stat>> metrics;  // ascending by the metric's id
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
    std::vector<uint32_t> step_kinds;  // of the first steps, measured or not
    // Of a process that trains: what it validated, which becomes a run of its own.
    std::map<LaunchKey, LaunchStats> validation;
    StepSums eval;
    bool merged = false;
    std::map<uint32_t, SeriesState> series;    // by metric
    std::map<uint32_t, StepTimes> step_times;  // by rank, where the trace is merged
    std::vector<StepDuration> durations;       // of measured steps that were not armed
    // Of run.memory_peak, whose places have no names yet.
    struct MemoryPart {
      uint32_t layer = 0;
      Phase phase = Phase::kOther;
      uint64_t bytes = 0;
    };
    std::vector<MemoryPart> memory_parts;
  };

  absl::Status Charge(uint64_t bytes, uint64_t offset);
  absl::Status FindRun(uint64_t offset, uint32_t id, RunState** run);
  static Run ValidationOf(RunState& state);
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
  absl::Status ApplyStats(const v1::KeyStats& message, const Record& record);
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

  // Of each model by its id: what the profile calls it.
  absl::flat_hash_map<uint32_t, std::string> ModelNames() const;
  void FinishModels(const absl::flat_hash_map<uint32_t, std::string>& names);
  void FinishFacts();
  absl::flat_hash_map<uint32_t, std::shared_ptr<const NativeStackInfo>> FinishStacks() const;
  void FinishSeries();
  void FinishMemory(const absl::flat_hash_map<uint32_t, std::string>& model_names);
  void FinishLaunches(const absl::flat_hash_map<uint32_t, std::string>& model_names);

  uint64_t budget_;
  bool finished_ = false;
  absl::flat_hash_map<uint32_t, std::string> names_;
  // What has an index by id lies in the file's order.
  std::vector<ModelState> models_;
  absl::flat_hash_map<uint32_t, size_t> model_index_;
  absl::flat_hash_map<uint32_t, uint32_t> owners_;  // model: merged run
  std::vector<LayerState> layers_;
  absl::flat_hash_map<uint32_t, size_t> layer_index_;
  absl::flat_hash_map<uint32_t, MetricInfo> metrics_;
  absl::flat_hash_map<std::string, uint32_t> metric_ids_;  // by name
  absl::flat_hash_map<uint32_t, ModuleState> native_modules_;
  absl::flat_hash_map<uint32_t, StackState> native_stacks_;
  absl::flat_hash_map<uint32_t, std::shared_ptr<const SourceLineInfo>> lines_;
  std::vector<KeyState> keys_;
  absl::flat_hash_map<uint32_t, size_t> key_index_;
  std::map<uint32_t, RunState> runs_;
  std::set<std::string> trace_ids_;
  absl::flat_hash_map<uint32_t, std::map<std::string, std::vector<StepSum>>> key_sums_;  // by key, by metric's name
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_H_
