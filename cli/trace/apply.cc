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
#include "cli/trace/key_stats.h"
#include "cli/trace/step_spans.h"
#include "proto/wire/repeated_launches.h"
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

// A Stat of a MetricRecord or MetricStats; where it contradicts itself, damage at `offset`.
template <typename Metric>
absl::Status ReadStat(const Metric& metric, uint64_t offset, Stat* stat) {
  *stat = Stat{};
  const Uint128 sum = static_cast<Uint128>(metric.sum_high()) << 64 | metric.sum();
  if (metric.n() == 0) {
    return sum == 0 ? absl::OkStatus() : DamageAt(offset, "a sum over no samples is not 0");
  }
  const Uint128 squares = static_cast<Uint128>(metric.sum_squares_high()) << 64 | metric.sum_squares();
  if (sum == 0 && squares == 0 && metric.max() == 0) {  // all samples are the same (MetricStats)
    *stat = Stat::Same(metric.min(), metric.n());
    stat->shared_sums = metric.shared_sums();
    return absl::OkStatus();
  }
  if (metric.min() > metric.max()) return DamageAt(offset, "a metric's minimum is above its maximum");
  stat->n = metric.n();
  stat->sum = sum;
  stat->sum_squares = squares;
  stat->min = metric.min();
  stat->max = metric.max();
  stat->shared_sums = metric.shared_sums();
  return absl::OkStatus();
}

}  // namespace

size_t IdIndex::FindFar(uint32_t id) const {
  const auto found = far_.find(id);
  return found == far_.end() ? kNone : found->second;
}

// Counts what is about to be kept. The figures are rough on purpose, because they only serve as a bound.
absl::Status Applier::Charge(uint64_t bytes, uint64_t offset) {
  if (bytes > budget_) return DamageAt(offset, "holds more distinct launch keys than fit in memory");
  budget_ -= bytes;
  return absl::OkStatus();
}

// Run 1 needs no definition, because a process has it even when it knows nothing about itself yet.
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
  if (record.number == v1::Chunk::kStatsFieldNumber) return ApplyStats(record);
  const v1::Chunk& chunk = *record.chunk;
  switch (record.number) {
    case v1::Chunk::kRunFieldNumber:
      return ApplyRun(chunk.run(record.index), record);
    case v1::Chunk::kNameFieldNumber:
      return ApplyName(chunk.name(record.index), record);
    case v1::Chunk::kModelFieldNumber:
      return ApplyModel(chunk.model(record.index), record);
    case v1::Chunk::kLayerFieldNumber:
      return ApplyLayer(chunk.layer(record.index), record);
    case v1::Chunk::kMetricFieldNumber:
      return ApplyMetric(chunk.metric(record.index), record);
    case v1::Chunk::kNativeModuleFieldNumber:
      return ApplyNativeModule(chunk.native_module(record.index), record);
    case v1::Chunk::kNativeStackFieldNumber:
      return ApplyNativeStack(chunk.native_stack(record.index), record);
    case v1::Chunk::kSourceLineFieldNumber:
      return ApplySourceLine(chunk.source_line(record.index), record);
    case v1::Chunk::kKeyFieldNumber:
      return ApplyKey(chunk.key(record.index), record);
    case v1::Chunk::kRepeatedLaunchesFieldNumber:
      return ApplyRepeatedLaunches(chunk.repeated_launches(record.index), record);
    case v1::Chunk::kSampledStepFieldNumber:
      return ApplySampledStep(chunk.sampled_step(record.index), record);
    case v1::Chunk::kStepFieldNumber:
      return ApplyStep(chunk.step(record.index), record);
    case v1::Chunk::kMemoryPeakFieldNumber:
      return ApplyMemoryPeak(chunk.memory_peak(record.index), record);
    case v1::Chunk::kPmWindowFieldNumber:
      return ApplyPmWindow(chunk.pm_window(record.index), record);
    case v1::Chunk::kDiagnosticFieldNumber:
      return ApplyDiagnostic(chunk.diagnostic(record.index), record);
    case v1::Chunk::kDropFieldNumber:
      return ApplyDrop(chunk.drop(record.index), record);
    case v1::Chunk::kStepStatsFieldNumber:
      return ApplyStepStats(chunk.step_stats(), record);
    case v1::Chunk::kTraceIdFieldNumber:
      RFINJECT_TRY(Charge(96 + record.size, record.offset));
      trace_ids_.insert(chunk.trace_id(record.index));
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
  // A record takes about its own size in memory, and a struct for each message and element in it.
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
    const size_t model = model_index_.Find(id);
    if (inserted && model != IdIndex::kNone && models_[model].has_layers) {
      return DamageAt(record.offset, absl::StrCat("model ", id, " changes its run after its first layer"));
    }
  }
  for (const v1::Process& one : message.process()) run.process_list.push_back(Facts<ProcessInfo>(one));
  for (const v1::Device& one : message.device()) run.devices.push_back(Facts<DeviceInfo>(one));
  for (const v1::PmWindow& one : message.pm_window()) {
    RFINJECT_TRY(Charge(sizeof(PmWindowInfo), record.offset));
    KeepPmWindow(Facts<PmWindowInfo>(one), &run);
  }
  for (const v1::StepSpan& one : message.step_span()) {
    if (run.step_spans.size() >= kMostStepSpans) break;
    RFINJECT_TRY(Charge(sizeof(StepSpan), record.offset));
    run.step_spans.push_back(SpanOf(one));
  }
  run.collector_versions.insert(message.collector_version().begin(), message.collector_version().end());
  Set(run.unfinished, message.unfinished());
  Set(run.key.parameters, message.parameters());
  run.key.training = run.key.training || message.training();
  return absl::OkStatus();
}

absl::Status Applier::ApplyName(const v1::Name& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "name");
  const auto [place, inserted] = name_index_.TryEmplace(message.id(), names_.size());
  if (inserted) {
    names_.push_back(message.text());
    return Charge(96 + message.text().size(), record.offset);
  }
  return names_[place] == message.text() ? absl::OkStatus() : Redefined(record.offset, "name", message.id());
}

absl::Status Applier::ApplyModel(const v1::Model& message, const Record& record) {
  if (message.id() == 0) return NoId(record.offset, "model");
  const auto [place, inserted] = model_index_.TryEmplace(message.id(), models_.size());
  if (inserted) {
    models_.push_back({.id = message.id(), .info = {.class_name = message.class_name()}, .name = {}});
    RFINJECT_TRY(Charge(sizeof(ModelState) + 64 + record.size, record.offset));
  }
  ModelInfo& known = models_[place].info;
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
  const auto [place, inserted] = layer_index_.TryEmplace(message.id(), layers_.size());
  if (inserted) {
    const size_t model = model_index_.Find(message.model());
    if (model == IdIndex::kNone) return Undefined(record.offset, "model", message.model());
    RunState* run = nullptr;
    RFINJECT_TRY(FindRun(record.offset, OwnerOf(message.model()), &run));
    models_[model].has_layers = true;
    LayerState layer;
    layer.model = message.model();
    layer.model_place = model;
    layer.parent = message.parent();
    layer.path = message.path();
    if (layer.parent != 0) {
      const size_t parent = layer_index_.Find(layer.parent);
      if (parent == IdIndex::kNone || parent == layers_.size()) {
        return Undefined(record.offset, "layer", layer.parent);
      }
      if (layers_[parent].model != layer.model) {
        return DamageAt(record.offset, absl::StrCat("layer ", message.id(), " has a parent in another model"));
      }
      layer.info.parent = layers_[parent].path;
    }
    // Its text is kept here and in the profile, and its path once more by its children.
    RFINJECT_TRY(Charge(sizeof(LayerState) + sizeof(LayerInfo) + sizeof(LayerKey) + 160 + 2 * record.size +
                            2 * layer.info.parent.size(),
                        record.offset));
    layers_.push_back(std::move(layer));
  } else {
    RFINJECT_TRY(Charge(record.size, record.offset));
  }
  LayerState& state = layers_[place];
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
  const auto [place, inserted] = metric_index_.TryEmplace(message.id(), metrics_.size());
  if (!inserted) {
    return metrics_[place] == metric ? absl::OkStatus() : Redefined(record.offset, "metric", message.id());
  }
  const auto [named, first] = metric_ids_.try_emplace(metric.name, message.id());
  if (!first) {
    return DamageAt(record.offset,
                    absl::StrCat("metrics ", named->second, " and ", message.id(), " have the same name"));
  }
  // A new metric of a key is inserted into a sorted list.
  constexpr size_t kMaxMetrics = 8192;
  metrics_.push_back(std::move(metric));
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
    const size_t name = name_index_.Find(id);
    if (name == IdIndex::kNone) return Undefined(record.offset, "name", id);
    text += names_[name].size();
  }
  // Finish makes something larger of the stack than what is kept now.
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
    const size_t name = name_index_.Find(id);
    if (name == IdIndex::kNone) return Undefined(record.offset, "name", id);
    *text = names_[name];
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
    const size_t place = name_index_.Find(name);
    if (place == IdIndex::kNone) return Undefined(record.offset, "name", name);
    text += names_[place].size();
  }
  if (key.layer != 0) {
    const size_t layer = layer_index_.Find(key.layer);
    if (layer == IdIndex::kNone) return Undefined(record.offset, "layer", key.layer);
    const LayerState& state = layers_[layer];
    if (OwnerOf(state.model) != key.run) {
      return DamageAt(record.offset, absl::StrCat("launch key ", message.id(), " is in a layer of another run"));
    }
    text += state.path.size();
  }
  const auto [place, inserted] = key_index_.TryEmplace(message.id(), keys_.size());
  if (!inserted) {
    return keys_[place].identity == key ? absl::OkStatus() : Redefined(record.offset, "launch key", message.id());
  }
  keys_.push_back({.id = message.id(), .identity = key, .metrics = {}});
  return Charge(sizeof(KeyState) + sizeof(LaunchKey) + 160 + text, record.offset);
}

absl::Status Applier::ApplyStats(const Record& record) {
  // The id of the key may stand behind the first metrics.
  MetricRecord one;
  KeyStatsReader first(record.bytes);
  bool any = first.Next(&one);
  KeyStatsReader rest = first;
  for (MetricRecord skipped; rest.key() == 0 && any && rest.Next(&skipped);) {
  }
  const size_t found = key_index_.Find(rest.key());
  if (found == IdIndex::kNone && rest.ok()) return Undefined(record.offset, "launch key", rest.key());
  size_t next = 0;  // writers write a key's metrics in the same order each time
  for (; any; any = first.Next(&one)) {
    if (found == IdIndex::kNone) continue;  // what is damaged is said first
    KeyState& key = keys_[found];
    Stat stat;
    RFINJECT_TRY(ReadStat(one, record.offset, &stat));
    const size_t metric = metric_index_.Find(one.metric());
    if (metric == IdIndex::kNone) return Undefined(record.offset, "metric", one.metric());
    if (stat.n == 0) continue;
    if (next == key.metrics.size() || key.metrics[next].first != metric) {
      const auto place = std::lower_bound(key.metrics.begin(), key.metrics.end(), metric,
                                          [](const auto& m, size_t id) { return m.first < id; });
      next = static_cast<size_t>(place - key.metrics.begin());
      if (place == key.metrics.end() || place->first != metric) {
        RFINJECT_TRY(Charge(2 * sizeof(Stat) + 160, record.offset));
        if (key.metrics.empty()) key.metrics.reserve(std::min<size_t>(metrics_.size(), 8));
        key.metrics.emplace(key.metrics.begin() + static_cast<std::ptrdiff_t>(next), static_cast<uint32_t>(metric),
                            stat);
        ++next;
        continue;
      }
    }
    key.metrics[next++].second.Merge(stat);
  }
  if (!first.ok()) return DamageAt(first.error_offset(), first.error());
  SaturatingAdd(keys_[found].launches, first.launches());
  return absl::OkStatus();
}

absl::Status Applier::ApplyRepeatedLaunches(const v1::RepeatedLaunches& message, const Record& record) {
  if (message.keys_size() != message.gap_size() || message.launches_size() != message.gap_size()) {
    return DamageAt(record.offset, "repeated launches have ranges without a number");
  }
  uint64_t id = 1;
  for (int range = 0; range < message.gap_size(); ++range) {
    id += message.gap(range);
    const uint64_t launches = message.launches(range);
    if (message.keys(range) > wire::kMostKeysInARange) {
      return DamageAt(record.offset, "a range of repeated launches is longer than any should be");
    }
    for (const uint64_t end = id + message.keys(range); id < end; ++id) {
      const size_t found = id > UINT32_MAX ? IdIndex::kNone : key_index_.Find(static_cast<uint32_t>(id));
      if (found == IdIndex::kNone) return Undefined(record.offset, "launch key", id);
      KeyState& key = keys_[found];
      for (auto& [metric, stat] : key.metrics) {
        if (stat.min != stat.max) return DamageAt(record.offset, "samples are said to repeat others, which differ");
        if (launches != 0) stat.Merge(Stat::Same(stat.min, launches));
      }
      SaturatingAdd(key.launches, launches);
    }
  }
  return absl::OkStatus();
}

absl::Status Applier::ApplySampledStep(const v1::SampledStep& message, const Record& record) {
  RunState* run = nullptr;
  RFINJECT_TRY(FindRun(record.offset, message.run(), &run));
  if (!metric_index_.Has(message.metric())) return Undefined(record.offset, "metric", message.metric());
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
      const size_t place = id > UINT32_MAX ? IdIndex::kNone : key_index_.Find(static_cast<uint32_t>(id));
      if (place == IdIndex::kNone) return Undefined(record.offset, "launch key", id);
      if (keys_[place].identity.run != (message.run() == 0 ? 1 : message.run())) {
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
  if (run->step_kinds.size() < kMostStepsLookedAt) run->step_kinds.push_back({message.kind(), message.optimizer()});
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
  const StepSpan span = SpanOf(message);
  const size_t before = times->places();
  times->Add({.wall_ns = span.duration_ns,
              .data_wait_ns = span.data_wait_ns,
              .gpu_wait_ns = span.gpu_wait_ns,
              .gpu_busy_ns = span.busy_ns,
              .launch_gap_ns = {}});
  return Charge(kBytesOfAPlace * (times->places() - before), record.offset);
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
  RFINJECT_TRY(ReadSpread(message.gpu_busy_ns(), record.offset, &it->second.gpu_busy_ns));
  RFINJECT_TRY(ReadSpread(message.own_ns(), record.offset, &it->second.own_ns));
  return ReadSpread(message.launch_gap_ns(), record.offset, &it->second.launch_gap_ns);
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
  const auto take = [&](uint32_t id, int phase, uint64_t bytes) -> absl::Status {
    if (id != 0) {
      const size_t layer = layer_index_.Find(id);
      if (layer == IdIndex::kNone) return Undefined(record.offset, "layer", id);
      if (OwnerOf(layers_[layer].model) != (message.run() == 0 ? 1 : message.run())) {
        return DamageAt(record.offset, "a memory peak has a part in a layer of another run");
      }
    }
    parts.push_back({id, v1::Phase_IsValid(phase) ? static_cast<Phase>(phase) : Phase::kOther, bytes});
    return absl::OkStatus();
  };
  for (const v1::MemoryPart& part : message.part()) RFINJECT_TRY(take(part.layer(), part.phase(), part.bytes()));
  RFINJECT_TRY(take(message.refused_layer(), message.refused_phase(), message.refused_bytes()));
  const RunState::MemoryPart refused = parts.back();
  parts.pop_back();
  MemoryPeakInfo& known = run->run.memory_peak;
  if (!run->memory_parts.empty() && std::pair(message.refused_bytes(), message.allocated_bytes()) <=
                                        std::pair(known.refused_bytes, known.allocated_bytes)) {
    return absl::OkStatus();
  }
  known.refused_bytes = message.refused_bytes();
  run->memory_refused = refused;
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
const std::string& ClassNameOf(const ModelInfo& model) {
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
void Applier::NameModels() {
  std::map<std::string, uint64_t> seen;
  for (ModelState& model : models_) {
    model.name = ClassNameOf(model.info);
    if (model.info.parameters > 0 && !owners_.contains(model.id)) {
      const uint64_t count = ++seen[model.name];
      if (count > 1) absl::StrAppend(&model.name, " (", count, ")");
    }
  }
}

void Applier::FinishModels() {
  for (const ModelState& model : models_) {
    const auto run = runs_.find(OwnerOf(model.id));
    if (run == runs_.end()) continue;
    RunState& state = run->second;
    const auto [it, inserted] = state.run.models.try_emplace(model.name, model.info);
    it->second.class_name = model.name;
    if (inserted && !state.merged && model.info.parameters > 0) {
      state.run.key.models.push_back(model.name);
      SaturatingAdd(state.run.key.parameters, model.info.parameters);
    }
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].info.order == 0) layers_[i].info.order = i + 1;
  }
  for (const KeyState& key : keys_) {
    const KeyIdentity& id = key.identity;
    RunState& state = runs_.at(id.run);
    state.validates = state.validates || IsValidation(id);
    if (!state.merged && key.launches > 0 && (id.phase == Phase::kBackward || id.phase == Phase::kOptimizer)) {
      state.run.key.training = true;
    }
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
    if (!state.step_kinds.empty() && state.step_kinds.front().calls != 0) {
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
      stack->push_back({module.path, module.build_id, NameOf(function), state.offsets[i]});
    }
    stacks.emplace(id, std::move(stack));
  }
  return stacks;
}

void Applier::FinishMemory() {
  for (auto& [id, state] : runs_) {
    const auto place_of = [&](const RunState::MemoryPart& part) {
      MemoryPlace place{.phase = part.phase};
      if (part.layer != 0) {
        const LayerState& layer = layers_[layer_index_.Find(part.layer)];
        place.layer = {models_[layer.model_place].name, layer.path};
      }
      return place;
    };
    for (const RunState::MemoryPart& part : state.memory_parts) {
      SaturatingAdd(state.run.memory_peak.parts[place_of(part)], part.bytes);
    }
    state.run.memory_peak.refused_in = place_of(state.memory_refused);
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
      const std::string& name = metrics_[metric_index_.Find(metric)].name;
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
Run Applier::ValidationOf(const RunState& state) {
  Run run = state.run;
  run.key.training = false;
  run.steps = state.eval;
  run.steps.iterations = run.steps.steps;
  // Only training steps were sampled.
  run.sampled_steps.clear();
  run.pm_windows.clear();
  run.step_spans.clear();
  run.memory_peak = {};
  run.step_times.clear();
  run.diagnostics.clear();
  run.drops.clear();
  return run;
}

void Applier::Resolve() {
  NameModels();
  FinishModels();
  FinishFacts();
  FinishSeries();
  FinishMemory();
}

std::vector<std::pair<RunKey, std::vector<std::string_view>>> Applier::Operators() const {
  std::map<std::pair<uint32_t, bool>, std::vector<uint32_t>> names;  // by run, and whether it is its validation
  for (const auto& [id, state] : runs_) {
    if (state.run.unfinished == 0) names[{id, false}];
  }
  for (const KeyState& key : keys_) {
    if (runs_.at(key.identity.run).run.unfinished > 0) continue;
    names[{key.identity.run, IsValidation(key.identity)}].push_back(key.identity.op);
  }
  std::vector<std::pair<RunKey, std::vector<std::string_view>>> ran;
  for (auto& [run, ids] : names) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    auto& [key, texts] = ran.emplace_back(runs_.at(run.first).run.key, std::vector<std::string_view>());
    key.training = key.training && !run.second;
    for (const uint32_t id : ids) texts.push_back(NameOf(id));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  }
  return ran;
}

// Returns the layers' numbers, in the order of layers_.
std::vector<Accumulator::Layer> Applier::AddLayers(const std::map<uint32_t, Sums>& sums, Accumulator* sum) const {
  std::vector<Accumulator::Text> models;
  for (const ModelState& model : models_) models.push_back(sum->NumberOf(model.name));
  std::vector<Accumulator::Layer> keys;
  keys.reserve(layers_.size());
  // Loss modules that were made anew at every step share a name; the first one stands for all.
  absl::flat_hash_map<std::pair<uint32_t, Accumulator::Layer>, size_t> first;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerState& layer = layers_[i];
    keys.push_back({models[layer.model_place], sum->NumberOf(layer.path)});
    const auto [known, is_new] = first.try_emplace({OwnerOf(layer.model), keys.back()}, i);
    if (!is_new && layer.info.order < layers_[known->second].info.order) known->second = i;
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    const uint32_t owner = OwnerOf(layers_[i].model);
    const auto run = sums.find(owner);
    if (run == sums.end() || first.at({owner, keys[i]}) != i) continue;
    run->second.run->AddLayer(keys[i], layers_[i].info);
    if (run->second.validation != nullptr) run->second.validation->AddLayer(keys[i], layers_[i].info);
  }
  return keys;
}

void Applier::AddLaunches(const std::map<uint32_t, Sums>& sums, std::span<const Accumulator::Layer> layers,
                          Accumulator* sum) {
  std::vector<Accumulator::Text> names, metrics;
  for (const std::string& name : names_) names.push_back(sum->NumberOf(name));
  for (const MetricInfo& metric : metrics_) metrics.push_back(sum->NumberOf(metric.name));
  const auto number = [&](uint32_t id) { return id == 0 ? 0 : names[name_index_.Find(id)]; };
  const auto stacks = FinishStacks();
  for (const KeyState& key : keys_) {
    const KeyIdentity& id = key.identity;
    Accumulator::Launch launch;
    if (id.layer != 0) launch.layer = layers[layer_index_.Find(id.layer)];
    launch.phase = static_cast<uint32_t>(id.phase);
    launch.op = number(id.op);
    launch.kernel = number(id.kernel);
    launch.signature = number(id.signature);
    launch.node = number(id.node);
    launch.grid = id.grid;
    launch.block = id.block;
    launch.dynamic_shared_bytes = id.dynamic_shared_bytes;
    launch.device = id.device;
    const Sums& of_run = sums.at(id.run);
    const bool validation = IsValidation(id);
    Accumulator::RunSum& run = validation ? *of_run.validation : *of_run.run;
    Accumulator::LaunchSum& into = run.Of(launch);
    SaturatingAdd(into.stats().launches, key.launches);
    if (id.stack != 0) into.stats().MergeStack(stacks.at(id.stack));
    if (id.line != 0) into.stats().MergeLine(lines_.at(id.line));
    for (const auto& [metric, stat] : key.metrics) into.AddMetric(metrics[metric], stat);
    const auto series = validation ? key_sums_.end() : key_sums_.find(key.id);
    if (series != key_sums_.end()) {
      LaunchStats sampled;
      sampled.step_sums = std::move(series->second);
      run.AddStepSums(&into, std::move(sampled));
    }
  }
}

void Applier::AddTo(Accumulator* sum) && {
  sum->AddTraceIds(std::move(trace_ids_));
  for (const MetricInfo& metric : metrics_) sum->AddMetric(metric);
  std::map<uint32_t, Sums> sums;
  for (auto& [id, state] : runs_) {
    Sums& of_run = sums[id];
    if (state.eval != StepSums{} || state.validates) of_run.validation = &sum->Add(ValidationOf(state));
    of_run.run = &sum->Add(std::move(state.run));
  }
  const std::vector<Accumulator::Layer> layers = AddLayers(sums, sum);
  AddLaunches(sums, layers, sum);
}

Profile Applier::Finish() && {
  Accumulator sum;
  std::move(*this).AddTo(&sum);
  return std::move(sum).Take();
}

}  // namespace rfinject::cli
