// A step as the GPU saw it.
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"

namespace rfinject::cli {
namespace {

// As many as a reader draws; a process keeps half of them.
constexpr size_t kMaxKernels = 1 << 14, kMaxParts = 1 << 14;
constexpr size_t kMaxDevices = 16;

LaunchKey KeyOf(const trace::LaunchKey& key, const State& state) {
  LaunchKey named;
  if (key.layer != 0) {
    const LayerState& layer = state.layers[state.layer_index.Find(key.layer)];
    named.layer = {state.models[layer.model_place].name, layer.layer.path};
  }
  named.phase = key.phase;
  named.op = state.NameOf(key.op);
  named.kernel = state.NameOf(key.kernel);
  named.signature = state.NameOf(key.signature);
  named.node = state.NameOf(key.node);
  named.grid = key.grid;
  named.block = key.block;
  named.dynamic_shared_bytes = key.dynamic_shared_bytes;
  named.device = key.device;
  return named;
}

}  // namespace

absl::Status Apply(const v1::StepTimeline& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  trace::StepTimeline timeline;
  RFINJECT_TRY(ReadRecord(message, record, &timeline));
  const size_t kernels = timeline.key.size(), parts = timeline.sampled_ns.size();
  if (timeline.start_ns.size() != kernels || timeline.duration_ns.size() != kernels ||
      timeline.stream.size() != kernels || timeline.dram_mb_per_s.size() != parts ||
      timeline.tensor_cycles_per_us.size() != parts) {
    return DamageAt(record.offset, "a timeline has kernels or samples of which something is missing");
  }
  if (kernels > kMaxKernels || parts > kMaxParts || run->timelines.size() > kMaxDevices) {
    return DamageAt(record.offset, "a timeline is longer than any is");
  }
  for (const uint32_t key : timeline.key) {
    if (key != 0 && state->key_index.Find(key) == IdIndex::kNone) return Undefined(record, "launch key", key);
  }
  const uint64_t bytes = record.size + (kernels + parts) * 8 * sizeof(uint64_t);
  run->timelines[timeline.device] = std::move(timeline);
  return state->Charge(bytes, record);
}

void FinishTimelines(State* state) {
  for (auto& [id, of] : state->runs) {
    for (auto& [device, timeline] : of.timelines) {
      StepTimelineInfo info;
      std::map<uint32_t, uint32_t> places;  // by the key's id
      for (uint32_t& key : timeline.key) {
        const auto [place, is_new] = places.try_emplace(key, info.launched.size());
        if (is_new && key == 0) info.launched.emplace_back();
        if (is_new && key != 0) info.launched.push_back(KeyOf(state->keys[state->key_index.Find(key)].key, *state));
        key = place->second;
      }
      timeline.run = 0;
      static_cast<trace::StepTimeline&>(info) = std::move(timeline);
      of.run.timelines[device] = std::move(info);
    }
    of.timelines.clear();
  }
}

}  // namespace rfinject::cli
