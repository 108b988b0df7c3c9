#include "injector/python/module_registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "injector/layer_stack.h"
#include "injector/python/optimizers.h"
#include "injector/python/python_frames.h"
#include "injector/python/torch_state.h"
#include "injector/python/type_slots.h"

namespace rfinject {

ModuleRegistry::ModuleRegistry(const PythonApi& python, Recorder& recorder, PyCFunction on_death)
    : python_(python),
      recorder_(recorder),
      reader_(python),
      module_class_(ImportedModule(python, "torch.nn.modules.module").Attribute("Module")),
      death_method_{"rfinject_forget", on_death, kMethO, nullptr},
      weakref_callback_(python, python.PyCFunction_NewEx(&death_method_, nullptr, nullptr)) {}

// --- Remembering.

void ModuleRegistry::OnDeath(const PyObject* weakref) noexcept {
  auto found = by_weakref_.find(weakref);  // the hash of an address throws nothing
  if (found != by_weakref_.end()) Forget(found->second);
}

void ModuleRegistry::Forget(const PyObject* module) {
  auto life = lives_.find(module);
  if (life == lives_.end()) return;
  if (const Entry* entry = modules_.Find(module)) {
    auto layer = layers_.find(entry->layer);
    if (layer != layers_.end()) {
      ModelInfo& model = models_[layer->second.model];
      if (model.root == module) model.root = nullptr;
    }
  }
  modules_.Erase(module);
  auto hooks = by_hooks_.find(life->second.hooks);
  if (hooks != by_hooks_.end() && hooks->second == module) by_hooks_.erase(hooks);
  PyObject* weakref = life->second.weakref;
  by_weakref_.erase(weakref);
  lives_.erase(life);
  python_.Py_DecRef(weakref);
}

// Remembers the module's layer for as long as the module lives.
void ModuleRegistry::Remember(PyObject* module, uint32_t layer) {
  const Entry entry{layer, layers_[layer].shape_attempts > 0, false};
  if (Entry* known = modules_.Find(module)) {
    *known = entry;
    return;
  }
  PyObject* weakref = python_.PyWeakref_NewRef(module, weakref_callback_.get());
  if (weakref == nullptr) {  // no __weakref__ slot: the address may be reused unseen, so it is not kept
    DropError(python_);
    return;
  }
  Ref hooks = reader_.Own(module, "_forward_hooks");
  lives_[module] = Life{weakref, hooks.get()};
  by_weakref_[weakref] = module;
  if (hooks) by_hooks_.emplace(hooks.get(), module);
  modules_.Insert(module, entry);
}

uint32_t ModuleRegistry::DefineLayer(uint32_t model, const std::string& path, PyObject* module, uint32_t parent,
                                     ModuleReader::Seen& parameters) {
  auto known = models_[model].layers.find(path);
  if (known != models_[model].layers.end()) return known->second;
  LayerDefinition definition;
  definition.model = models_[model].id;
  definition.parent = parent;
  definition.path = path;
  definition.class_name = reader_.ClassName(module);
  ParameterCount own;
  reader_.CountOwnParameters(module, parameters, own);
  definition.parameters = own.elements;
  definition.parameter_bytes = own.bytes;
  definition.training = reader_.Own(module, "training").IsTrue();
  const uint32_t layer = recorder_.DefineLayer(definition);
  if (layer == 0) return 0;
  models_[model].layers.emplace(path, layer);
  layers_[layer] = LayerInfo{.model = model, .path = path};
  return layer;
}

// Gives `module` and everything below it layers. A module that has a layer keeps it, unless it was called as a root
// before and turns out to be part of a larger model.
void ModuleRegistry::NameTree(Walk& walk, PyObject* module, const std::string& path, uint32_t parent) {
  if (!walk.modules.insert(module).second) return;
  uint32_t layer = 0;
  std::string own_path = path;
  const uint32_t absorbed = walk.absorbed;
  if (const Entry* entry = modules_.Find(module)) {
    const LayerInfo& info = layers_[entry->layer];
    if (info.model == walk.model) {
      layer = entry->layer;
      own_path = info.path;
    } else if (info.model != walk.absorbed) {
      if (models_[info.model].root != module) return;  // part of another model, whose names it keeps
      walk.absorbed = info.model;
    }
  }
  // A wrapper shares the layer of what it wraps.
  Ref inner = reader_.Innermost(module);
  if (layer == 0) {
    layer = DefineLayer(walk.model, own_path, inner.get(), parent, walk.parameters);
    if (layer == 0) return;
    Remember(module, layer);
  }
  if (inner.get() != module) {
    walk.modules.insert(inner.get());
    for (Ref wrapped = reader_.Wrapped(module); wrapped; wrapped = reader_.Wrapped(wrapped.get())) {
      Remember(wrapped.get(), layer);
      if (wrapped.get() == inner.get()) break;
    }
  }
  for (const auto& [name, child] : reader_.Children(inner.get())) {
    NameTree(walk, child.get(), own_path.empty() ? name : own_path + "." + name, layer);
  }
  walk.absorbed = absorbed;
}

// --- Finding the layer of a module that is not in the table.

uint32_t ModuleRegistry::LayerOf(const PyObject* module) noexcept {
  const Entry* entry = modules_.Find(module);
  return entry != nullptr ? entry->layer : 0;
}

uint32_t ModuleRegistry::LayerBelow(PyObject* top, uint32_t model, const std::string& path, uint32_t parent,
                                    const PyObject* module) {
  Walk walk{model, kNoModel, {}, {}};
  NameTree(walk, top, path, parent);
  return LayerOf(module);
}

uint32_t ModuleRegistry::NewRoot(PyObject* module) {
  QuietTorch quiet;
  Ref inner = reader_.Innermost(module);
  if (inner.get() != module) {
    if (const uint32_t layer = LayerOf(inner.get()); layer != 0) {
      Remember(module, layer);
      return layer;
    }
  }
  const std::string class_name = reader_.ClassName(inner.get());
  ParameterCount count;
  {
    ModuleReader::Seen modules, parameters;
    reader_.CountTree(inner.get(), modules, parameters, count);
  }
  // A loss or a transform that is made anew for each call counts as the same model, and so does a model that is made
  // again in place of one that is gone.
  uint32_t model = kNoModel;
  for (uint32_t i = 0; i < models_.size() && model == kNoModel; ++i) {
    const ModelInfo& candidate = models_[i];
    if (candidate.class_name != class_name || candidate.has_parameters != count.any) continue;
    const bool same = !count.any || (candidate.root == nullptr && candidate.parameters == count.elements);
    if (same || models_.size() >= kMaxModels) model = i;
  }
  if (model == kNoModel && models_.size() >= kMaxModels) return 0;
  if (model == kNoModel) {
    ModelDefinition definition;
    const uint32_t number = ++class_counts_[class_name];
    definition.class_name = number == 1 ? class_name : class_name + "#" + std::to_string(number);
    definition.parameters = count.elements;
    definition.parameter_bytes = count.bytes;
    definition.trainable_parameters = count.trainable;
    const uint32_t id = recorder_.DefineModel(definition);
    if (id == 0) return 0;
    ModelInfo info;
    info.id = id;
    info.class_name = class_name;
    info.parameters = count.elements;
    info.has_parameters = count.any;
    info.sequence_first = count.sequence_first;
    model = static_cast<uint32_t>(models_.size());
    models_.push_back(std::move(info));
  }
  models_[model].root = inner.get();
  LayerBelow(module, model, "", 0, module);
  for (PyObject* one : {module, inner.get()}) {
    if (Entry* entry = modules_.Find(one)) entry->lone_root = true;
  }
  return RootOf(models_[model]);
}

bool ModuleRegistry::IsBelow(PyObject* module, PyObject* owner, ModuleReader::Seen& seen) const {
  if (!seen.insert(owner).second) return false;
  const auto children = reader_.Children(owner);
  return std::any_of(children.begin(), children.end(), [&](const auto& child) {
    return child.second.get() == module || IsBelow(module, child.second.get(), seen);
  });
}

// Returns the outermost module that `module` is a part of and one of whose methods the thread runs (it is the
// method's `self`); or empty. A module whose constructor runs does not count: it does not have all of its parts yet,
// and may become a part itself.
Ref ModuleRegistry::OwnerInFrames(PyObject* module) const {
  constexpr size_t kMostCalls = 64;
  std::vector<PythonCall> calls = CallsOfThread(python_, kMostCalls);
  std::vector<PyObject*> in_the_making;
  for (const PythonCall& call : calls) {
    if (call.first && call.code.Attribute("co_name").Text() == "__init__") in_the_making.push_back(call.first.get());
  }
  PyObject* checked = nullptr;  // several methods of one object may run inside of each other
  Ref owner;
  for (PythonCall& call : calls) {
    PyObject* self = call.first.get();
    if (self == nullptr || self == module || self == checked || !call.first.IsInstance(module_class_.get())) continue;
    if (std::find(in_the_making.begin(), in_the_making.end(), self) != in_the_making.end()) continue;
    Ref names = call.code.Attribute("co_varnames");
    if (!names || Ref::Borrow(python_, python_.PyTuple_GetItem(names.get(), 0)).Text() != "self") continue;
    checked = self;
    ModuleReader::Seen seen;
    if (IsBelow(module, self, seen)) owner = std::move(call.first);
  }
  return owner;
}

// Handles a module that is called by a method of the module that it is part of, while that module itself is not
// called: a LightningModule's training_step calls self.encoder, and the LightningModule itself is never called.
uint32_t ModuleRegistry::OwnedLayer(PyObject* module) {
  const Ref owner = OwnerInFrames(module);
  if (!owner) return 0;
  QuietTorch quiet;
  if (const Entry* known = modules_.Find(owner.get())) {
    const LayerInfo info = layers_[known->layer];
    return LayerBelow(owner.get(), info.model, info.path, 0, module);
  }
  NewRoot(owner.get());
  return LayerOf(module);
}

// nn.DataParallel makes new objects for every call: copies of the modules' __dict__ with children and parameters
// exchanged. What was not exchanged, such as the dict of forward hooks, is still the original's, and names it.
uint32_t ModuleRegistry::ReplicaLayer(PyObject* module) {
  if (!reader_.Own(module, "_is_replica").IsTrue()) return 0;
  Ref hooks = reader_.Own(module, "_forward_hooks");
  auto original = by_hooks_.find(hooks.get());
  return hooks && original != by_hooks_.end() ? LayerOf(original->second) : 0;
}

// Handles a module that was registered in a known model after the model was walked.
uint32_t ModuleRegistry::LateLayer(PyObject* module, const ModuleFrame* enclosing) {
  QuietTorch quiet;
  for (const ModuleFrame* frame = Believed(enclosing); frame != nullptr; frame = Believed(frame->enclosing)) {
    const Entry* entry = modules_.Find(frame->module);
    if (entry == nullptr) continue;
    const LayerInfo info = layers_[entry->layer];
    const uint32_t layer = LayerBelow(frame->module, info.model, info.path, 0, module);
    if (layer != 0) return layer;
  }
  return 0;
}

// Handles a module that is in no `_modules` of the running model: "?Linear" under the module that calls it.
uint32_t ModuleRegistry::UnregisteredLayer(PyObject* module, const ModuleFrame* enclosing) {
  const uint32_t parent = CurrentLayer().layer;
  auto found = layers_.find(parent);
  if (found == layers_.end()) return 0;
  const LayerInfo info = found->second;
  Ref inner = reader_.Innermost(module);
  const std::string name = "?" + reader_.ClassName(inner.get());
  const std::string path = info.path.empty() ? name : info.path + "." + name;
  if (models_[info.model].layers.count(path) == 0) {
    // It is the first of its kind here, and may only have been added late.
    if (const uint32_t late = LateLayer(module, enclosing); late != 0) return late;
  }
  QuietTorch quiet;
  const uint32_t layer = LayerBelow(module, info.model, path, parent, module);
  return layer != 0 ? layer : parent;
}

// Handles a child that is in `_modules` of a module being called, found by identity.
uint32_t ModuleRegistry::ChildLayer(PyObject* module, const ModuleFrame* enclosing) {
  const ModuleFrame* frame = Believed(enclosing);
  if (frame == nullptr) return 0;
  const Entry* parent = modules_.Find(frame->module);
  if (parent == nullptr) return 0;
  const LayerInfo info = layers_[parent->layer];
  const uint32_t parent_layer = parent->layer;
  Ref dict = reader_.DictAttribute(frame->module, "_modules");
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; dict && python_.PyDict_Next(dict.get(), &position, &key, &value) != 0;) {
    if (value != module) continue;
    const std::string name = Ref::Borrow(python_, key).Text();
    QuietTorch quiet;
    return LayerBelow(module, info.model, info.path.empty() ? name : info.path + "." + name, parent_layer, module);
  }
  return 0;
}

const ModuleRegistry::Entry* ModuleRegistry::Adopt(PyObject* module, const ModuleFrame* enclosing) {
  if (ChildLayer(module, enclosing) == 0) LateLayer(module, enclosing);
  Entry* entry = modules_.Find(module);
  if (entry != nullptr) entry->lone_root = false;
  return entry;
}

// torch.fx traces what calls the module: such a call computes nothing, and the modules around it are not called, so
// the called one would be taken for a model.
bool ModuleRegistry::IsTracedByFx(const CallArguments& arguments) const {
  Ref proxy = ImportedModule(python_, "torch.fx.proxy").Attribute("Proxy");
  if (!proxy) return false;
  const std::vector<PyObject*> values = Values(python_, arguments);
  return std::any_of(values.begin(), values.end(),
                     [&](PyObject* value) { return Ref::Borrow(python_, value).IsInstance(proxy.get()); });
}

uint32_t ModuleRegistry::FindLayer(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing) {
  if (TypeSlotsLost()) RepairTypeSlots();
  if (const uint32_t layer = ReplicaLayer(module); layer != 0) return layer;
  if (IsTracedByFx(arguments)) return 0;
  if (enclosing == nullptr) {
    const uint32_t owned = OwnedLayer(module);
    return owned != 0 ? owned : NewRoot(module);
  }
  if (const uint32_t layer = ChildLayer(module, enclosing); layer != 0) return layer;
  const uint32_t layer = UnregisteredLayer(module, enclosing);
  return layer != 0 ? layer : NewRoot(module);
}

// --- What is known of a layer.

bool ModuleRegistry::HasParameters(uint32_t layer, PyObject* module) {
  const auto found = layers_.find(layer);
  if (found == layers_.end()) return false;
  if (found->second.path.empty()) return models_[found->second.model].has_parameters;
  if (!found->second.has_parameters) {
    ParameterCount count;
    ModuleReader::Seen modules, parameters;
    reader_.CountTree(module, modules, parameters, count);
    // Reading may have run Python code that called this registry again, so the entry is looked up anew.
    layers_[layer].has_parameters = count.any;
    return count.any;
  }
  return *found->second.has_parameters;
}

bool ModuleRegistry::IsOwned(uint32_t layer, PyObject* module) {
  const uint32_t known = OptimizersKnown();
  const auto found = layers_.find(layer);
  if (found == layers_.end() || found->second.optimizers_known == known) {
    return found != layers_.end() && found->second.owned;
  }
  ParameterCount count;
  ModuleReader::Seen modules, parameters;
  reader_.CountTree(module, modules, parameters, count);
  // Reading may have run Python code that called this registry again, so the entry is looked up anew.
  LayerInfo& info = layers_[layer];
  info.optimizers_known = known;
  info.owned = std::any_of(parameters.begin(), parameters.end(), OptimizerOwns);
  return info.owned;
}

std::vector<ParameterLayer> ModuleRegistry::ParameterLayers() {
  const QuietTorch quiet;
  // Reading may run Python code that calls this registry again, so the modules are listed first.
  std::vector<std::pair<Ref, uint32_t>> modules;
  for (const auto& [weakref, module] : by_weakref_) {
    if (const Entry* entry = modules_.Find(module)) modules.emplace_back(Ref::Borrow(python_, module), entry->layer);
  }
  std::vector<ParameterLayer> found;
  for (const auto& [module, layer] : modules) {
    for (const uintptr_t parameter : reader_.OwnParameters(module.get())) found.push_back({parameter, layer});
  }
  return found;
}

const ModuleRegistry::ModelInfo* ModuleRegistry::ModelOf(uint32_t layer) const {
  const auto found = layers_.find(layer);
  return found != layers_.end() ? &models_[found->second.model] : nullptr;
}

uint32_t ModuleRegistry::RootOf(const ModelInfo& model) {
  const auto root = model.layers.find("");
  return root != model.layers.end() ? root->second : 0;
}

bool ModuleRegistry::RootIsInEvalMode(uint32_t layer) const {
  const ModelInfo* model = ModelOf(layer);
  return model != nullptr && model->root != nullptr && !IsTraining(model->root);
}

bool ModuleRegistry::IsSequenceFirst(uint32_t layer) const {
  const ModelInfo* model = ModelOf(layer);
  return model != nullptr && model->sequence_first;
}

uint32_t ModuleRegistry::RootOf(uint32_t layer) const {
  const ModelInfo* model = ModelOf(layer);
  return model != nullptr ? RootOf(*model) : 0;
}

bool ModuleRegistry::TakeShapeAttempt(uint32_t layer) {
  const auto found = layers_.find(layer);
  if (found == layers_.end() || found->second.shape_attempts == 0) return false;
  --found->second.shape_attempts;
  return true;
}

void ModuleRegistry::EndShapeAttempt(const PyObject* module, uint32_t layer, bool found) {
  const auto info = layers_.find(layer);
  if (info == layers_.end()) return;
  if (found) info->second.shape_attempts = 0;
  if (info->second.shape_attempts != 0) return;
  if (Entry* entry = modules_.Find(module)) entry->wants_shapes = false;
}

}  // namespace rfinject
