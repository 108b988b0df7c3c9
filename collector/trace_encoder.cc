#include "collector/trace_encoder.h"

#include <algorithm>
#include <span>

namespace rfinject {
namespace {

// Fields of Chunk.
enum ChunkField : uint32_t {
  kRun = 1,
  kName = 2,
  kModel = 3,
  kLayer = 4,
  kMetric = 5,
  kKey = 6,
  kStep = 8,
  kDiagnostic = 9,
  kDrop = 10,
  kEnd = 12,
  kPmWindow = 13,
  kNativeModule = 14,
  kNativeStack = 15,
};

void TextIfNew(uint32_t field, const std::string& before, const std::string& now, wire::Encoder* out) noexcept {
  if (before != now) out->Text(field, now);
}

template <typename T>
void UintIfNew(uint32_t field, const T& before, const T& now, wire::Encoder* out) noexcept {
  if (before != now) out->Uint(field, static_cast<uint64_t>(now));
}

bool SameDevice(const DeviceFacts& a, const DeviceFacts& b) noexcept {
  return a.index == b.index && a.name == b.name && a.chip == b.chip && a.cc_major == b.cc_major &&
         a.cc_minor == b.cc_minor && a.sm_count == b.sm_count && a.sm_clock_khz == b.sm_clock_khz &&
         a.memory_clock_khz == b.memory_clock_khz && a.memory_bus_bits == b.memory_bus_bits &&
         a.memory_bytes == b.memory_bytes && a.l2_bytes == b.l2_bytes && a.uuid == b.uuid && a.mig == b.mig;
}

void EncodeDevice(const DeviceFacts& device, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(5);
  out->Uint(1, device.index);
  out->Text(2, device.name);
  out->Text(3, device.chip);
  out->Uint(4, device.cc_major);
  out->Uint(5, device.cc_minor);
  out->Uint(6, device.sm_count);
  out->Uint(7, device.sm_clock_khz);
  out->Uint(8, device.memory_clock_khz);
  out->Uint(9, device.memory_bus_bits);
  out->Uint(10, device.memory_bytes);
  out->Uint(11, device.l2_bytes);
  out->Text(12, device.uuid);
  out->Bool(13, device.mig);
  out->End(mark);
}

bool SameDevices(const RunFacts& a, const RunFacts& b) noexcept {
  return std::equal(a.devices.begin(), a.devices.end(), b.devices.begin(), b.devices.end(), SameDevice);
}

bool SamePolicy(const PolicyFacts& a, const PolicyFacts& b) noexcept {
  return a.matmul_tf32 == b.matmul_tf32 && a.cudnn_tf32 == b.cudnn_tf32 && a.cudnn_benchmark == b.cudnn_benchmark &&
         a.cudnn_deterministic == b.cudnn_deterministic && a.autocast_dtype == b.autocast_dtype;
}

bool SameProcessFacts(const RunFacts& a, const RunFacts& b) noexcept {
  return a.python_version == b.python_version && a.python_executable == b.python_executable &&
         a.torch_version == b.torch_version && a.torchvision_version == b.torchvision_version &&
         a.cuda_version == b.cuda_version && a.cudnn_version == b.cudnn_version &&
         a.driver_version == b.driver_version && a.cupti_version == b.cupti_version && a.cupti_path == b.cupti_path &&
         a.tier_reason == b.tier_reason;
}

bool SameRunFacts(const RunFacts& a, const RunFacts& b) noexcept {
  return a.source == b.source && a.tier == b.tier && a.batch_size == b.batch_size &&
         a.estimated_gpu == b.estimated_gpu && a.collector == b.collector &&
         a.collector_version == b.collector_version && SamePolicy(a.policy, b.policy) && SameProcessFacts(a, b) &&
         SameDevices(a, b);
}

uint64_t Low(Uint128 value) noexcept { return static_cast<uint64_t>(value); }
uint64_t High(Uint128 value) noexcept { return static_cast<uint64_t>(value >> 64); }

bool IsZero(const std::array<uint32_t, 3>& a) noexcept { return a[0] == 0 && a[1] == 0 && a[2] == 0; }

}  // namespace

void EncodeProcess(const ProcessFacts& process, int64_t start_unix_ns, wire::Encoder* out) noexcept {
  const size_t run = out->Begin(kRun);
  out->Uint(1, kRunId);
  const size_t mark = out->Begin(4);
  out->Text(1, RFINJECT_VERSION);
  out->Text(2, process.host);
  out->Uint(3, process.pid);
  for (const std::string& argument : process.argv) out->ForceText(4, argument);
  out->Int(5, start_unix_ns);
  out->Uint(15, process.rank);
  out->Uint(16, process.local_rank);
  out->Uint(17, process.world_size);
  out->Text(18, process.job_id);
  out->Text(19, process.os);
  out->Text(20, process.cpu);
  out->Uint(21, process.cpus);
  out->Uint(22, process.memory_bytes);
  out->End(mark);
  if (process.has_rank) out->PackedUint(8, std::span(&process.rank, 1));
  out->End(run);
}

bool EncodeFactChanges(const RunFacts& before, const RunFacts& now, wire::Encoder* out) noexcept {
  if (SameRunFacts(before, now)) return false;
  const size_t run = out->Begin(kRun);
  out->Uint(1, kRunId);
  UintIfNew(2, before.source, now.source, out);
  UintIfNew(3, before.tier, now.tier, out);
  if (!SameProcessFacts(before, now)) {
    const size_t process = out->Begin(4);
    TextIfNew(6, before.python_version, now.python_version, out);
    TextIfNew(7, before.python_executable, now.python_executable, out);
    TextIfNew(8, before.torch_version, now.torch_version, out);
    TextIfNew(9, before.torchvision_version, now.torchvision_version, out);
    TextIfNew(10, before.cuda_version, now.cuda_version, out);
    TextIfNew(11, before.cudnn_version, now.cudnn_version, out);
    TextIfNew(12, before.driver_version, now.driver_version, out);
    TextIfNew(13, before.cupti_version, now.cupti_version, out);
    TextIfNew(14, before.cupti_path, now.cupti_path, out);
    TextIfNew(23, before.tier_reason, now.tier_reason, out);
    out->End(process);
  }
  if (!SameDevices(before, now)) {
    for (const DeviceFacts& device : now.devices) EncodeDevice(device, out);
  }
  if (!SamePolicy(before.policy, now.policy)) {
    const size_t policy = out->Begin(6);
    UintIfNew(1, before.policy.matmul_tf32, now.policy.matmul_tf32, out);
    UintIfNew(2, before.policy.cudnn_tf32, now.policy.cudnn_tf32, out);
    UintIfNew(3, before.policy.cudnn_benchmark, now.policy.cudnn_benchmark, out);
    UintIfNew(4, before.policy.cudnn_deterministic, now.policy.cudnn_deterministic, out);
    TextIfNew(5, before.policy.autocast_dtype, now.policy.autocast_dtype, out);
    out->End(policy);
  }
  UintIfNew(9, before.batch_size, now.batch_size, out);
  TextIfNew(10, before.estimated_gpu, now.estimated_gpu, out);
  TextIfNew(11, before.collector, now.collector, out);
  TextIfNew(12, before.collector_version, now.collector_version, out);
  out->End(run);
  return true;
}

void EncodeName(uint32_t id, std::string_view text, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kName);
  out->Uint(1, id);
  out->Text(2, text);
  out->End(mark);
}

void EncodeModel(uint32_t id, const ModelDefinition& model, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kModel);
  out->Uint(1, id);
  out->Text(2, model.class_name);
  out->Uint(3, model.parameters);
  out->Uint(4, model.parameter_bytes);
  out->Uint(5, model.trainable_parameters);
  out->End(mark);
}

void EncodeLayer(uint32_t id, const Layer& layer, wire::Encoder* out) noexcept {
  const LayerDefinition& definition = layer.definition;
  const size_t mark = out->Begin(kLayer);
  out->Uint(1, id);
  out->Uint(2, definition.model);
  out->Text(3, definition.path);
  out->Text(4, definition.class_name);
  out->Uint(5, definition.parameters);
  out->Uint(6, definition.parameter_bytes);
  out->Text(7, layer.input_shape);
  out->Text(8, layer.output_shape);
  out->Uint(9, definition.parent);
  out->Bool(10, definition.training);
  out->End(mark);
}

void EncodeMetric(uint32_t id, const MetricDefinition& metric, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kMetric);
  out->Uint(1, id);
  out->Text(2, metric.name);
  out->Text(3, metric.unit);
  // 0 reads as 1.
  out->Double(4, metric.scale == 1 ? 0 : metric.scale);
  out->End(mark);
}

void EncodeModule(uint32_t id, const NativeModule& module, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kNativeModule);
  out->Uint(1, id);
  out->Text(2, module.path);
  out->Text(3, module.build_id);
  out->End(mark);
}

void EncodeStack(uint32_t id, const NativeStack& stack, wire::Encoder* out) noexcept {
  std::array<uint32_t, kMaxNativeFrames> modules;
  std::array<uint64_t, kMaxNativeFrames> offsets;
  const size_t count = std::min(stack.frames.size(), kMaxNativeFrames);
  for (size_t i = 0; i < count; ++i) {
    modules[i] = stack.frames[i].module;
    offsets[i] = stack.frames[i].offset;
  }
  const size_t mark = out->Begin(kNativeStack);
  out->Uint(1, id);
  out->PackedUint(2, std::span(modules).first(count));
  out->PackedUint(3, std::span(offsets).first(count));
  if (stack.version > 1) out->PackedUint(4, std::span(stack.functions).first(count));
  out->End(mark);
}

void EncodeLaunchKey(uint32_t id, const LaunchIdentity& identity, uint32_t stack, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kKey);
  out->Uint(1, id);
  out->Uint(2, identity.kernel);
  out->Uint(3, identity.site.op);
  out->Uint(4, identity.site.layer);
  out->Uint(5, static_cast<uint64_t>(identity.site.phase));
  out->Uint(6, identity.signature);
  if (!IsZero(identity.grid)) out->PackedUint(7, identity.grid);
  if (!IsZero(identity.block)) out->PackedUint(8, identity.block);
  out->Uint(9, identity.dynamic_shared_bytes);
  out->Uint(10, identity.device);
  out->Uint(11, kRunId);
  out->Uint(12, identity.site.node);
  out->Uint(13, stack);
  out->End(mark);
}

void internal::EncodeMetricStats(const MetricSum& sum, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(3);
  out->Uint(1, sum.metric);
  out->Uint(2, sum.n);
  out->Uint(3, Low(sum.sum));
  out->Uint(4, High(sum.sum));
  out->Uint(5, Low(sum.sum_squares));
  out->Uint(6, High(sum.sum_squares));
  out->Uint(7, sum.min);
  out->Uint(8, sum.max);
  out->Uint(9, sum.shared_sums);
  out->End(mark);
}

void EncodeStep(const StepRecord& step, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kStep);
  out->Uint(1, step.index);
  out->Int(2, step.start_unix_ns);
  out->Uint(3, step.duration_ns);
  out->Uint(4, kRunId);
  out->Bool(5, step.measured);
  out->Uint(6, step.armed_group);
  out->Uint(7, step.memory_bytes);
  out->Uint(8, step.memory_peak_bytes);
  out->Uint(9, step.samples);
  out->End(mark);
}

void EncodePmWindow(const PmWindow& window, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kPmWindow);
  out->Uint(1, kRunId);
  out->Uint(2, window.step);
  out->Int(3, window.start_unix_ns);
  out->Uint(4, window.duration_ns);
  out->Uint(5, window.samples);
  out->Uint(6, window.dram_read_bytes);
  out->Uint(7, window.dram_write_bytes);
  out->Bool(8, window.has_tensor);
  out->Uint(9, window.tensor_active_ns);
  out->Uint(10, window.bin_ns);
  out->PackedUint(11, window.bin_dram_bytes);
  out->PackedUint(12, window.bin_tensor_permille);
  out->End(mark);
}

void EncodeDiagnostic(const Diagnostic& diagnostic, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kDiagnostic);
  out->Uint(1, static_cast<uint64_t>(diagnostic.severity));
  out->Text(2, diagnostic.id);
  out->Text(3, diagnostic.text);
  out->Text(4, diagnostic.remedy);
  out->Int(5, diagnostic.unix_ns);
  out->Uint(6, kRunId);
  out->End(mark);
}

void EncodeDrop(std::string_view what, uint64_t count, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kDrop);
  out->Text(1, what);
  out->Uint(2, count);
  out->Uint(3, kRunId);
  out->End(mark);
}

void EncodeEnd(std::string_view reason, int64_t unix_ns, wire::Encoder* out) noexcept {
  const size_t mark = out->Begin(kEnd);
  out->Text(1, reason);
  out->Int(2, unix_ns);
  out->End(mark);
}

}  // namespace rfinject
