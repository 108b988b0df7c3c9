// Models and their layers.
#include <map>
#include <string>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// Finds what a new layer lies in, and charges what will be kept of it.
absl::Status Place(const Record& record, State* state, LayerState* made) {
  LayerInfo& layer = made->layer;
  made->model_place = state->model_index.Find(layer.model);
  if (made->model_place == IdIndex::kNone) return Undefined(record, "model", layer.model);
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(state->OwnerOf(layer.model), record, &run));
  state->models[made->model_place].has_layers = true;
  if (layer.parent != 0) {
    const size_t parent = state->layer_index.Find(layer.parent);
    if (parent == IdIndex::kNone || parent == state->layers.size()) return Undefined(record, "layer", layer.parent);
    const LayerInfo& above = state->layers[parent].layer;
    if (above.model != layer.model) {
      return DamageAt(record.offset, absl::StrCat("layer ", layer.id, " has a parent in another model"));
    }
    layer.parent_path = above.path;
  }
  // Its text is kept here and in the profile, and its path once more by its children.
  return state->Charge(sizeof(LayerState) + sizeof(LayerInfo) + sizeof(LayerKey) + 160 + 2 * record.size +
                           2 * layer.parent_path.size(),
                       record);
}

// Two instances of one class that both hold parameters (a GAN's two networks, a teacher and its student) are two
// models and must not be added up; loss modules are often made anew at every step and are one. In merged runs the
// names tell them apart already.
void NameModels(State* state) {
  std::map<std::string, uint64_t> seen;
  for (ModelState& known : state->models) {
    const trace::Model& model = known.model;
    // An empty name would say "in no layer".
    known.name = model.class_name.empty() ? "(unnamed)" : model.class_name;
    if (model.parameters > 0 && !state->owners.contains(model.id)) {
      const uint64_t count = ++seen[known.name];
      if (count > 1) absl::StrAppend(&known.name, " (", count, ")");
    }
  }
}

}  // namespace

absl::Status Apply(const v1::Model& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "model");
  trace::Model said;
  RFINJECT_TRY(ReadRecord(message, record, &said));
  const auto [place, inserted] = state->model_index.TryEmplace(said.id, state->models.size());
  if (inserted) {
    state->models.push_back({.model = std::move(said), .name = {}});
    return state->Charge(sizeof(ModelState) + 64 + record.size, record);
  }
  trace::Model& known = state->models[place].model;
  if (!SameIds(said, known)) return Redefined(record, "model", said.id);
  Update(said, &known);
  return absl::OkStatus();
}

absl::Status Apply(const v1::Layer& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "layer");
  LayerState said;
  RFINJECT_TRY(ReadRecord(message, record, &said.layer));
  const auto [place, inserted] = state->layer_index.TryEmplace(said.layer.id, state->layers.size());
  if (inserted) {
    RFINJECT_TRY(Place(record, state, &said));
    state->layers.push_back(std::move(said));
    return absl::OkStatus();
  }
  RFINJECT_TRY(state->Charge(record.size, record));
  // A later record of a layer adds what was not known before (its shapes); what identifies it can be left out.
  LayerInfo& known = state->layers[place].layer;
  if (!SameIds(said.layer, known)) return Redefined(record, "layer", said.layer.id);
  Update(said.layer, &known);
  return absl::OkStatus();
}

void FinishLayers(State* state) {
  NameModels(state);
  for (const ModelState& known : state->models) {
    const auto run = state->runs.find(state->OwnerOf(known.model.id));
    if (run == state->runs.end()) continue;
    RunState& of = run->second;
    const auto [it, inserted] = of.run.models.try_emplace(known.name, known.model);
    it->second.id = 0;
    it->second.class_name = known.name;
    if (inserted && !of.merged && known.model.parameters > 0) {
      of.run.key.models.push_back(known.name);
      wire::SaturatingAdd(&of.run.key.parameters, known.model.parameters);
    }
  }
  for (size_t i = 0; i < state->layers.size(); ++i) {
    uint64_t& order = state->layers[i].layer.order;
    if (order == 0) order = i + 1;
  }
  for (const KeyState& known : state->keys) {
    RunState& of = state->runs.at(known.key.run);
    of.validates = of.validates || state->IsValidation(known.key);
    const bool trains = known.key.phase == Phase::kBackward || known.key.phase == Phase::kOptimizer;
    if (!of.merged && known.launches > 0 && trains) of.run.key.training = true;
  }
}

}  // namespace rfinject::cli
