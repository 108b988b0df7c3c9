#include "collector/trace_encoder.h"

#include <algorithm>
#include <array>
#include <span>

#include "proto/wire/repeated_launches.h"
#include "proto/wire/step_parts.h"

namespace rfinject {
namespace {

uint64_t Low(Uint128 value) noexcept { return static_cast<uint64_t>(value); }
uint64_t High(Uint128 value) noexcept { return static_cast<uint64_t>(value >> 64); }

bool IsZero(const std::array<uint32_t, 3>& a) noexcept { return a[0] == 0 && a[1] == 0 && a[2] == 0; }

}  // namespace

bool EncodeFactChanges(const RunFacts& before, const RunFacts& now, wire::Encoder* out) noexcept {
  if (before == now) return false;
  trace::RunWriter run = trace::ChunkWriter(out).begin_run();
  run.set_id(kRunId);
  trace::WriteChanges(before, now, &run);
  return true;
}

void EncodeTraceId(std::string_view id, wire::Encoder* out) noexcept { trace::ChunkWriter(out).add_trace_id(id); }

void EncodeName(uint32_t id, std::string_view text, wire::Encoder* out) noexcept {
  trace::NameWriter name = trace::ChunkWriter(out).begin_name();
  name.set_id(id);
  name.set_text(text);
}

void EncodeModel(uint32_t id, const ModelDefinition& definition, wire::Encoder* out) noexcept {
  trace::ModelWriter model = trace::ChunkWriter(out).begin_model();
  model.set_id(id);
  model.set_class_name(definition.class_name);
  model.set_parameters(definition.parameters);
  model.set_parameter_bytes(definition.parameter_bytes);
  model.set_trainable_parameters(definition.trainable_parameters);
}

void EncodeLayer(uint32_t id, const Layer& known, wire::Encoder* out) noexcept {
  const LayerDefinition& definition = known.definition;
  trace::LayerWriter layer = trace::ChunkWriter(out).begin_layer();
  layer.set_id(id);
  layer.set_model(definition.model);
  layer.set_path(definition.path);
  layer.set_class_name(definition.class_name);
  layer.set_parameters(definition.parameters);
  layer.set_parameter_bytes(definition.parameter_bytes);
  layer.set_input_shape(known.input_shape);
  layer.set_output_shape(known.output_shape);
  layer.set_parent(definition.parent);
  layer.set_training(definition.training);
}

void EncodeMetric(uint32_t id, const MetricDefinition& definition, wire::Encoder* out) noexcept {
  trace::MetricWriter metric = trace::ChunkWriter(out).begin_metric();
  metric.set_id(id);
  metric.set_name(definition.name);
  metric.set_unit(definition.unit);
  // A scale of 1 is not written, because 0 reads as 1.
  metric.set_scale(definition.scale == 1 ? 0 : definition.scale);
}

void EncodeModule(uint32_t id, const NativeModule& known, wire::Encoder* out) noexcept {
  trace::NativeModuleWriter module = trace::ChunkWriter(out).begin_native_module();
  module.set_id(id);
  module.set_path(known.path);
  module.set_build_id(known.build_id);
}

void EncodeStack(uint32_t id, const NativeStack& known, wire::Encoder* out) noexcept {
  std::array<uint32_t, kMaxNativeFrames> modules;
  std::array<uint64_t, kMaxNativeFrames> offsets;
  const size_t count = std::min(known.frames.size(), kMaxNativeFrames);
  for (size_t i = 0; i < count; ++i) {
    modules[i] = known.frames[i].module;
    offsets[i] = known.frames[i].offset;
  }
  trace::NativeStackWriter stack = trace::ChunkWriter(out).begin_native_stack();
  stack.set_id(id);
  stack.set_module(std::span(modules).first(count));
  stack.set_offset(std::span(offsets).first(count));
  if (known.version > 1) stack.set_function(std::span(known.functions).first(count));
}

void EncodeSourceLine(uint32_t id, const SourceLine& known, wire::Encoder* out) noexcept {
  trace::SourceLineWriter line = trace::ChunkWriter(out).begin_source_line();
  line.set_id(id);
  line.set_file(known.file);
  line.set_line(known.line);
  line.set_function(known.function);
}

void EncodeLaunchKey(uint32_t id, const LaunchIdentity& identity, uint32_t stack, uint32_t line,
                     wire::Encoder* out) noexcept {
  trace::LaunchKeyWriter key = trace::ChunkWriter(out).begin_key();
  key.set_id(id);
  key.set_kernel(identity.kernel);
  key.set_op(identity.site.op);
  key.set_layer(identity.site.layer);
  key.set_phase(identity.site.phase);
  key.set_signature(identity.signature);
  if (!IsZero(identity.grid)) key.set_grid(identity.grid);
  if (!IsZero(identity.block)) key.set_block(identity.block);
  key.set_dynamic_shared_bytes(identity.dynamic_shared_bytes);
  key.set_device(identity.device);
  key.set_run(kRunId);
  key.set_node(identity.site.node);
  key.set_stack(stack);
  key.set_line(line);
}

void internal::EncodeMetricStats(const MetricSum& sum, trace::MetricStatsWriter stats) noexcept {
  stats.set_metric(sum.metric);
  stats.set_n(sum.n);
  // Of samples that are all the same the rest follows (MetricStats).
  const bool same = sum.min == sum.max;
  if (!same) {
    stats.set_sum(Low(sum.sum));
    stats.set_sum_high(High(sum.sum));
    stats.set_sum_squares(Low(sum.sum_squares));
    stats.set_sum_squares_high(High(sum.sum_squares));
  }
  stats.set_min(sum.min);
  if (!same) stats.set_max(sum.max);
  stats.set_shared_sums(sum.shared_sums);
}

bool RepeatedKeys::Add(uint32_t id, uint64_t launches) noexcept {
  if (full()) return false;
  added_[size_++] = {id, launches};
  return true;
}

void RepeatedKeys::Encode(wire::Encoder* out) noexcept {
  if (empty()) return;
  std::sort(added_.begin(), added_.begin() + static_cast<std::ptrdiff_t>(size_),
            [](const Key& a, const Key& b) { return a.id < b.id; });
  size_t ranges = 0;
  uint32_t next = 1;  // the id behind the last range
  for (size_t i = 0; i < size_; ++i) {
    const Key& key = added_[i];
    const bool goes_on = ranges > 0 && key.id == next && key.launches == launches_[ranges - 1] &&
                         keys_[ranges - 1] < wire::kMostKeysInARange;
    if (goes_on) {
      ++keys_[ranges - 1];
    } else {
      gap_[ranges] = key.id - next;
      keys_[ranges] = 1;
      launches_[ranges] = key.launches;
      ++ranges;
    }
    next = key.id + 1;
  }
  trace::RepeatedLaunchesWriter repeated = trace::ChunkWriter(out).begin_repeated_launches();
  repeated.set_gap(std::span(gap_).first(ranges));
  repeated.set_keys(std::span(keys_).first(ranges));
  repeated.set_launches(std::span(launches_).first(ranges));
  size_ = 0;
}

void EncodeSampledStep(const SampledStep& sampled, wire::Encoder* out) noexcept {
  trace::SampledStepWriter step = trace::ChunkWriter(out).begin_sampled_step();
  step.set_run(kRunId);
  step.set_step(sampled.step);
  step.set_metric(sampled.metric);
  step.set_key(sampled.keys);
  step.set_change(sampled.changes);
}

void EncodeStep(const StepRecord& record, wire::Encoder* out) noexcept {
  trace::StepWriter step = trace::ChunkWriter(out).begin_step();
  step.set_index(record.index);
  step.set_start_unix_ns(record.start_unix_ns);
  step.set_duration_ns(record.duration_ns);
  step.set_run(kRunId);
  step.set_measured(record.measured);
  step.set_armed_group(record.armed_group);
  step.set_memory_bytes(record.memory_bytes);
  step.set_memory_peak_bytes(record.memory_peak_bytes);
  step.set_samples(record.samples);
  step.set_calls(record.calls);
  step.set_kind(record.kind);
  step.set_optimizer(record.optimizer);
  step.set_data_wait_ns(record.data_wait_ns);
  step.set_gpu_wait_ns(record.gpu_wait_ns);
  step.set_gpu_busy_ns(record.gpu_busy_ns);
  step.set_watched(record.watched);
}

void SummedSteps::Add(const StepRecord& step) {
  ++steps;
  samples += step.samples;
  calls += step.calls;
  memory_peak_bytes = std::max({memory_peak_bytes, step.memory_bytes, step.memory_peak_bytes});
  if (step.armed_group != 0) {
    ++armed;
  } else {
    duration_ns.Add(step.duration_ns);
    wall_ns.Add(step.duration_ns);
    if (step.watched & kDataWaits) data_wait_ns.Add(step.data_wait_ns);
    if (step.watched & kGpuWaits) gpu_wait_ns.Add(step.gpu_wait_ns);
    if (step.watched & kGpuBusy) gpu_busy_ns.Add(step.gpu_busy_ns);
    if ((step.watched & kDataWaits) == 0) return;
    if (step.watched & kGpuWaits) own_ns.Add(wire::OwnNs(step.duration_ns, step.data_wait_ns, step.gpu_wait_ns));
    if (step.watched & kGpuBusy) {
      launch_gap_ns.Add(wire::LaunchGapNs(step.duration_ns, step.data_wait_ns, step.gpu_busy_ns));
    }
  }
}

namespace {

void EncodeSpread(const SpreadSum& spread, trace::SpreadWriter writer) {
  std::vector<uint32_t> codes;
  std::vector<uint64_t> counts;
  for (const auto& [code, count] : spread.counts) {
    codes.push_back(code);
    counts.push_back(count);
  }
  writer.set_sum(static_cast<uint64_t>(spread.sum));
  writer.set_sum_high(static_cast<uint64_t>(spread.sum >> 64));
  writer.set_code(codes);
  writer.set_count(counts);
}

}  // namespace

void EncodeSummedSteps(const SummedSteps& summed, wire::Encoder* out) {
  trace::StepStatsWriter stats = trace::ChunkWriter(out).begin_step_stats();
  {
    trace::RunStepsWriter run = stats.begin_run();
    run.set_run(kRunId);
    run.set_steps(summed.steps);
    run.set_samples(summed.samples);
    if (summed.duration_ns.n != 0) internal::EncodeMetricStats(summed.duration_ns, run.begin_duration_ns());
    run.set_armed(summed.armed);
    run.set_memory_peak_bytes(summed.memory_peak_bytes);
    run.set_calls(summed.calls);
  }
  trace::RankStepsWriter rank = stats.begin_rank();
  rank.set_run(kRunId);
  if (!summed.wall_ns.counts.empty()) EncodeSpread(summed.wall_ns, rank.begin_wall_ns());
  if (!summed.data_wait_ns.counts.empty()) EncodeSpread(summed.data_wait_ns, rank.begin_data_wait_ns());
  if (!summed.gpu_wait_ns.counts.empty()) EncodeSpread(summed.gpu_wait_ns, rank.begin_gpu_wait_ns());
  if (!summed.gpu_busy_ns.counts.empty()) EncodeSpread(summed.gpu_busy_ns, rank.begin_gpu_busy_ns());
  if (!summed.own_ns.counts.empty()) EncodeSpread(summed.own_ns, rank.begin_own_ns());
  if (!summed.launch_gap_ns.counts.empty()) EncodeSpread(summed.launch_gap_ns, rank.begin_launch_gap_ns());
}

void EncodeEvaluation(uint64_t batches, uint64_t samples, wire::Encoder* out) noexcept {
  trace::StepStatsWriter stats = trace::ChunkWriter(out).begin_step_stats();
  trace::RunStepsWriter run = stats.begin_run();
  run.set_run(kRunId);
  run.set_eval_batches(batches);
  run.set_eval_samples(samples);
}

void EncodeMemoryPeak(const MemoryPeak& known, size_t layers, wire::Encoder* out) noexcept {
  trace::MemoryPeakWriter peak = trace::ChunkWriter(out).begin_memory_peak();
  peak.set_run(kRunId);
  peak.set_device(known.device);
  peak.set_step(known.step);
  peak.set_allocated_bytes(known.allocated);
  peak.set_reserved_bytes(known.reserved);
  peak.set_refused_bytes(known.refused.bytes);
  peak.set_refused_layer(known.refused.layer <= layers ? known.refused.layer : 0);
  peak.set_refused_phase(known.refused.phase);
  for (const MemoryPart& from : known.parts) {
    trace::MemoryPartWriter part = peak.begin_part();
    part.set_layer(from.layer <= layers ? from.layer : 0);
    part.set_phase(from.phase);
    part.set_bytes(from.bytes);
  }
}

void EncodePmWindow(const PmWindow& window, wire::Encoder* out) noexcept {
  trace::PmWindowWriter writer = trace::ChunkWriter(out).begin_pm_window();
  writer.set_run(kRunId);
  trace::WriteChanges(PmWindow{}, window, &writer);
}

void EncodeDiagnostic(const Diagnostic& known, wire::Encoder* out) noexcept {
  trace::DiagnosticWriter diagnostic = trace::ChunkWriter(out).begin_diagnostic();
  diagnostic.set_severity(known.severity);
  diagnostic.set_id(known.id);
  diagnostic.set_text(known.text);
  diagnostic.set_remedy(known.remedy);
  diagnostic.set_unix_ns(known.unix_ns);
  diagnostic.set_run(kRunId);
}

void EncodeDrop(std::string_view what, uint64_t count, wire::Encoder* out) noexcept {
  trace::DropWriter drop = trace::ChunkWriter(out).begin_drop();
  drop.set_what(what);
  drop.set_count(count);
  drop.set_run(kRunId);
}

void EncodeEnd(std::string_view reason, int64_t unix_ns, wire::Encoder* out) noexcept {
  trace::EndWriter end = trace::ChunkWriter(out).begin_end();
  end.set_reason(reason);
  end.set_unix_ns(unix_ns);
}

}  // namespace rfinject
