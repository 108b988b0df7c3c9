#include "cli/reader/trace_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/reader/wire_cursor.h"
#include "proto/wire/encoder.h"

namespace rfinject::cli {
namespace {

// Field numbers of Chunk, in trace.proto's order, which is also the order in which a chunk is applied: definitions
// come before their uses.
enum ChunkField : uint32_t {
  kRun = 1,
  kName = 2,
  kModel = 3,
  kLayer = 4,
  kMetric = 5,
  kKey = 6,
  kStats = 7,
  kStep = 8,
  kDiagnostic = 9,
  kDrop = 10,
  kStepStats = 11,
  kEnd = 12,
  kPmWindow = 13,
  kLastField = kPmWindow,
};

uint32_t Narrow(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)); }

// Everything behind the reader may rely on UTF-8: what is none (a file written by a broken writer) becomes U+FFFD
// here.
std::string Text(const WireField& field) {
  std::string_view text = field.text();
  size_t good = 0;
  while (good < text.size()) {
    const size_t length = wire::Utf8SequenceLength(text.substr(good));
    if (length == 0) break;
    good += length;
  }
  std::string clean(text.substr(0, good));
  for (text.remove_prefix(good); !text.empty();) {
    const size_t length = wire::Utf8SequenceLength(text);
    clean += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

// Facts: what is said later wins over what was said earlier, what is not said leaves things as they are.
void Set(std::string& into, const std::string& text) {
  if (!text.empty()) into = text;
}
template <typename Integer>
void Set(Integer& into, uint64_t value) {
  if (value != 0)
    into = static_cast<Integer>(std::min<uint64_t>(value, static_cast<uint64_t>(static_cast<Integer>(-1))));
}
void Set(int64_t& into, uint64_t value) {
  if (value != 0) into = static_cast<int64_t>(value);
}

void SaturatingAdd(uint64_t& into, uint64_t value) { into = into + value < into ? UINT64_MAX : into + value; }

struct ModelState {
  uint32_t id = 0;
  bool has_layers = false;
  ModelInfo info;
};

struct LayerState {
  uint32_t model = 0;
  uint32_t parent = 0;
  uint64_t position = 0;  // among the file's layers, from 1
  std::string path;
  LayerInfo info;
};

struct KeyState {
  uint32_t kernel = 0, op = 0, signature = 0, node = 0;  // names
  uint32_t layer = 0, run = 0;
  Phase phase = Phase::kOther;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t dynamic_shared_bytes = 0, device = 0;

  uint64_t launches = 0;
  std::vector<std::pair<uint32_t, Stat>> metrics;  // ascending by the metric's id

  bool SameIdentity(const KeyState& other) const {
    return kernel == other.kernel && op == other.op && signature == other.signature && node == other.node &&
           layer == other.layer && run == other.run && phase == other.phase && grid == other.grid &&
           block == other.block && dynamic_shared_bytes == other.dynamic_shared_bytes && device == other.device;
  }
};

struct RunState {
  Run run;
  ProcessInfo process;
  std::map<uint32_t, DeviceInfo> devices;  // by index
  bool merged = false;
  std::vector<ProcessInfo> merged_processes;
  std::vector<DeviceInfo> merged_devices;
  uint64_t unfinished = 0;
};

class Decoder {
 public:
  explicit Decoder(uint64_t max_decoded_bytes) : budget_(max_decoded_bytes) {}

  // False at damage, which damage() then has; the state is then good for nothing.
  bool Apply(std::span<const uint8_t> payload, uint64_t offset);
  const Damage& damage() const { return damage_; }
  bool finished() const { return finished_; }
  Profile Finish() &&;

 private:
  bool Fail(uint64_t offset, std::string reason) {
    damage_ = {offset, std::move(reason)};
    return false;
  }
  bool Check(const WireCursor& cursor) { return cursor.ok() || Fail(cursor.error_offset(), cursor.error()); }
  // Counts what is about to be kept. The figures are rough on purpose: their job is a bound.
  bool Charge(uint64_t bytes, uint64_t offset) {
    if (bytes > budget_) return Fail(offset, "holds more distinct launch keys than fit in memory");
    budget_ -= bytes;
    return true;
  }
  bool Undefined(uint64_t offset, const char* what, uint64_t id) {
    return Fail(offset, std::string(what) + " " + std::to_string(id) + " is used and was never defined");
  }
  bool Redefined(uint64_t offset, const char* what, uint64_t id) {
    return Fail(offset, std::string(what) + " " + std::to_string(id) + " is defined twice, differently");
  }
  bool NoId(uint64_t offset, const char* what) {
    return Fail(offset, std::string("a ") + what + " is defined without an id");
  }
  // An id field, which must fit in 32 bits.
  bool Id(const WireField& field, uint32_t* id) {
    if (field.value > UINT32_MAX) return Fail(field.offset, "an id is out of range");
    *id = static_cast<uint32_t>(field.value);
    return true;
  }
  bool FindRun(uint64_t offset, uint32_t id, RunState** run);

  bool ApplyRecord(const WireField& field);
  bool ApplyRun(const WireField& record);
  bool ApplyName(const WireField& record);
  bool ApplyModel(const WireField& record);
  bool ApplyLayer(const WireField& record);
  bool ApplyMetric(const WireField& record);
  bool ApplyKey(const WireField& record);
  bool ApplyStats(const WireField& record);
  bool ApplyStep(const WireField& record);
  bool ApplyDiagnostic(const WireField& record);
  bool ApplyDrop(const WireField& record);
  bool ApplyStepStats(const WireField& record);
  bool ApplyPmWindow(const WireField& record);
  bool ApplyRunSteps(const WireField& record);

  bool DecodeProcess(const WireField& record, ProcessInfo* process);
  bool DecodeDevice(const WireField& record, DeviceInfo* device);
  bool DecodePolicy(const WireField& record, PolicyInfo* policy);
  bool DecodeMerged(const WireField& record, uint32_t run_id, RunState* run);
  // The run that a model belongs to.
  uint32_t OwnerOf(uint32_t model) const {
    const auto it = owners_.find(model);
    return it == owners_.end() ? 1 : it->second;
  }
  bool DecodeMetricStats(const WireField& record, uint32_t* metric, Stat* stat);
  // A repeated number, packed or not.
  template <typename Use>
  bool Numbers(const WireField& field, Use use);

  uint64_t budget_;
  Damage damage_;
  bool finished_ = false;
  std::unordered_map<uint32_t, std::string> names_;
  std::vector<ModelState> models_;  // as the file defines them
  std::unordered_map<uint32_t, size_t> model_index_;
  std::unordered_map<uint32_t, uint32_t> owners_;  // model: merged run
  std::unordered_map<uint32_t, LayerState> layers_;
  std::unordered_map<uint32_t, MetricInfo> metrics_;
  std::unordered_map<std::string, uint32_t> metric_ids_;  // by name
  std::unordered_map<uint32_t, KeyState> keys_;
  std::map<uint32_t, RunState> runs_;
};

bool Decoder::Apply(std::span<const uint8_t> payload, uint64_t offset) {
  // One walk for the structure, then one for each kind of record that is there.
  uint32_t present = 0;
  {
    WireCursor cursor(payload, offset);
    for (WireField field; cursor.Next(&field);) {
      if (field.number > kLastField) continue;  // from a newer minor version
      if (field.type != WireType::kBytes) return Fail(field.offset, "a record is not of the type that it should be");
      if (field.bytes.size() > kMaxRecordSize) return Fail(field.offset, "a record is longer than any should be");
      present |= 1u << field.number;
    }
    if (!Check(cursor)) return false;
  }
  for (uint32_t number = kRun; number <= kLastField; ++number) {
    if ((present & (1u << number)) == 0) continue;
    WireCursor cursor(payload, offset);
    for (WireField field; cursor.Next(&field);) {
      if (field.number == number && !ApplyRecord(field)) return false;
    }
  }
  return true;
}

bool Decoder::ApplyRecord(const WireField& field) {
  switch (field.number) {
    case kRun:
      return ApplyRun(field);
    case kName:
      return ApplyName(field);
    case kModel:
      return ApplyModel(field);
    case kLayer:
      return ApplyLayer(field);
    case kMetric:
      return ApplyMetric(field);
    case kKey:
      return ApplyKey(field);
    case kStats:
      return ApplyStats(field);
    case kStep:
      return ApplyStep(field);
    case kDiagnostic:
      return ApplyDiagnostic(field);
    case kDrop:
      return ApplyDrop(field);
    case kStepStats:
      return ApplyStepStats(field);
    case kPmWindow:
      return ApplyPmWindow(field);
    case kEnd: {
      finished_ = true;
      WireCursor cursor(field);
      for (WireField inner; cursor.Next(&inner);) {
      }
      return Check(cursor);
    }
    default:
      return true;
  }
}

template <typename Use>
bool Decoder::Numbers(const WireField& field, Use use) {
  if (field.type != WireType::kBytes) return use(field.value);
  WireCursor cursor(field);
  for (uint64_t value; cursor.NextPacked(&value);) {
    if (!use(value)) return false;
  }
  return Check(cursor);
}

// Run 1 needs no definition: a process that knows nothing about itself yet has one all the same.
bool Decoder::FindRun(uint64_t offset, uint32_t id, RunState** run) {
  if (id == 0) id = 1;
  const auto it = id == 1 ? runs_.try_emplace(1).first : runs_.find(id);
  if (it == runs_.end()) return Undefined(offset, "run", id);
  *run = &it->second;
  return true;
}

bool Decoder::DecodeProcess(const WireField& record, ProcessInfo* process) {
  WireCursor cursor(record);
  bool first_argument = true;
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        Set(process->rfinject_version, Text(field));
        break;
      case 2:
        Set(process->host, Text(field));
        break;
      case 3:
        Set(process->pid, field.value);
        break;
      case 4:
        if (std::exchange(first_argument, false)) process->argv.clear();
        if (!Charge(sizeof(std::string), field.offset)) return false;
        process->argv.emplace_back(Text(field));
        break;
      case 5:
        Set(process->start_unix_ns, field.value);
        break;
      case 6:
        Set(process->python_version, Text(field));
        break;
      case 7:
        Set(process->python_executable, Text(field));
        break;
      case 8:
        Set(process->torch_version, Text(field));
        break;
      case 9:
        Set(process->torchvision_version, Text(field));
        break;
      case 10:
        Set(process->cuda_version, Text(field));
        break;
      case 11:
        Set(process->cudnn_version, Text(field));
        break;
      case 12:
        Set(process->driver_version, Text(field));
        break;
      case 13:
        Set(process->cupti_version, Text(field));
        break;
      case 14:
        Set(process->cupti_path, Text(field));
        break;
      case 15:
        Set(process->rank, field.value);
        break;
      case 16:
        Set(process->local_rank, field.value);
        break;
      case 17:
        Set(process->world_size, field.value);
        break;
      case 18:
        Set(process->job_id, Text(field));
        break;
      case 19:
        Set(process->os, Text(field));
        break;
      case 20:
        Set(process->cpu, Text(field));
        break;
      case 21:
        Set(process->cpus, field.value);
        break;
      case 22:
        Set(process->memory_bytes, field.value);
        break;
      case 23:
        Set(process->tier_reason, Text(field));
        break;
      default:
        break;
    }
  }
  return Check(cursor) && Charge(record.bytes.size(), record.offset);
}

bool Decoder::DecodeDevice(const WireField& record, DeviceInfo* device) {
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        Set(device->index, field.value);
        break;
      case 2:
        Set(device->name, Text(field));
        break;
      case 3:
        Set(device->chip, Text(field));
        break;
      case 4:
        Set(device->cc_major, field.value);
        break;
      case 5:
        Set(device->cc_minor, field.value);
        break;
      case 6:
        Set(device->sm_count, field.value);
        break;
      case 7:
        Set(device->sm_clock_khz, field.value);
        break;
      case 8:
        Set(device->memory_clock_khz, field.value);
        break;
      case 9:
        Set(device->memory_bus_bits, field.value);
        break;
      case 10:
        Set(device->memory_bytes, field.value);
        break;
      case 11:
        Set(device->l2_bytes, field.value);
        break;
      case 12:
        Set(device->uuid, Text(field));
        break;
      case 13:
        device->mig = device->mig || field.value != 0;
        break;
      default:
        break;
    }
  }
  return Check(cursor) && Charge(sizeof(DeviceInfo) + record.bytes.size(), record.offset);
}

bool Decoder::DecodePolicy(const WireField& record, PolicyInfo* policy) {
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        Set(policy->matmul_tf32, field.value);
        break;
      case 2:
        Set(policy->cudnn_tf32, field.value);
        break;
      case 3:
        Set(policy->cudnn_benchmark, field.value);
        break;
      case 4:
        Set(policy->cudnn_deterministic, field.value);
        break;
      case 5:
        Set(policy->autocast_dtype, Text(field));
        break;
      default:
        break;
    }
  }
  return Check(cursor);
}

bool Decoder::DecodeMerged(const WireField& record, uint32_t run_id, RunState* run) {
  run->merged = true;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        Set(run->run.key.gpu, Text(field));
        break;
      case 2:
        if (!Charge(sizeof(std::string) + field.bytes.size(), field.offset)) return false;
        run->run.key.models.emplace_back(Text(field));
        break;
      case 3:
        if (!Numbers(field, [&](uint64_t id) {
              const auto [it, inserted] = owners_.try_emplace(Narrow(id), run_id);
              if (!inserted && it->second != run_id) return Redefined(field.offset, "the run of model", id);
              const auto model = model_index_.find(it->first);
              if (inserted && model != model_index_.end() && models_[model->second].has_layers) {
                return Fail(field.offset, "model " + std::to_string(id) + " changes its run after its first layer");
              }
              return Charge(inserted ? 48 : 0, field.offset);
            })) {
          return false;
        }
        break;
      case 4:
        if (!Charge(sizeof(ProcessInfo), field.offset)) return false;
        if (!DecodeProcess(field, &run->merged_processes.emplace_back())) return false;
        break;
      case 5:
        if (!DecodeDevice(field, &run->merged_devices.emplace_back())) return false;
        break;
      case 6:
        Set(run->unfinished, field.value);
        break;
      case 7:
        Set(run->run.key.parameters, field.value);
        break;
      case 8:
        Set(run->run.key.training, field.value);
        break;
      default:
        break;
    }
  }
  return Check(cursor);
}

bool Decoder::ApplyRun(const WireField& record) {
  uint32_t id = 0;
  {
    WireCursor cursor(record);
    for (WireField field; cursor.Next(&field);) {
      if (field.number == 1 && !Id(field, &id)) return false;
    }
    if (!Check(cursor)) return false;
  }
  if (id == 0) return NoId(record.offset, "run");
  const auto [it, inserted] = runs_.try_emplace(id);
  if (inserted && !Charge(sizeof(RunState), record.offset)) return false;
  RunState& state = it->second;
  RunKey& key = state.run.key;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 2:
        if (field.value != 0) {
          key.source = field.value <= 4 ? static_cast<SourceKind>(field.value) : SourceKind::kUnspecified;
        }
        break;
      case 3:
        if (field.value != 0) state.run.tier = static_cast<int>(std::min<uint64_t>(field.value, 6));
        break;
      case 4:
        if (!DecodeProcess(field, &state.process)) return false;
        break;
      case 5: {
        DeviceInfo device;
        if (!DecodeDevice(field, &device)) return false;
        DeviceInfo& known = state.devices.try_emplace(device.index, DeviceInfo{.index = device.index}).first->second;
        if (!DecodeDevice(field, &known)) return false;
        break;
      }
      case 6:
        if (!DecodePolicy(field, &key.policy)) return false;
        break;
      case 7:
        Set(state.run.processes, field.value);
        break;
      case 8:
        if (!Numbers(field, [&](uint64_t rank) {
              if (!state.run.ranks.insert(Narrow(rank)).second) return true;
              return Charge(48, field.offset);
            })) {
          return false;
        }
        break;
      case 9:
        Set(key.batch_size, field.value);
        break;
      case 10:
        Set(key.estimated_gpu, Text(field));
        break;
      case 11:
        Set(key.collector, Text(field));
        break;
      case 13:
        if (!DecodeMerged(field, id, &state)) return false;
        break;
      default:
        break;
    }
  }
  return Check(cursor) && Charge(record.bytes.size(), record.offset);
}

bool Decoder::ApplyName(const WireField& record) {
  uint32_t id = 0;
  std::string text;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    if (field.number == 1 && !Id(field, &id)) return false;
    if (field.number == 2) text = Text(field);
  }
  if (!Check(cursor)) return false;
  if (id == 0) return NoId(record.offset, "name");
  const auto [it, inserted] = names_.try_emplace(id, std::move(text));
  if (inserted) return Charge(96 + it->second.size(), record.offset);
  return it->second == text || Redefined(record.offset, "name", id);
}

bool Decoder::ApplyModel(const WireField& record) {
  ModelState model;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        if (!Id(field, &model.id)) return false;
        break;
      case 2:
        model.info.class_name = Text(field);
        break;
      case 3:
        model.info.parameters = field.value;
        break;
      case 4:
        model.info.parameter_bytes = field.value;
        break;
      case 5:
        model.info.trainable_parameters = field.value;
        break;
      default:
        break;
    }
  }
  if (!Check(cursor)) return false;
  if (model.id == 0) return NoId(record.offset, "model");
  const auto [it, inserted] = model_index_.try_emplace(model.id, models_.size());
  if (inserted) {
    models_.push_back(std::move(model));
    return Charge(sizeof(ModelState) + 64 + record.bytes.size(), record.offset);
  }
  ModelInfo& known = models_[it->second].info;
  if (!model.info.class_name.empty() && model.info.class_name != known.class_name) {
    return Redefined(record.offset, "model", model.id);
  }
  Set(known.parameters, model.info.parameters);
  Set(known.parameter_bytes, model.info.parameter_bytes);
  Set(known.trainable_parameters, model.info.trainable_parameters);
  return true;
}

bool Decoder::ApplyLayer(const WireField& record) {
  uint32_t id = 0;
  LayerState layer;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        if (!Id(field, &id)) return false;
        break;
      case 2:
        if (!Id(field, &layer.model)) return false;
        break;
      case 3:
        layer.path = Text(field);
        break;
      case 4:
        layer.info.class_name = Text(field);
        break;
      case 5:
        layer.info.parameters = field.value;
        break;
      case 6:
        layer.info.parameter_bytes = field.value;
        break;
      case 7:
        layer.info.input_shape = Text(field);
        break;
      case 8:
        layer.info.output_shape = Text(field);
        break;
      case 9:
        if (!Id(field, &layer.parent)) return false;
        break;
      case 10:
        layer.info.training = field.value != 0;
        break;
      case 11:
        layer.info.order = field.value;
        break;
      default:
        break;
    }
  }
  if (!Check(cursor)) return false;
  if (id == 0) return NoId(record.offset, "layer");
  const auto known = layers_.find(id);
  if (known != layers_.end()) {
    LayerState& state = known->second;
    // A later record of a layer adds what was not known before (its shapes); what identifies it can be left out.
    if ((layer.model != 0 && layer.model != state.model) || (layer.parent != 0 && layer.parent != state.parent) ||
        (!layer.path.empty() && layer.path != state.path)) {
      return Redefined(record.offset, "layer", id);
    }
    Set(state.info.class_name, layer.info.class_name);
    Set(state.info.input_shape, layer.info.input_shape);
    Set(state.info.output_shape, layer.info.output_shape);
    Set(state.info.parameters, layer.info.parameters);
    Set(state.info.parameter_bytes, layer.info.parameter_bytes);
    state.info.training = state.info.training || layer.info.training;
    return Charge(record.bytes.size(), record.offset);
  }
  const auto model = model_index_.find(layer.model);
  if (model == model_index_.end()) return Undefined(record.offset, "model", layer.model);
  RunState* run = nullptr;
  if (!FindRun(record.offset, OwnerOf(layer.model), &run)) return false;
  models_[model->second].has_layers = true;
  if (layer.parent != 0) {
    const auto parent = layers_.find(layer.parent);
    if (parent == layers_.end()) return Undefined(record.offset, "layer", layer.parent);
    if (parent->second.model != layer.model) {
      return Fail(record.offset, "layer " + std::to_string(id) + " has a parent in another model");
    }
    layer.info.parent = parent->second.path;
  }
  layer.position = layers_.size() + 1;
  // Its text is kept here and in the profile, and its path once more by its children.
  const uint64_t size = sizeof(LayerState) + sizeof(LayerInfo) + sizeof(LayerKey) + 160 + 2 * record.bytes.size() +
                        2 * layer.info.parent.size();
  layers_.emplace(id, std::move(layer));
  return Charge(size, record.offset);
}

bool Decoder::ApplyMetric(const WireField& record) {
  uint32_t id = 0;
  MetricInfo metric;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        if (!Id(field, &id)) return false;
        break;
      case 2:
        metric.name = Text(field);
        break;
      case 3:
        metric.unit = Text(field);
        break;
      case 4:
        if (field.real() != 0) metric.scale = field.real();
        break;
      default:
        break;
    }
  }
  if (!Check(cursor)) return false;
  if (id == 0) return NoId(record.offset, "metric");
  // Between atto and exa; beyond, sums of what a file can hold would not be finite.
  if (!(metric.scale >= 1e-18 && metric.scale <= 1e18)) {
    return Fail(record.offset, "metric " + std::to_string(id) + " has an impossible scale");
  }
  const auto [it, inserted] = metrics_.try_emplace(id, metric);
  if (!inserted) return it->second == metric || Redefined(record.offset, "metric", id);
  const auto [named, first] = metric_ids_.try_emplace(metric.name, id);
  if (!first) {
    return Fail(record.offset,
                "metrics " + std::to_string(named->second) + " and " + std::to_string(id) + " have the same name");
  }
  // A new metric of a key is inserted into a sorted list.
  constexpr size_t kMaxMetrics = 8192;
  if (metrics_.size() > kMaxMetrics) return Fail(record.offset, "more metrics than any trace has");
  return Charge(sizeof(MetricInfo) + 256 + 3 * record.bytes.size(), record.offset);
}

bool Decoder::ApplyKey(const WireField& record) {
  uint32_t id = 0;
  KeyState key;
  const auto three = [this](const WireField& field, std::array<uint32_t, 3>& into, size_t& count) {
    return Numbers(field, [&](uint64_t value) {
      if (count == into.size()) return Fail(field.offset, "a grid or block has more than three dimensions");
      into[count++] = Narrow(value);
      return true;
    });
  };
  size_t grid = 0, block = 0;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    bool good = true;
    switch (field.number) {
      case 1:
        good = Id(field, &id);
        break;
      case 2:
        good = Id(field, &key.kernel);
        break;
      case 3:
        good = Id(field, &key.op);
        break;
      case 4:
        good = Id(field, &key.layer);
        break;
      case 5:
        // A phase of a newer minor version is some other phase to us.
        key.phase = field.value < kPhaseNames.size() ? static_cast<Phase>(field.value) : Phase::kOther;
        break;
      case 6:
        good = Id(field, &key.signature);
        break;
      case 7:
        good = three(field, key.grid, grid);
        break;
      case 8:
        good = three(field, key.block, block);
        break;
      case 9:
        key.dynamic_shared_bytes = Narrow(field.value);
        break;
      case 10:
        key.device = Narrow(field.value);
        break;
      case 11:
        good = Id(field, &key.run);
        break;
      case 12:
        good = Id(field, &key.node);
        break;
      default:
        break;
    }
    if (!good) return false;
  }
  if (!Check(cursor)) return false;
  if (id == 0) return NoId(record.offset, "launch key");
  if (key.run == 0) key.run = 1;
  RunState* run = nullptr;
  if (!FindRun(record.offset, key.run, &run)) return false;
  uint64_t text = 0;
  for (const uint32_t name : {key.kernel, key.op, key.signature, key.node}) {
    if (name == 0) continue;
    const auto it = names_.find(name);
    if (it == names_.end()) return Undefined(record.offset, "name", name);
    text += it->second.size();
  }
  if (key.layer != 0) {
    const auto layer = layers_.find(key.layer);
    if (layer == layers_.end()) return Undefined(record.offset, "layer", key.layer);
    if (OwnerOf(layer->second.model) != key.run) {
      return Fail(record.offset, "launch key " + std::to_string(id) + " is in a layer of another run");
    }
    text += layer->second.path.size();
  }
  const auto [it, inserted] = keys_.try_emplace(id, std::move(key));
  if (!inserted) return it->second.SameIdentity(key) || Redefined(record.offset, "launch key", id);
  return Charge(sizeof(KeyState) + sizeof(LaunchKey) + 160 + text, record.offset);
}

bool Decoder::DecodeMetricStats(const WireField& record, uint32_t* metric, Stat* stat) {
  uint64_t sum_high = 0, squares_high = 0, sum = 0, squares = 0;
  stat->min = 0;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        if (!Id(field, metric)) return false;
        break;
      case 2:
        stat->n = field.value;
        break;
      case 3:
        sum = field.value;
        break;
      case 4:
        sum_high = field.value;
        break;
      case 5:
        squares = field.value;
        break;
      case 6:
        squares_high = field.value;
        break;
      case 7:
        stat->min = field.value;
        break;
      case 8:
        stat->max = field.value;
        break;
      case 9:
        stat->shared_sums = field.value;
        break;
      default:
        break;
    }
  }
  if (!Check(cursor)) return false;
  stat->sum = static_cast<Uint128>(sum_high) << 64 | sum;
  stat->sum_squares = static_cast<Uint128>(squares_high) << 64 | squares;
  if (stat->n == 0) {
    if (stat->sum != 0) return Fail(record.offset, "a sum over no samples is not 0");
    *stat = Stat{};
  } else if (stat->min > stat->max) {
    return Fail(record.offset, "a metric's minimum is above its maximum");
  }
  return true;
}

bool Decoder::ApplyStats(const WireField& record) {
  uint32_t id = 0;
  uint64_t launches = 0;
  {
    WireCursor cursor(record);
    for (WireField field; cursor.Next(&field);) {
      if (field.number == 1 && !Id(field, &id)) return false;
      if (field.number == 2) launches = field.value;
    }
    if (!Check(cursor)) return false;
  }
  const auto key = keys_.find(id);
  if (key == keys_.end()) return Undefined(record.offset, "launch key", id);
  SaturatingAdd(key->second.launches, launches);
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    if (field.number != 3) continue;
    uint32_t metric = 0;
    Stat stat;
    if (!DecodeMetricStats(field, &metric, &stat)) return false;
    if (!metrics_.contains(metric)) return Undefined(field.offset, "metric", metric);
    if (stat.n == 0) continue;
    auto& metrics = key->second.metrics;
    const auto place = std::lower_bound(metrics.begin(), metrics.end(), metric,
                                        [](const auto& m, uint32_t id) { return m.first < id; });
    if (place != metrics.end() && place->first == metric) {
      place->second.Merge(stat);
    } else {
      if (!Charge(2 * sizeof(Stat) + 160, field.offset)) return false;
      metrics.emplace(place, metric, stat);
    }
  }
  return Check(cursor);
}

bool Decoder::ApplyStep(const WireField& record) {
  uint64_t duration = 0, armed_group = 0, memory = 0, memory_peak = 0, samples = 0;
  uint32_t run_id = 0;
  bool measured = false;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 3:
        duration = field.value;
        break;
      case 4:
        if (!Id(field, &run_id)) return false;
        break;
      case 5:
        measured = field.value != 0;
        break;
      case 6:
        armed_group = field.value;
        break;
      case 7:
        memory = field.value;
        break;
      case 8:
        memory_peak = field.value;
        break;
      case 9:
        samples = field.value;
        break;
      default:
        break;
    }
  }
  RunState* run = nullptr;
  if (!Check(cursor) || !FindRun(record.offset, run_id, &run)) return false;
  if (!measured) return true;
  StepSums& steps = run->run.steps;
  SaturatingAdd(steps.steps, 1);
  SaturatingAdd(steps.samples, samples);
  steps.memory_peak_bytes = std::max({steps.memory_peak_bytes, memory, memory_peak});
  // An armed step's time holds what profiling cost.
  if (armed_group != 0) {
    SaturatingAdd(steps.armed, 1);
  } else {
    steps.duration_ns.Add(duration);
  }
  return true;
}

bool Decoder::ApplyDiagnostic(const WireField& record) {
  DiagnosticInfo diagnostic;
  uint32_t run_id = 0;
  uint64_t count = 1;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        diagnostic.severity = static_cast<int>(std::min<uint64_t>(field.value, 2));
        break;
      case 2:
        diagnostic.id = Text(field);
        break;
      case 3:
        diagnostic.text = Text(field);
        break;
      case 4:
        diagnostic.remedy = Text(field);
        break;
      case 6:
        if (!Id(field, &run_id)) return false;
        break;
      case 7:
        Set(count, field.value);
        break;
      default:
        break;
    }
  }
  RunState* run = nullptr;
  if (!Check(cursor) || !FindRun(record.offset, run_id, &run)) return false;
  auto& diagnostics = run->run.diagnostics;
  const auto [it, inserted] = diagnostics.try_emplace(std::move(diagnostic), 0);
  SaturatingAdd(it->second, count);
  if (inserted && !Charge(record.bytes.size(), record.offset)) return false;
  if (inserted && diagnostics.size() > kMaxDiagnosticsKept) diagnostics.erase(std::prev(diagnostics.end()));
  return true;
}

bool Decoder::ApplyDrop(const WireField& record) {
  std::string what;
  uint32_t run_id = 0;
  uint64_t count = 0;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    if (field.number == 1) what = Text(field);
    if (field.number == 2) count = field.value;
    if (field.number == 3 && !Id(field, &run_id)) return false;
  }
  RunState* run = nullptr;
  if (!Check(cursor) || !FindRun(record.offset, run_id, &run)) return false;
  if (count == 0) return true;
  auto& drops = run->run.drops;
  const auto [it, inserted] = drops.try_emplace(std::move(what), 0);
  SaturatingAdd(it->second, count);
  if (inserted && !Charge(record.bytes.size(), record.offset)) return false;
  if (inserted && drops.size() > kMaxDiagnosticsKept) drops.erase(std::prev(drops.end()));
  return true;
}

bool Decoder::ApplyPmWindow(const WireField& record) {
  uint32_t run_id = 0;
  uint64_t duration = 0, read = 0, written = 0, tensor = 0;
  bool has_tensor = false;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        if (!Id(field, &run_id)) return false;
        break;
      case 4:
        duration = field.value;
        break;
      case 6:
        read = field.value;
        break;
      case 7:
        written = field.value;
        break;
      case 8:
        has_tensor = field.value != 0;
        break;
      case 9:
        tensor = field.value;
        break;
      default:
        break;
    }
  }
  RunState* run = nullptr;
  if (!Check(cursor) || !FindRun(record.offset, run_id, &run)) return false;
  StepSums& steps = run->run.steps;
  SaturatingAdd(read, written);
  steps.pm_dram_bytes.Add(read);
  steps.pm_duration_ns.Add(duration);
  if (has_tensor) steps.pm_tensor_active_ns.Add(std::min(tensor, duration));
  return true;
}

bool Decoder::ApplyStepStats(const WireField& record) {
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    if (field.number == 1 && !ApplyRunSteps(field)) return false;
  }
  return Check(cursor);
}

bool Decoder::ApplyRunSteps(const WireField& record) {
  uint32_t run_id = 0, metric = 0;
  StepSums sums;
  WireCursor cursor(record);
  for (WireField field; cursor.Next(&field);) {
    switch (field.number) {
      case 1:
        if (!Id(field, &run_id)) return false;
        break;
      case 2:
        sums.steps = field.value;
        break;
      case 3:
        sums.samples = field.value;
        break;
      case 4:
        if (!DecodeMetricStats(field, &metric, &sums.duration_ns)) return false;
        break;
      case 5:
        sums.armed = field.value;
        break;
      case 6:
        sums.memory_peak_bytes = field.value;
        break;
      case 7:
        if (!DecodeMetricStats(field, &metric, &sums.pm_dram_bytes)) return false;
        break;
      case 8:
        if (!DecodeMetricStats(field, &metric, &sums.pm_duration_ns)) return false;
        break;
      case 9:
        if (!DecodeMetricStats(field, &metric, &sums.pm_tensor_active_ns)) return false;
        break;
      default:
        break;
    }
  }
  RunState* run = nullptr;
  if (!Check(cursor) || !FindRun(record.offset, run_id, &run)) return false;
  run->run.steps.Merge(sums);
  return true;
}

// An empty name would say "in no layer".
constexpr std::string_view kUnnamedModel = "(unnamed)";

// Two instances of one class that both hold parameters (a GAN's two networks, a teacher and its student) are two
// models and must not be added up; loss modules are often made anew at every step and are one.
std::unordered_map<uint32_t, std::string> ModelNames(const std::vector<ModelState>& models) {
  std::unordered_map<uint32_t, std::string> names;
  std::map<std::string, uint64_t> seen;
  for (const ModelState& model : models) {
    std::string name = model.info.class_name.empty() ? std::string(kUnnamedModel) : model.info.class_name;
    if (model.info.parameters > 0) {
      const uint64_t count = ++seen[name];
      if (count > 1) name += " (" + std::to_string(count) + ")";
    }
    names.emplace(model.id, std::move(name));
  }
  return names;
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
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " + ") + name;
  return text;
}

Profile Decoder::Finish() && {
  Profile profile;
  for (const auto& [id, metric] : metrics_) profile.metrics.emplace(metric.name, metric);

  std::map<uint32_t, std::set<uint32_t>> devices_used;
  for (const auto& [id, key] : keys_) {
    if (key.launches > 0) devices_used[key.run].insert(key.device);
  }
  std::vector<ModelState> unowned;
  for (const ModelState& model : models_) {
    if (!owners_.contains(model.id)) unowned.push_back(model);
  }
  const std::unordered_map<uint32_t, std::string> unowned_names = ModelNames(unowned);
  static const std::string kUnnamed(kUnnamedModel);
  const auto model_name = [&](uint32_t id) -> const std::string& {
    const auto it = unowned_names.find(id);
    if (it != unowned_names.end()) return it->second;
    const std::string& name = models_[model_index_.at(id)].info.class_name;
    return name.empty() ? kUnnamed : name;
  };
  const auto run_of = [&](uint32_t model) { return runs_.find(OwnerOf(model)); };
  for (const ModelState& model : models_) {
    const auto run = run_of(model.id);
    if (run == runs_.end()) continue;
    const std::string& name = model_name(model.id);
    const auto [it, inserted] = run->second.run.models.try_emplace(name, model.info);
    it->second.class_name = name;
    if (inserted && !run->second.merged && model.info.parameters > 0) {
      run->second.run.key.models.push_back(name);
      uint64_t& parameters = run->second.run.key.parameters;
      parameters = model.info.parameters > UINT64_MAX - parameters ? UINT64_MAX : parameters + model.info.parameters;
    }
  }

  for (auto& [id, state] : runs_) {
    Run& run = state.run;
    if (run.processes == 0) run.processes = 1;
    if (state.merged) {
      std::sort(state.merged_devices.begin(), state.merged_devices.end());
      std::sort(state.merged_processes.begin(), state.merged_processes.end());
      run.devices = std::move(state.merged_devices);
      run.process_list = std::move(state.merged_processes);
      if (run.devices.size() > kMaxDevicesKept) run.devices.resize(kMaxDevicesKept);
      if (run.process_list.size() > kMaxProcessesKept) run.process_list.resize(kMaxProcessesKept);
      run.unfinished = state.unfinished;
    } else {
      run.key.gpu = GpuName(run.key, state.devices, devices_used[id]);
      for (auto& [index, device] : state.devices) run.devices.push_back(std::move(device));
      std::sort(run.devices.begin(), run.devices.end());
      if (run.devices.size() > kMaxDevicesKept) run.devices.resize(kMaxDevicesKept);
      if (run.ranks.empty() && state.process.world_size > 0) run.ranks.insert(state.process.rank);
      run.process_list.push_back(std::move(state.process));
      run.unfinished = finished_ ? 0 : 1;
    }
  }

  for (const auto& [id, layer] : layers_) {
    const auto run = run_of(layer.model);
    if (run == runs_.end()) continue;
    LayerInfo info = layer.info;
    if (info.order == 0) info.order = layer.position;
    // Loss modules that were made anew at every step share a name; the first one stands for all.
    const auto [it, inserted] = run->second.run.layers.try_emplace({model_name(layer.model), layer.path}, info);
    if (!inserted && info.order < it->second.order) it->second = info;
  }
  const auto name = [&](uint32_t id) { return id == 0 ? std::string() : names_.at(id); };
  for (const auto& [id, key] : keys_) {
    RunState& owner_of_key = runs_.at(key.run);
    if (!owner_of_key.merged && key.launches > 0 &&
        (key.phase == Phase::kBackward || key.phase == Phase::kOptimizer)) {
      owner_of_key.run.key.training = true;
    }
    LaunchKey full;
    if (key.layer != 0) {
      const LayerState& layer = layers_.at(key.layer);
      full.layer = {model_name(layer.model), layer.path};
    }
    full.phase = key.phase;
    full.op = name(key.op);
    full.kernel = name(key.kernel);
    full.signature = name(key.signature);
    full.node = name(key.node);
    full.grid = key.grid;
    full.block = key.block;
    full.dynamic_shared_bytes = key.dynamic_shared_bytes;
    full.device = key.device;
    LaunchStats& stats = runs_.at(key.run).run.launches[std::move(full)];
    LaunchStats increment{.launches = key.launches, .metrics = {}};
    for (const auto& [metric, stat] : key.metrics) increment.metrics.emplace(metrics_.at(metric).name, stat);
    stats.Merge(increment);
  }
  for (auto& [id, state] : runs_) {
    Profile one;
    RunKey key = state.run.key;
    one.runs.emplace(std::move(key), std::move(state.run));
    (void)profile.Merge(std::move(one));  // only metrics can disagree, and `one` has none
  }
  return profile;
}

// Reads at most `limit` chunks.
TraceContents Read(ByteSource& source, uint64_t limit, uint64_t max_decoded_bytes, bool* chunk_refused) {
  TraceContents contents;
  FrameReader frames(source);
  Decoder decoder(max_decoded_bytes);
  *chunk_refused = false;
  while (contents.chunks < limit && frames.Next()) {
    if (!decoder.Apply(frames.payload(), frames.payload_offset())) {
      contents.damage = decoder.damage();
      *chunk_refused = true;
      break;
    }
    ++contents.chunks;
  }
  if (!contents.damage) contents.damage = frames.damage();
  contents.usable = limit == 0 || frames.header_ok();
  contents.finished = decoder.finished();
  // A refused chunk may have been applied in part: the caller reads again, up to it.
  if (contents.usable && !*chunk_refused) contents.profile = std::move(decoder).Finish();
  return contents;
}

}  // namespace

TraceContents ReadTrace(ByteSource& source, uint64_t max_decoded_bytes) {
  bool chunk_refused = false;
  TraceContents contents = Read(source, UINT64_MAX, max_decoded_bytes, &chunk_refused);
  if (!chunk_refused) return contents;
  const std::optional<Damage> damage = contents.damage;
  contents = Read(source, contents.chunks, max_decoded_bytes, &chunk_refused);
  contents.damage = damage;
  return contents;
}

}  // namespace rfinject::cli
