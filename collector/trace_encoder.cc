#include "collector/trace_encoder.h"

#include <algorithm>
#include <array>
#include <span>

#include "proto/wire/framing.h"
#include "proto/wire/step_times.h"

namespace rfinject {

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

void EncodeLaunchKey(uint32_t id, const LaunchIdentity& identity, uint32_t stack, uint32_t line,
                     wire::Encoder* out) noexcept {
  const trace::LaunchKey key{.kernel = identity.kernel,
                             .op = identity.site.op,
                             .layer = identity.site.layer,
                             .phase = identity.site.phase,
                             .signature = identity.signature,
                             .grid = identity.grid,
                             .block = identity.block,
                             .dynamic_shared_bytes = identity.dynamic_shared_bytes,
                             .device = identity.device,
                             .run = kRunId,
                             .node = identity.site.node,
                             .stack = stack,
                             .line = line};
  EncodeRecord(id, key, out);
}

bool RepeatedKeys::Add(uint32_t id, uint64_t launches) noexcept {
  if (full()) return false;
  added_[size_++] = {id, launches};
  return true;
}

template <typename Writer>
void RepeatedKeys::WriteRanges(Writer* out) noexcept {
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
  size_ = 0;
  out->set_gap(std::span(gap_).first(ranges));
  out->set_keys(std::span(keys_).first(ranges));
  out->set_launches(std::span(launches_).first(ranges));
}

void RepeatedKeys::Encode(wire::Encoder* out) noexcept {
  if (empty()) return;
  trace::RepeatedLaunchesWriter repeated = trace::ChunkWriter(out).begin_repeated_launches();
  WriteRanges(&repeated);
}

void RepeatedKeys::EncodeOfStep(uint64_t step, wire::Encoder* out) noexcept {
  if (empty()) return;
  trace::StepLaunchesWriter launches = trace::ChunkWriter(out).begin_step_launches();
  launches.set_run(kRunId);
  launches.set_step(step);
  WriteRanges(&launches);
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
  if (wire::AddStep(step, this)) wire::AddStepTime(wire::TimeOf(step), &rank);
}

void SummedSteps::Lengthen(const StepRecord& waits) {
  rank.wall_ns.Lengthen(waits.gpu_wait_ns);
  rank.gpu_wait_ns.Lengthen(waits.gpu_wait_ns);
  if ((waits.watched & wire::kWatchedGpuBusy) != 0) rank.gpu_busy_ns.Lengthen(waits.gpu_busy_ns);
}

void EncodeSummedSteps(const SummedSteps& summed, wire::Encoder* out) {
  trace::StepStatsWriter stats = trace::ChunkWriter(out).begin_step_stats();
  {
    trace::RunStepsWriter run = stats.begin_run();
    run.set_run(kRunId);
    trace::Write(summed, &run);
  }
  trace::RankStepsWriter rank = stats.begin_rank();
  rank.set_run(kRunId);
  trace::Write(summed.rank, &rank);
}

void EncodeEvaluation(uint64_t batches, uint64_t samples, uint64_t most, wire::Encoder* out) noexcept {
  trace::StepStatsWriter stats = trace::ChunkWriter(out).begin_step_stats();
  trace::RunStepsWriter run = stats.begin_run();
  run.set_run(kRunId);
  run.set_eval_batches(batches);
  run.set_eval_samples(samples);
  run.set_eval_batch_samples(most);
}

void EncodeMemoryPeak(MemoryPeak* known, size_t layers, wire::Encoder* out) noexcept {
  const auto place = [layers](uint32_t layer) { return layer <= layers ? layer : 0; };
  known->run = kRunId;
  known->refused_layer = place(known->refused_layer);
  trace::MemoryPeakWriter peak = trace::ChunkWriter(out).begin_memory_peak();
  trace::Write(static_cast<const trace::MemoryPeak&>(*known), &peak);
  for (MemoryPart part : known->parts) {
    part.layer = place(part.layer);
    trace::MemoryPartWriter writer = peak.begin_part();
    trace::Write(part, &writer);
  }
}

void EncodeEnd(std::string_view reason, int64_t unix_ns, wire::Encoder* out) noexcept {
  trace::EndWriter end = trace::ChunkWriter(out).begin_end();
  end.set_reason(reason);
  end.set_unix_ns(unix_ns);
}

}  // namespace rfinject
