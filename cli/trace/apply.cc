#include "cli/trace/apply.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/profile/iterations.h"
#include "cli/trace/damage.h"
#include "proto/wire/sum_code.h"

namespace rfinject::cli {
namespace {

void SaturatingAdd(uint64_t& into, uint64_t value) { into = into + value < into ? UINT64_MAX : into + value; }

// Facts: what is said later wins over what was said earlier, what is not said leaves things as they are.
void Set(std::string& into, const std::string& text) {
  if (!text.empty()) into = text;
}
void Set(uint64_t& into, uint64_t value) {
  if (value != 0) into = value;
}

// The schema's message as the struct that the schema makes.
template <typename Struct, typename Message>
Struct Facts(const Message& message) {
  Struct facts;
  trace::FromMessage(message, &facts);
  return facts;
}

// Returns the status of `expression` from the function if it is not OK.
#define RFINJECT_TRY(expression)                                         \
  do {                                                                   \
    if (absl::Status status = (expression); !status.ok()) return status; \
  } while (false)

absl::Status Undefined(uint64_t offset, std::string_view what, uint64_t id) {
  return DamageAt(offset, absl::StrCat(std::string(what), " ", id, " is used and was never defined"));
}
absl::Status Redefined(uint64_t offset, std::string_view what, uint64_t id) {
  return DamageAt(offset, absl::StrCat(std::string(what), " ", id, " is defined twice, differently"));
}
absl::Status NoId(uint64_t offset, std::string_view what) {
  return DamageAt(offset, absl::StrCat("a ", std::string(what), " is defined without an id"));
}

// A Stat of the schema's message; where it contradicts itself, damage at `offset`.
absl::Status ReadStat(const v1::MetricStats& message, uint64_t offset, Stat* stat) {
  *stat = Stat{};
  const Uint128 sum = static_cast<Uint128>(message.sum_high()) << 64 | message.sum();
  if (message.n() == 0) {
    return sum == 0 ? absl::OkStatus() : DamageAt(offset, "a sum over no samples is not 0");
  }
  if (message.min() > message.max()) return DamageAt(offset, "a metric's minimum is above its maximum");
  stat->n = message.n();
  stat->sum = sum;
  stat->sum_squares = static_cast<Uint128>(message.sum_squares_high()) << 64 | message.sum_squares();
  stat->min = message.min();
  stat->max = message.max();
  stat->shared_sums = message.shared_sums();
  return absl::OkStatus();
}

}  // namespace

// Counts what is about to be kept. The figures are rough on purpose: their job is a bound.
absl::Status Applier::Charge(uint64_t bytes, uint64_t offset) {
  if (bytes > budget_) return DamageAt(offset, "holds more distinct launch keys than fit in memory");
  budget_ -= bytes;
  return absl::OkStatus();
}

// Run 1 needs no definition: a process that knows nothing about itself yet has one all the same.
absl::Status Applier::FindRun(uint64_t offset, uint32_t id, RunState** run) {
  if (id == 0) id = 1;
  const auto it = id == 1 ? runs_.try_emplace(1).first : runs_.find(id);
  if (it == runs_.end()) return Undefined(offset, "run", id);
  *run = &it->second;
  return absl::OkStatus();
}

uint32_t Applier::OwnerOf(uint32_t model) const {
  const auto it = owners_.find(model);
  return it == owners_.end() ? 1 : it->second;
}

absl::Status Applier::Apply(const Record& record) {
  const v1::Chunk& chunk = *record.chunk;
  switch (record.number) {
    case v1::Chunk::kRunFieldNumber:
      return ApplyRun(chunk.run(0), record);
    case v1::Chunk::kNameFieldNumber:
      return ApplyName(chunk.name(0), record);
    case v1::Chunk::kModelFieldNumber:
      return ApplyModel(chunk.model(0), record);
    case v1::Chunk::kLayerFieldNumber:
      return ApplyLayer(chunk.layer(0), record);
    case v1::Chunk::kMetricFieldNumber:
      return ApplyMetric(chunk.metric(0), record);
    case v1::Chunk::kNativeModuleFieldNumber:
      return ApplyNativeModule(chunk.native_module(0), record);
    case v1::Chunk::kNativeStackFieldNumber:
      return ApplyNativeStack(chunk.native_stack(0), record);
    case v1::Chunk::kSourceLineFieldNumber:
      return ApplySourceLine(chunk.source_line(0), record);
    case v1::Chunk::kKeyFieldNumber:
      return ApplyKey(chunk.key(0), record);
    case v1::Chunk::kStatsFieldNumber:
      return ApplyStats(chunk.stats(0), record);
    case v1::Chunk::kSampledStepFieldNumber:
      return ApplySampledStep(chunk.sampled_step(0), record);
    case v1::Chunk::kStepFieldNumber:
      return ApplyStep(chunk.step(0), record);
    case v1::Chunk::kMemoryPeakFieldNumber:
      return ApplyMemoryPeak(chunk.memory_peak(0), record);
    case v1::Chunk::kPmWindowFieldNumber:
      return ApplyPmWindow(chunk.pm_window(0), record);
    case v1::Chunk::kDiagnosticFieldNumber:
      return ApplyDiagnostic(chunk.diagnostic(0), record);
    case v1::Chunk::kDropFieldNumber:
      return ApplyDrop(chunk.drop(0), record);
    case v1::Chunk::kStepStatsFieldNumber:
      return ApplyStepStats(chunk.step_stats(), record);
    case v1::Chunk::kTraceIdFieldNumber:
      RFINJECT_TRY(Charge(96 + record.size, record.offset));
      trace_ids_.insert(chunk.trace_id(0));
      return absl::OkStatus();
    case v1::Chunk::kEndFieldNumber:
      finished_ = true;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status Applier::ApplyRun(const v1::Run& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "run");
  const auto [it, inserted] = runs_.try_emplace(message.id());
  // What is kept of a record is about as large as itself, and a struct for each message and element in it.
  const v1::Merged& merged = message.merged();
  const uint64_t processes = 1 + static_cast<uint64_t>(merged.process_size());
  const uint64_t devices = static_cast<uint64_t>(message.device_size()) + static_cast<uint64_t>(merged.device_size());
  const uint64_t elements = static_cast<uint64_t>(message.rank_size() + message.process().argv_size()) +
                            static_cast<uint64_t>(merged.root_size() + merged.model_size());
  RFINJECT_TRY(Charge((inserted ? sizeof(RunState) : 0) + processes * sizeof(ProcessInfo) +
                          devices * sizeof(DeviceInfo) + 64 * elements + 4 * record.size,
                      record.offset));
  RunState& state = it->second;
  RunKey& key = state.run.key;
  if (message.source() != 0) {
    key.source =
        v1::Source_IsValid(message.source()) ? static_cast<SourceKind>(message.source()) : SourceKind::kUnspecified;
  }
  if (message.tier() != 0) state.run.tier = v1::Tier_IsValid(message.tier()) ? message.tier() : v1::Tier_MAX;
  if (message.has_process()) trace::Merge(Facts<ProcessInfo>(message.process()), &state.process);
  for (const v1::Device& one : message.device()) {
    const auto device = Facts<DeviceInfo>(one);
    trace::Merge(device, &state.devices.try_emplace(device.index, DeviceInfo{.index = device.index}).first->second);
  }
  if (message.has_policy()) trace::Merge(Facts<PolicyInfo>(message.policy()), &key.policy);
  Set(state.run.processes, message.processes());
  state.run.ranks.insert(message.rank().begin(), message.rank().end());
  Set(key.batch_size, message.batch_size());
  Set(key.estimated_gpu, message.estimated_gpu());
  Set(key.collector, message.collector());
  Set(state.collector_version, message.collector_version());
  return message.has_merged() ? ApplyMerged(merged, record, message.id(), &state) : absl::OkStatus();
}

absl::Status Applier::ApplyMerged(const v1::Merged& message, const Record& record, uint32_t run_id, RunState* state) {
  state->merged = true;
  Run& run = state->run;
  Set(run.key.gpu, message.gpu());
  run.key.models.insert(run.key.models.end(), message.root().begin(), message.root().end());
  for (const uint32_t id : message.model()) {
    const auto [it, inserted] = owners_.try_emplace(id, run_id);
    if (!inserted && it->second != run_id) return Redefined(record.offset, "the run of model", id);
    const auto model = model_index_.find(id);
    if (inserted && model != model_index_.end() && models_[model->second].has_layers) {
      return DamageAt(record.offset, absl::StrCat("model ", id, " changes its run after its first layer"));
    }
  }
  for (const v1::Process& one : message.process()) run.process_list.push_back(Facts<ProcessInfo>(one));
  for (const v1::Device& one : message.device()) run.devices.push_back(Facts<DeviceInfo>(one));
  for (const v1::PmWindow& one : message.pm_window()) {
    RFINJECT_TRY(Charge(sizeof(PmWindowInfo), record.offset));
    KeepPmWindow(Facts<PmWindowInfo>(one), &run);
  }
  run.collector_versions.insert(message.collector_version().begin(), message.collector_version().end());
  Set(run.unfinished, message.unfinished());
  Set(run.key.parameters, message.parameters());
  run.key.training = run.key.training || message.training();
  return absl::OkStatus();
}

absl::Status Applier::ApplyName(const v1::Name& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "name");
  const auto [it, inserted] = names_.try_emplace(message.id(), message.text());
  if (inserted) return Charge(96 + it->second.size(), record.offset);
  return it->second == message.text() ? absl::OkStatus() : Redefined(record.offset, "name", message.id());
}

absl::Status Applier::ApplyModel(const v1::Model& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "model");
  const auto [it, inserted] = model_index_.try_emplace(message.id(), models_.size());
  if (inserted) {
    models_.push_back({.id = message.id(), .info = {.class_name = message.class_name()}});
    RFINJECT_TRY(Charge(sizeof(ModelState) + 64 + record.size, record.offset));
  }
  ModelInfo& known = models_[it->second].info;
  if (!message.class_name().empty() && message.class_name() != known.class_name) {
    return Redefined(record.offset, "model", message.id());
  }
  Set(known.parameters, message.parameters());
  Set(known.parameter_bytes, message.parameter_bytes());
  Set(known.trainable_parameters, message.trainable_parameters());
  return absl::OkStatus();
}

absl::Status Applier::ApplyLayer(const v1::Layer& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "layer");
  const auto [it, inserted] = layer_index_.try_emplace(message.id(), layers_.size());
  if (inserted) {
    const auto model = model_index_.find(message.model());
    if (model == model_index_.end()) return Undefined(record.offset, "model", message.model());
    RunState* run = nullptr;
    RFINJECT_TRY(FindRun(record.offset, OwnerOf(message.model()), &run));
    models_[model->second].has_layers = true;
    LayerState layer;
    layer.model = message.model();
    layer.parent = message.parent();
    layer.path = message.path();
    if (layer.parent != 0) {
      const auto parent = layer_index_.find(layer.parent);
      if (parent == layer_index_.end() || parent->second == layers_.size()) {
        return Undefined(record.offset, "layer", layer.parent);
      }
      if (layers_[parent->second].model != layer.model) {
        return DamageAt(record.offset, absl::StrCat("layer ", message.id(), " has a parent in another model"));
      }
      layer.info.parent = layers_[parent->second].path;
    }
    // Its text is kept here and in the profile, and its path once more by its children.
    RFINJECT_TRY(Charge(sizeof(LayerState) + sizeof(LayerInfo) + sizeof(LayerKey) + 160 + 2 * record.size +
                            2 * layer.info.parent.size(),
                        record.offset));
    layers_.push_back(std::move(layer));
  } else {
    RFINJECT_TRY(Charge(record.size, record.offset));
  }
  LayerState& state = layers_[it->second];
  // A later record of a layer adds what was not known before (its shapes); what identifies it can be left out.
  if ((message.model() != 0 && message.model() != state.model) ||
      (message.parent() != 0 && message.parent() != state.parent) ||
      (!message.path().empty() && message.path() != state.path)) {
    return Redefined(record.offset, "layer", message.id());
  }
  LayerInfo& info = state.info;
  Set(info.class_name, message.class_name());
  Set(info.input_shape, message.input_shape());
  Set(info.output_shape, message.output_shape());
  Set(info.parameters, message.parameters());
  Set(info.parameter_bytes, message.parameter_bytes());
  info.training = info.training || message.training();
  if (inserted) info.order = message.order();
  return absl::OkStatus();
}

absl::Status Applier::ApplyMetric(const v1::Metric& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "metric");
  MetricInfo metric{.name = message.name(), .unit = message.unit()};
  if (message.scale() != 0) metric.scale = message.scale();
  // Between atto and exa; beyond, sums of what a file can hold would not be finite.
  if (!(metric.scale >= 1e-18 && metric.scale <= 1e18)) {
    return DamageAt(record.offset, absl::StrCat("metric ", message.id(), " has an impossible scale"));
  }
  const auto [it, inserted] = metrics_.try_emplace(message.id(), metric);
  if (!inserted) {
    return it->second == metric ? absl::OkStatus() : Redefined(record.offset, "metric", message.id());
  }
  const auto [named, first] = metric_ids_.try_emplace(metric.name, message.id());
  if (!first) {
    return DamageAt(record.offset,
                    absl::StrCat("metrics ", named->second, " and ", message.id(), " have the same name"));
  }
  // A new metric of a key is inserted into a sorted list.
  constexpr size_t kMaxMetrics = 8192;
  if (metrics_.size() > kMaxMetrics) return DamageAt(record.offset, "more metrics than any trace has");
  return Charge(sizeof(MetricInfo) + 256 + 3 * record.size, record.offset);
}

// A later message for a module or a stack replaces an earlier one: names become known when the process ends.
absl::Status Applier::ApplyNativeModule(const v1::NativeModule& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "native module");
  ModuleState& module = native_modules_[message.id()];
  RFINJECT_TRY(Charge(sizeof(ModuleState) + 64 + 3 * record.size, record.offset));
  const uint64_t before = module.path.size() + module.build_id.size();
  const uint64_t now = message.path().size() + message.build_id().size();
  if (now > before) {
    RFINJECT_TRY(Charge((now - before) * module.frames, record.offset));
  }
  module.path = message.path();
  module.build_id = message.build_id();
  return absl::OkStatus();
}

absl::Status Applier::ApplyNativeStack(const v1::NativeStack& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "native stack");
  constexpr int kMaxFrames = 256;  // four times what a process writes
  if (message.module_size() > kMaxFrames || message.offset_size() != message.module_size() ||
      (message.function_size() != 0 && message.function_size() != message.module_size())) {
    return DamageAt(record.offset, absl::StrCat("native stack ", message.id(), " has frames without an end"));
  }
  uint64_t text = 0;
  for (const uint32_t id : message.module()) {
    const auto module = native_modules_.find(id);
    if (module == native_modules_.end()) return Undefined(record.offset, "native module", id);
    text += module->second.path.size() + module->second.build_id.size();
  }
  for (const uint32_t id : message.function()) {
    if (id == 0) continue;
    const auto name = names_.find(id);
    if (name == names_.end()) return Undefined(record.offset, "name", id);
    text += name->second.size();
  }
  // What Finish makes of it is larger than what is kept now.
  RFINJECT_TRY(Charge(
      sizeof(StackState) + 128 + text + static_cast<uint64_t>(message.module_size()) * (sizeof(NativeFrameInfo) + 16),
      record.offset));
  for (const uint32_t id : message.module()) ++native_modules_[id].frames;
  StackState& stack = native_stacks_[message.id()];
  stack.modules.assign(message.module().begin(), message.module().end());
  stack.offsets.assign(message.offset().begin(), message.offset().end());
  stack.functions.assign(message.function().begin(), message.function().end());
  stack.functions.resize(stack.modules.size());
  return absl::OkStatus();
}

absl::Status Applier::ApplySourceLine(const v1::SourceLine& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "source line");
  SourceLineInfo line;
  line.line = message.line();
  for (const auto& [id, text] :
       {std::pair(message.file(), &line.file), std::pair(message.function(), &line.function)}) {
    if (id == 0) continue;
    const auto name = names_.find(id);
    if (name == names_.end()) return Undefined(record.offset, "name", id);
    *text = name->second;
  }
  const uint64_t text = line.file.size() + line.function.size();
  const auto [it, inserted] = lines_.try_emplace(message.id());
  if (!inserted) {
    return *it->second == line ? absl::OkStatus() : Redefined(record.offset, "source line", message.id());
  }
  it->second = std::make_shared<const SourceLineInfo>(std::move(line));
  return Charge(sizeof(SourceLineInfo) + 128 + text, record.offset);
}

absl::Status Applier::ApplyKey(const v1::LaunchKey& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "launch key");
  KeyIdentity key;
  if (message.grid_size() > 3 || message.block_size() > 3) {
    return DamageAt(record.offset, "a grid or block has more than three dimensions");
  }
  std::copy(message.grid().begin(), message.grid().end(), key.grid.begin());
  std::copy(message.block().begin(), message.block().end(), key.block.begin());
  key.kernel = message.kernel();
  key.op = message.op();
  key.signature = message.signature();
  key.node = message.node();
  key.layer = message.layer();
  key.run = message.run() == 0 ? 1 : message.run();
  // A phase of a newer minor version is some other phase to us.
  key.phase = v1::Phase_IsValid(message.phase()) ? static_cast<Phase>(message.phase()) : Phase::kOther;
  key.dynamic_shared_bytes = message.dynamic_shared_bytes();
  key.device = message.device();
  key.stack = message.stack();
  if (key.stack != 0 && !native_stacks_.contains(key.stack)) {
    return Undefined(record.offset, "native stack", key.stack);
  }
  key.line = message.line();
  if (key.line != 0 && !lines_.contains(key.line)) return Undefined(record.offset, "source line", key.line);

  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, key.run, &run));
  uint64_t text = 0;
  for (const uint32_t name : {key.kernel, key.op, key.signature, key.node}) {
    if (name == 0) continue;
    const auto it = names_.find(name);
    if (it == names_.end()) return Undefined(record.offset, "name", name);
    text += it->second.size();
  }
  if (key.layer != 0) {
    const auto layer = layer_index_.find(key.layer);
    if (layer == layer_index_.end()) return Undefined(record.offset, "layer", key.layer);
    const LayerState& state = layers_[layer->second];
    if (OwnerOf(state.model) != key.run) {
      return DamageAt(record.offset, absl::StrCat("launch key ", message.id(), " is in a layer of another run"));
    }
    text += state.path.size();
  }
  const auto [it, inserted] = key_index_.try_emplace(message.id(), keys_.size());
  if (!inserted) {
    return keys_[it->second].identity == key ? absl::OkStatus()
                                             : Redefined(record.offset, "launch key", message.id());
  }
  keys_.push_back({.id = message.id(), .identity = key, .metrics = {}});
  return Charge(sizeof(KeyState) + sizeof(LaunchKey) + 160 + text, record.offset);
}

absl::Status Applier::ApplyStats(const v1::KeyStats& message, const Record& record) {
  const auto found = key_index_.find(message.key());
  if (found == key_index_.end()) return Undefined(record.offset, "launch key", message.key());
  KeyState& key = keys_[found->second];
  SaturatingAdd(key.launches, message.launches());
  for (const v1::MetricStats& one : message.metric()) {
    Stat stat;
    RFINJECT_TRY(ReadStat(one, record.offset, &stat));
    if (!metrics_.contains(one.metric())) return Undefined(record.offset, "metric", one.metric());
    if (stat.n == 0) continue;
    const auto place = std::lower_bound(key.metrics.begin(), key.metrics.end(), one.metric(),
                                        [](const auto& m, uint32_t id) { return m.first < id; });
    if (place != key.metrics.end() && place->first == one.metric()) {
      place->second.Merge(stat);
    } else {
      RFINJECT_TRY(Charge(2 * sizeof(Stat) + 160, record.offset));
      key.metrics.emplace(place, one.metric(), stat);
    }
  }
  return absl::OkStatus();
}

absl::Status Applier::ApplySampledStep(const v1::SampledStep& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  if (!metrics_.contains(message.metric())) return Undefined(record.offset, "metric", message.metric());
  SeriesState& series = run->series[message.metric()];
  if (!series.steps.empty() && message.step() <= series.steps.rbegin()->first) {
    return DamageAt(record.offset, "sampled steps do not ascend");
  }
  if (message.key_size() > 0) {
    series.last_keys.clear();
    uint64_t id = 0;
    for (const uint32_t more : message.key()) {
      id += more;
      if (more == 0) return DamageAt(record.offset, "the keys of a sampled step do not ascend");
      if (id > UINT32_MAX || !key_index_.contains(static_cast<uint32_t>(id))) {
        return Undefined(record.offset, "launch key", id);
      }
      if (keys_[key_index_.at(static_cast<uint32_t>(id))].identity.run != (message.run() == 0 ? 1 : message.run())) {
        return DamageAt(record.offset, absl::StrCat("launch key ", id, " is sampled in another run's step"));
      }
      series.last_keys.push_back(static_cast<uint32_t>(id));
    }
  }
  const bool exact = message.sum_size() > 0;
  const auto size = static_cast<size_t>(exact ? message.sum_size() : message.change_size());
  const bool none = size == 0 && message.key_size() == 0;  // no key was sampled in it
  if ((!none && size != series.last_keys.size()) || (exact && message.change_size() > 0)) {
    return DamageAt(record.offset, "a sampled step has not one sum a key");
  }
  RFINJECT_TRY(Charge(64 + size * sizeof(StepSum) + series.last_keys.size() * 8, record.offset));
  series.steps.emplace(message.step(), std::max<uint64_t>(message.processes(), 1));
  for (size_t i = 0; i < size; ++i) {
    const auto [key, inserted] = series.keys.try_emplace(series.last_keys[i]);
    if (inserted) RFINJECT_TRY(Charge(sizeof(SeriesState::Key) + 160, record.offset));
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

absl::Status Applier::ApplyStep(const v1::Step& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  if (run->step_kinds.size() < kMostStepsLookedAt) run->step_kinds.push_back(message.kind());
  if (!message.measured()) return absl::OkStatus();
  StepSums& steps = run->run.steps;
  SaturatingAdd(steps.steps, 1);
  SaturatingAdd(steps.samples, message.samples());
  SaturatingAdd(steps.calls, message.calls());
  steps.memory_peak_bytes = std::max({steps.memory_peak_bytes, message.memory_bytes(), message.memory_peak_bytes()});
  // An armed step's time holds what profiling cost.
  if (message.armed_group() != 0) {
    SaturatingAdd(steps.armed, 1);
  } else {
    steps.duration_ns.Add(message.duration_ns());
    RFINJECT_TRY(AddStepTimes(message, record, &run->step_times[0]));
    if (run->durations.size() < kMaxStepDurations) {
      RFINJECT_TRY(Charge(sizeof(StepDuration), record.offset));
      run->durations.push_back({message.index(), message.duration_ns()});
    }
  }
  return absl::OkStatus();
}

// Roughly: of a place of a Spread.
constexpr uint64_t kBytesOfAPlace = 64;

absl::Status Applier::AddStepTimes(const v1::Step& message, const Record& record, StepTimes* times) {
  constexpr uint32_t kData = 1, kGpuWait = 2, kBusy = 4;  // of Step.watched
  const auto places = [times] {
    return times->wall_ns.counts().size() + times->data_wait_ns.counts().size() + times->gpu_wait_ns.counts().size() +
           times->gpu_busy_ns.counts().size();
  };
  const size_t before = places();
  times->wall_ns.Add(message.duration_ns());
  if (message.watched() & kData) times->data_wait_ns.Add(message.data_wait_ns());
  if (message.watched() & kGpuWait) times->gpu_wait_ns.Add(message.gpu_wait_ns());
  if (message.watched() & kBusy) times->gpu_busy_ns.Add(message.gpu_busy_ns());
  return Charge(kBytesOfAPlace * (places() - before), record.offset);
}

// Adds what the message says to `spread`; damage at `offset` where it contradicts itself.
absl::Status Applier::ReadSpread(const v1::Spread& message, uint64_t offset, Spread* spread) {
  if (message.code_size() != message.count_size()) return DamageAt(offset, "a spread has not one count a code");
  RFINJECT_TRY(Charge(kBytesOfAPlace * static_cast<uint64_t>(message.code_size()), offset));
  for (int i = 0; i < message.code_size(); ++i) {
    if (i > 0 && message.code(i) <= message.code(i - 1)) return DamageAt(offset, "a spread's codes do not ascend");
    spread->AddCounted(message.code(i), message.count(i));
  }
  spread->AddSum(static_cast<Uint128>(message.sum_high()) << 64 | message.sum());
  return absl::OkStatus();
}

absl::Status Applier::ApplyRankSteps(const v1::RankSteps& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  const uint32_t rank = std::min(message.rank(), kMaxRanksKept);
  const auto [it, inserted] = run->step_times.try_emplace(rank);
  if (inserted) RFINJECT_TRY(Charge(sizeof(StepTimes), record.offset));
  RFINJECT_TRY(ReadSpread(message.wall_ns(), record.offset, &it->second.wall_ns));
  RFINJECT_TRY(ReadSpread(message.data_wait_ns(), record.offset, &it->second.data_wait_ns));
  RFINJECT_TRY(ReadSpread(message.gpu_wait_ns(), record.offset, &it->second.gpu_wait_ns));
  return ReadSpread(message.gpu_busy_ns(), record.offset, &it->second.gpu_busy_ns);
}

absl::Status Applier::ApplyPmWindow(const v1::PmWindow& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  StepSums& steps = run->run.steps;
  uint64_t bytes = message.dram_read_bytes();
  SaturatingAdd(bytes, message.dram_write_bytes());
  steps.pm_dram_bytes.Add(bytes);
  steps.pm_duration_ns.Add(message.duration_ns());
  if (message.has_tensor()) {
    steps.pm_tensor_active_ns.Add(std::min(message.tensor_active_ns(), message.duration_ns()));
  }
  auto window = Facts<PmWindowInfo>(message);
  window.run = 0;  // ids are the file's; the window lies in its Run now
  KeepPmWindow(std::move(window), &run->run);
  return absl::OkStatus();
}

absl::Status Applier::ApplyMemoryPeak(const v1::MemoryPeak& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  std::vector<RunState::MemoryPart> parts;
  for (const v1::MemoryPart& part : message.part()) {
    if (part.layer() != 0) {
      const auto layer = layer_index_.find(part.layer());
      if (layer == layer_index_.end()) return Undefined(record.offset, "layer", part.layer());
      if (OwnerOf(layers_[layer->second].model) != (message.run() == 0 ? 1 : message.run())) {
        return DamageAt(record.offset, "a memory peak has a part in a layer of another run");
      }
    }
    const Phase phase = v1::Phase_IsValid(part.phase()) ? static_cast<Phase>(part.phase()) : Phase::kOther;
    parts.push_back({part.layer(), phase, part.bytes()});
  }
  MemoryPeakInfo& known = run->run.memory_peak;
  if (!run->memory_parts.empty() && message.allocated_bytes() <= known.allocated_bytes) return absl::OkStatus();
  known.allocated_bytes = message.allocated_bytes();
  known.reserved_bytes = message.reserved_bytes();
  known.step = message.step();
  known.device = message.device();
  run->memory_parts = std::move(parts);
  return Charge(record.size + run->memory_parts.size() * (sizeof(MemoryPlace) + 96), record.offset);
}

// Of windows as of processes, the smallest few are kept. What a process writes comes in ascending order.
void Applier::KeepPmWindow(PmWindowInfo window, Run* run) {
  std::vector<PmWindowInfo>& kept = run->pm_windows;
  if (kept.size() >= kMaxPmWindowsKept && !(window < kept.back())) return;
  // More bins than any writer makes would be memory that nobody asked for.
  constexpr size_t kMaxBins = 64;
  if (window.bin_dram_bytes.size() > kMaxBins) window.bin_dram_bytes.resize(kMaxBins);
  if (window.bin_tensor_permille.size() > kMaxBins) window.bin_tensor_permille.resize(kMaxBins);
  kept.insert(std::upper_bound(kept.begin(), kept.end(), window), std::move(window));
  if (kept.size() > kMaxPmWindowsKept) kept.pop_back();
}

absl::Status Applier::ApplyDiagnostic(const v1::Diagnostic& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  DiagnosticInfo diagnostic;
  diagnostic.severity = v1::Severity_IsValid(message.severity()) ? message.severity() : v1::Severity_MAX;
  diagnostic.id = message.id();
  diagnostic.text = message.text();
  diagnostic.remedy = message.remedy();
  auto& diagnostics = run->run.diagnostics;
  const auto [it, inserted] = diagnostics.try_emplace(std::move(diagnostic), 0);
  SaturatingAdd(it->second, std::max<uint64_t>(message.count(), 1));
  if (inserted) RFINJECT_TRY(Charge(record.size, record.offset));
  if (inserted && diagnostics.size() > kMaxDiagnosticsKept) diagnostics.erase(std::prev(diagnostics.end()));
  return absl::OkStatus();
}

absl::Status Applier::ApplyDrop(const v1::Drop& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  if (message.count() == 0) return absl::OkStatus();
  auto& drops = run->run.drops;
  const auto [it, inserted] = drops.try_emplace(message.what(), 0);
  SaturatingAdd(it->second, message.count());
  if (inserted) RFINJECT_TRY(Charge(record.size, record.offset));
  if (inserted && drops.size() > kMaxDiagnosticsKept) drops.erase(std::prev(drops.end()));
  return absl::OkStatus();
}

absl::Status Applier::ApplyStepStats(const v1::StepStats& message, const Record& record) {
  for (const v1::RunSteps& one : message.run()) {
    StepSums sums;
    sums.steps = one.steps();
    sums.samples = one.samples();
    sums.iterations = one.iterations();
    sums.calls = one.calls();
    sums.armed = one.armed();
    sums.memory_peak_bytes = one.memory_peak_bytes();
    sums.drifting = one.drifting();
    sums.two_speeds = one.two_speeds();
    sums.slow = one.slow();
    sums.slow_extra_ns = one.slow_extra_ns();
    RFINJECT_TRY(ReadStat(one.duration_ns(), record.offset, &sums.duration_ns));
    RFINJECT_TRY(ReadStat(one.pm_dram_bytes(), record.offset, &sums.pm_dram_bytes));
    RFINJECT_TRY(ReadStat(one.pm_duration_ns(), record.offset, &sums.pm_duration_ns));
    RFINJECT_TRY(ReadStat(one.pm_tensor_active_ns(), record.offset, &sums.pm_tensor_active_ns));
    RunState* run = nullptr;
    RFINJECT_TRY(FindRun(record.offset, one.run(), &run));
    run->run.steps.Merge(sums);
    SaturatingAdd(run->eval.steps, one.eval_batches());
    SaturatingAdd(run->eval.samples, one.eval_samples());
  }
  for (const v1::RankSteps& one : message.rank()) RFINJECT_TRY(ApplyRankSteps(one, record));
  return absl::OkStatus();
}

namespace {

// An empty name would say "in no layer".
const std::string& NameOf(const ModelInfo& model) {
  static const std::string kUnnamed = "(unnamed)";
  return model.class_name.empty() ? kUnnamed : model.class_name;
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

}  // namespace

// Two instances of one class that both hold parameters (a GAN's two networks, a teacher and its student) are two
// models and must not be added up; loss modules are often made anew at every step and are one. In merged runs the
// names tell them apart already.
absl::flat_hash_map<uint32_t, std::string> Applier::ModelNames() const {
  absl::flat_hash_map<uint32_t, std::string> names;
  std::map<std::string, uint64_t> seen;
  for (const ModelState& model : models_) {
    std::string name = NameOf(model.info);
    if (model.info.parameters > 0 && !owners_.contains(model.id)) {
      const uint64_t count = ++seen[name];
      if (count > 1) absl::StrAppend(&name, " (", count, ")");
    }
    names.emplace(model.id, std::move(name));
  }
  return names;
}

void Applier::FinishModels(const absl::flat_hash_map<uint32_t, std::string>& names) {
  for (const ModelState& model : models_) {
    const auto run = runs_.find(OwnerOf(model.id));
    if (run == runs_.end()) continue;
    RunState& state = run->second;
    const std::string& name = names.at(model.id);
    const auto [it, inserted] = state.run.models.try_emplace(name, model.info);
    it->second.class_name = name;
    if (inserted && !state.merged && model.info.parameters > 0) {
      state.run.key.models.push_back(name);
      SaturatingAdd(state.run.key.parameters, model.info.parameters);
    }
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerState& layer = layers_[i];
    const auto run = runs_.find(OwnerOf(layer.model));
    if (run == runs_.end()) continue;
    LayerInfo info = layer.info;
    if (info.order == 0) info.order = i + 1;
    // Loss modules that were made anew at every step share a name; the first one stands for all.
    const auto [it, inserted] = run->second.run.layers.try_emplace({names.at(layer.model), layer.path}, info);
    if (!inserted && info.order < it->second.order) it->second = std::move(info);
  }
}

void Applier::FinishFacts() {
  std::map<uint32_t, std::set<uint32_t>> devices_used;
  for (const KeyState& key : keys_) {
    if (key.launches > 0) devices_used[key.identity.run].insert(key.identity.device);
  }
  for (auto& [id, state] : runs_) {
    Run& run = state.run;
    if (run.processes == 0) run.processes = 1;
    if (!state.step_kinds.empty() && state.step_kinds.front() != 0) {
      run.steps.iterations += run.steps.steps / StepsOfIteration(state.step_kinds);
    }
    if (state.merged) {
      run.step_times = std::move(state.step_times);
    } else {
      // A process is one rank, and learns late which.
      const uint32_t rank = state.process.world_size > 0 ? std::min(state.process.rank, kMaxRanksKept) : 0;
      for (const auto& [ignored, times] : state.step_times) run.step_times[rank].Merge(times);
      run.key.gpu = GpuName(run.key, state.devices, devices_used[id]);
      for (auto& [index, device] : state.devices) run.devices.push_back(std::move(device));
      if (run.ranks.empty() && state.process.world_size > 0) run.ranks.insert(state.process.rank);
      run.process_list.push_back(std::move(state.process));
      if (!state.collector_version.empty()) run.collector_versions.insert(state.collector_version);
      run.unfinished = finished_ ? 0 : 1;
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

absl::flat_hash_map<uint32_t, std::shared_ptr<const NativeStackInfo>> Applier::FinishStacks() const {
  absl::flat_hash_map<uint32_t, std::shared_ptr<const NativeStackInfo>> stacks;
  for (const auto& [id, state] : native_stacks_) {
    auto stack = std::make_shared<NativeStackInfo>();
    for (size_t i = 0; i < state.modules.size(); ++i) {
      const ModuleState& module = native_modules_.at(state.modules[i]);
      const uint32_t function = state.functions[i];
      stack->push_back(
          {module.path, module.build_id, function == 0 ? std::string() : names_.at(function), state.offsets[i]});
    }
    stacks.emplace(id, std::move(stack));
  }
  return stacks;
}

void Applier::FinishMemory(const absl::flat_hash_map<uint32_t, std::string>& model_names) {
  for (auto& [id, state] : runs_) {
    for (const RunState::MemoryPart& part : state.memory_parts) {
      MemoryPlace place{.phase = part.phase};
      if (part.layer != 0) {
        const LayerState& layer = layers_[layer_index_.at(part.layer)];
        place.layer = {model_names.at(layer.model), layer.path};
      }
      SaturatingAdd(state.run.memory_peak.parts[std::move(place)], part.bytes);
    }
  }
}

void Applier::FinishLaunches(const absl::flat_hash_map<uint32_t, std::string>& model_names) {
  const auto name = [&](uint32_t id) { return id == 0 ? std::string() : names_.at(id); };
  const auto stacks = FinishStacks();
  for (const KeyState& key : keys_) {
    const KeyIdentity& id = key.identity;
    RunState& state = runs_.at(id.run);
    if (!state.merged && key.launches > 0 && (id.phase == Phase::kBackward || id.phase == Phase::kOptimizer)) {
      state.run.key.training = true;
    }
    LaunchKey full;
    if (id.layer != 0) {
      const LayerState& layer = layers_[layer_index_.at(id.layer)];
      full.layer = {model_names.at(layer.model), layer.path};
    }
    full.phase = id.phase;
    full.op = name(id.op);
    full.kernel = name(id.kernel);
    full.signature = name(id.signature);
    full.node = name(id.node);
    full.grid = id.grid;
    full.block = id.block;
    full.dynamic_shared_bytes = id.dynamic_shared_bytes;
    full.device = id.device;
    // In a merged trace it is a run of its own already.
    const bool validation = !state.merged && id.phase == Phase::kEval;
    LaunchStats& stats = (validation ? state.validation : state.run.launches)[std::move(full)];
    SaturatingAdd(stats.launches, key.launches);
    if (id.stack != 0) stats.MergeStack(stacks.at(id.stack));
    if (id.line != 0) stats.MergeLine(lines_.at(id.line));
    for (const auto& [metric, stat] : key.metrics) stats.metrics[metrics_.at(metric).name].Merge(stat);
    if (const auto sums = key_sums_.find(key.id); sums != key_sums_.end()) {
      LaunchStats series;
      series.step_sums = std::move(sums->second);
      stats.Merge(series);
    }
  }
}

namespace {

// How many steps lie between two sampled ones, usually: the median of the distances, of the metric that is sampled
// most often. 0 where none is sampled twice.
uint64_t DistanceOf(const std::map<std::string, std::map<uint64_t, uint64_t>>& sampled_steps) {
  const std::map<uint64_t, uint64_t>* most = nullptr;
  for (const auto& [metric, steps] : sampled_steps) {
    if (most == nullptr || steps.size() > most->size()) most = &steps;
  }
  if (most == nullptr || most->size() < 2) return 0;
  std::vector<uint64_t> distances;
  for (auto at = std::next(most->begin()); at != most->end(); ++at) {
    distances.push_back(at->first - std::prev(at)->first);
  }
  std::nth_element(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2),
                   distances.end());
  return distances[distances.size() / 2];
}

// The durations of the steps in which nothing was sampled: those with kernel times hold what timing costs, and a run
// of which a fifth is timed would seem to have two speeds, or hide them. Where (nearly) every step is sampled, all
// cost alike, and all count.
std::vector<StepDuration> Undisturbed(std::span<const StepDuration> durations,
                                      const std::map<std::string, std::map<uint64_t, uint64_t>>& sampled_steps) {
  std::vector<StepDuration> undisturbed;
  for (const StepDuration& one : durations) {
    const bool sampled = std::any_of(sampled_steps.begin(), sampled_steps.end(),
                                     [&](const auto& metric) { return metric.second.contains(one.step); });
    if (!sampled) undisturbed.push_back(one);
  }
  if (2 * undisturbed.size() < durations.size()) undisturbed.assign(durations.begin(), durations.end());
  return undisturbed;
}

}  // namespace

void Applier::FinishSeries() {
  for (auto& [id, state] : runs_) {
    for (auto& [metric, series] : state.series) {
      const std::string& name = metrics_.at(metric).name;
      if (series.steps.size() > kMaxSampledStepsKept) {
        series.steps.erase(std::next(series.steps.begin(), kMaxSampledStepsKept), series.steps.end());
      }
      if (series.steps.empty()) continue;
      const uint64_t last = series.steps.rbegin()->first;
      for (auto& [key, known] : series.keys) {
        std::erase_if(known.sums, [last](const StepSum& sum) { return sum.step > last; });
        if (!known.sums.empty()) key_sums_[key].emplace(name, std::move(known.sums));
      }
      state.run.sampled_steps.emplace(name, std::move(series.steps));
    }
    uint64_t first = state.run.sampled_steps.empty() ? 0 : UINT64_MAX;
    for (const auto& [metric, steps] : state.run.sampled_steps) first = std::min(first, steps.begin()->first);
    const DurationFindings found = ExamineDurations(Undisturbed(state.durations, state.run.sampled_steps), first,
                                                    DistanceOf(state.run.sampled_steps));
    StepSums& steps = state.run.steps;
    SaturatingAdd(steps.drifting, found.drifting ? 1 : 0);
    SaturatingAdd(steps.two_speeds, found.two_speeds ? 1 : 0);
    SaturatingAdd(steps.slow, found.slow);
    SaturatingAdd(steps.slow_extra_ns, found.slow_extra_ns);
  }
}

// A model that trains and is validated is two kinds of run: a batch that is validated is no part of a step, and work
// of one is not the other's. The batches stand in the place of the steps.
Run Applier::ValidationOf(RunState& state) {
  Run run = state.run;
  run.key.training = false;
  run.launches = std::move(state.validation);
  run.steps = state.eval;
  run.steps.iterations = run.steps.steps;
  // What was sampled, was sampled of training steps.
  run.sampled_steps.clear();
  for (auto& [key, stats] : run.launches) stats.step_sums.clear();
  run.pm_windows.clear();
  run.memory_peak = {};
  run.step_times.clear();
  run.diagnostics.clear();
  run.drops.clear();
  return run;
}

Profile Applier::Finish() && {
  Profile profile;
  profile.trace_ids = std::move(trace_ids_);
  for (const auto& [id, metric] : metrics_) profile.metrics.emplace(metric.name, metric);
  const absl::flat_hash_map<uint32_t, std::string> names = ModelNames();
  FinishModels(names);
  FinishFacts();
  FinishSeries();
  FinishLaunches(names);
  FinishMemory(names);
  // Only metrics can disagree, and what is merged here has none.
  const auto add = [&profile](Run run) {
    Profile one;
    RunKey key = run.key;
    one.runs.emplace(std::move(key), std::move(run));
    (void)profile.Merge(std::move(one));
  };
  for (auto& [id, state] : runs_) {
    if (state.eval != StepSums{} || !state.validation.empty()) add(ValidationOf(state));
    add(std::move(state.run));
  }
  return profile;
}

}  // namespace rfinject::cli
