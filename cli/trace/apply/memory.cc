// What lay in a device's memory when it was fullest.
#include <algorithm>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// More than any process keeps.
constexpr size_t kMaxPoints = 4096;

absl::Status CheckLayer(uint32_t id, uint32_t run, const Record& record, const State& state) {
  if (id == 0) return absl::OkStatus();
  const size_t layer = state.layer_index.Find(id);
  if (layer == IdIndex::kNone) return Undefined(record, "layer", id);
  if (state.OwnerOf(state.layers[layer].layer.model) == run) return absl::OkStatus();
  return DamageAt(record.offset, "a memory peak has a part in a layer of another run");
}

}  // namespace

absl::Status Apply(const v1::MemoryPeak& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  trace::MemoryPeak peak;
  RFINJECT_TRY(ReadRecord(message, record, &peak));
  const uint32_t id = State::RunId(message.run());
  for (const trace::MemoryPart& part : peak.part) RFINJECT_TRY(CheckLayer(part.layer, id, record, *state));
  RFINJECT_TRY(CheckLayer(peak.refused_layer, id, record, *state));
  if (peak.point_phase.size() > kMaxPoints ||
      peak.point_bytes.size() != peak.point_phase.size() * kPhaseNames.size()) {
    return DamageAt(record.offset, "a memory peak has points of which something is missing, or too many");
  }
  trace::MemoryPeak& known = run->memory_peak;
  const auto rank = [](const trace::MemoryPeak& one) { return std::pair(one.refused_bytes, one.allocated_bytes); };
  if (!known.part.empty() && rank(peak) <= rank(known)) {
    if (rank(peak) == rank(known)) {
      known.later_bytes = std::max(known.later_bytes, peak.later_bytes);
      known.point_step = peak.point_step;
      known.point_phase = std::move(peak.point_phase);
      known.point_bytes = std::move(peak.point_bytes);
    }
    return absl::OkStatus();
  }
  known = std::move(peak);
  return state->Charge(record.size + known.part.size() * (sizeof(MemoryPlace) + 96) +
                           known.point_phase.size() * (kPhaseNames.size() + 1) * sizeof(uint64_t),
                       record);
}

void FinishMemory(State* state) {
  const auto place_of = [state](uint32_t id, Phase phase) {
    MemoryPlace place{.phase = phase};
    if (id != 0) {
      const LayerState& layer = state->layers[state->layer_index.Find(id)];
      place.layer = {state->models[layer.model_place].name, layer.layer.path};
    }
    return place;
  };
  for (auto& [id, of] : state->runs) {
    MemoryPeakInfo& peak = of.run.memory_peak;
    for (const trace::MemoryPart& part : of.memory_peak.part) {
      wire::SaturatingAdd(&peak.parts[place_of(part.layer, part.phase)], part.bytes);
    }
    peak.refused_in = place_of(of.memory_peak.refused_layer, of.memory_peak.refused_phase);
    of.memory_peak.part.clear();
    static_cast<trace::MemoryPeak&>(peak) = std::move(of.memory_peak);
    ForgetIds(&peak);
  }
}

}  // namespace rfinject::cli
