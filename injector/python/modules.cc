#include "injector/python/modules.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collector/settings.h"
#include "injector/attach.h"
#include "injector/layer_stack.h"
#include "injector/python/pointer_table.h"
#include "injector/python/ref.h"
#include "injector/python/torch_state.h"
#include "injector/python/type_slots.h"
#include "injector/python/user_scopes.h"
#include "injector/torch/binding.h"

namespace rfinject {
namespace {

// A first call whose tensors cannot be read (symbolic shapes, tensors inside objects) is tried again this often.
constexpr uint8_t kShapeAttempts = 3;
// A program that makes models without end shares the last one's name: the trace must stay small.
constexpr size_t kMaxModels = 1024;

struct ModuleEntry {
  uint32_t layer = 0;
  bool wants_shapes = false;
  bool lone_root = false;  // was first seen as a root, and not inside another module since
};

struct LayerInfo {
  uint32_t model = 0;  // index into State::models
  std::string path;
  uint8_t shape_attempts = kShapeAttempts;
};

struct ModelInfo {
  uint32_t id = 0;  // Recorder::DefineModel
  std::string class_name;
  uint64_t parameters = 0;
  bool has_parameters = false;
  const PyObject* root = nullptr;                    // the address only; null once the module is gone
  std::unordered_map<std::string, uint32_t> layers;  // path to Recorder::DefineLayer's id
};

// Of a module in the table; needed when it dies or is replicated.
struct ModuleLife {
  PyObject* weakref = nullptr;  // owned
  const PyObject* hooks = nullptr;
};

struct State {
  PointerTable<ModuleEntry> modules;
  std::unordered_map<const PyObject*, ModuleLife> lives;
  std::unordered_map<const PyObject*, PyObject*> by_weakref;
  std::unordered_map<const PyObject*, PyObject*> by_hooks;  // a module by its `_forward_hooks` object
  std::unordered_map<uint32_t, LayerInfo> layers;
  std::deque<ModelInfo> models;
  std::unordered_map<std::string, uint32_t> class_counts;  // models so far with this class name
  Ref weakref_callback;
  Ref tensor_class;
  PolicyFacts policy;  // as last read
};

const PythonApi* g_python = nullptr;
Recorder* g_recorder = nullptr;
Source* g_source = nullptr;
State* g_state = nullptr;
ActivationFunction g_activation = nullptr;

std::atomic<uint64_t> g_samples{0};
std::atomic<bool> g_optimizer_seen{false};
bool g_active = false;                    // the recorder was activated by this process
bool g_activity_decided = false;          // false after a fork
std::atomic<uint32_t> g_primary_root{0};  // its calls end the steps while no optimizer does
bool g_batch_known = false;
bool g_optimizer_exists = false;
bool g_policy_known = false;

// --- Reading modules.

// What stands in the object's own __dict__: getattr could run code of the user's (a __getattr__ or a property).
Ref Own(PyObject* module, const char* name) {
  Ref dict = Ref::Borrow(*g_python, module).Attribute("__dict__");
  if (!dict.IsInstance(g_python->PyDict_Type)) return {};
  return Ref::Borrow(*g_python, g_python->PyDict_GetItemString(dict.get(), name));
}

// The same, or empty if it is not a dict (TorchScript's modules have look-alikes).
Ref DictAttribute(PyObject* module, const char* name) {
  Ref dict = Own(module, name);
  return dict.IsInstance(g_python->PyDict_Type) ? std::move(dict) : Ref();
}

// Key and value of each child that is not None, in the order of registration. Owned, since what is done with the
// children may run Python code.
std::vector<std::pair<std::string, Ref>> Children(PyObject* module) {
  std::vector<std::pair<std::string, Ref>> children;
  Ref dict = DictAttribute(module, "_modules");
  if (!dict) return children;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; g_python->PyDict_Next(dict.get(), &position, &key, &value) != 0;) {
    if (value == g_python->_Py_NoneStruct) continue;
    children.emplace_back(std::string(), Ref::Borrow(*g_python, value));
    const char* name = g_python->PyUnicode_AsUTF8(key);
    if (name != nullptr) children.back().first = name;
    DropError(*g_python);
  }
  return children;
}

std::string NameOf(const Ref& type) { return type.Attribute("__name__").Text(); }

// The class as the user wrote it: torch swaps the class of a module for a generated subclass where it parametrizes
// (ParametrizedConv2d) or shards (FSDPResNet) it.
std::string ClassName(PyObject* module) {
  Ref type = Ref::Borrow(*g_python, module).Type();
  std::string name = NameOf(type);
  for (std::string_view prefix : {"Parametrized", "FSDP"}) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    Ref bases = type.Attribute("__bases__");
    for (Py_ssize_t i = 0; bases && i < g_python->PyTuple_Size(bases.get()); ++i) {
      std::string base = NameOf(Ref::Borrow(*g_python, g_python->PyTuple_GetItem(bases.get(), i)));
      if (name.compare(prefix.size(), std::string::npos, base) == 0) return base;
    }
  }
  return name;
}

bool IsDataParallelWrapper(PyObject* module) {
  Ref mro = Ref::Borrow(*g_python, module).Type().Attribute("__mro__");
  for (Py_ssize_t i = 0; mro && i < g_python->PyTuple_Size(mro.get()); ++i) {
    const std::string name = NameOf(Ref::Borrow(*g_python, g_python->PyTuple_GetItem(mro.get(), i)));
    for (std::string_view wrapper : {"DataParallel", "DistributedDataParallel", "DistributedDataParallelCPU",
                                     "FullyShardedDataParallel", "AveragedModel"}) {
      if (name == wrapper) return true;
    }
  }
  return false;
}

// The module that `module` only wraps, or empty. These names are the wrappers' own (torch.compile,
// checkpoint_wrapper, FSDP); "module" is also a name that users give.
Ref Wrapped(PyObject* module) {
  auto children = Children(module);
  for (auto& [name, child] : children) {
    if (name == "_orig_mod" || name == "_checkpoint_wrapped_module" || name == "_fsdp_wrapped_module") {
      return std::move(child);
    }
    if (name == "module" && IsDataParallelWrapper(module)) return std::move(child);
  }
  return {};
}

Ref Innermost(PyObject* module) {
  Ref inner = Ref::Borrow(*g_python, module);
  constexpr int kMaxWrappers = 16;
  for (int i = 0; i < kMaxWrappers; ++i) {
    Ref next = Wrapped(inner.get());
    if (!next) break;
    inner = std::move(next);
  }
  return inner;
}

struct ParameterCount {
  uint64_t elements = 0;
  uint64_t bytes = 0;
  uint64_t trainable = 0;
  bool any = false;  // also those whose size is not known yet (lazy modules)
};
using Seen = std::unordered_set<const PyObject*>;

void CountParameter(const Ref& parameter, Seen& seen, ParameterCount& count) {
  if (!parameter || parameter.IsNone() || !seen.insert(parameter.get()).second) return;
  count.any = true;
  const long long elements = parameter.Attribute("numel").Call().Integer(0);
  if (elements <= 0) return;
  const long long size = parameter.Attribute("element_size").Call().Integer(0);
  count.elements += static_cast<uint64_t>(elements);
  count.bytes += static_cast<uint64_t>(elements) * static_cast<uint64_t>(size);
  if (parameter.Attribute("requires_grad").IsTrue()) count.trainable += static_cast<uint64_t>(elements);
}

// The module's own parameters, each once per `seen`.
void CountOwnParameters(PyObject* module, Seen& seen, ParameterCount& count) {
  if (Ref own = DictAttribute(module, "_parameters")) {
    std::vector<Ref> parameters;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; g_python->PyDict_Next(own.get(), &position, &key, &value) != 0;) {
      parameters.push_back(Ref::Borrow(*g_python, value));
    }
    for (const Ref& parameter : parameters) CountParameter(parameter, seen, count);
    return;
  }
  // TorchScript: its children are never called from Python, so that all parameters count as the outermost's own.
  Ref generator = Ref::Borrow(*g_python, module).Attribute("parameters").Call();
  if (!generator) return;
  Ref iterator(*g_python, g_python->PyObject_GetIter(generator.get()));
  while (iterator) {
    Ref parameter(*g_python, g_python->PyIter_Next(iterator.get()));
    if (!parameter) break;
    CountParameter(parameter, seen, count);
  }
  DropError(*g_python);
}

void CountTree(PyObject* module, Seen& modules, Seen& parameters, ParameterCount& count) {
  if (!modules.insert(module).second) return;
  CountOwnParameters(module, parameters, count);
  for (const auto& [name, child] : Children(module)) CountTree(child.get(), modules, parameters, count);
}

// --- The table.

PyObject* OnModuleDeath(PyObject*, PyObject* weakref);

void Forget(const PyObject* module) {
  State& s = *g_state;
  auto life = s.lives.find(module);
  if (life == s.lives.end()) return;
  if (const ModuleEntry* entry = s.modules.Find(module)) {
    auto layer = s.layers.find(entry->layer);
    if (layer != s.layers.end()) {
      ModelInfo& model = s.models[layer->second.model];
      if (model.root == module) model.root = nullptr;
    }
  }
  s.modules.Erase(module);
  auto hooks = s.by_hooks.find(life->second.hooks);
  if (hooks != s.by_hooks.end() && hooks->second == module) s.by_hooks.erase(hooks);
  PyObject* weakref = life->second.weakref;
  s.by_weakref.erase(weakref);
  s.lives.erase(life);
  g_python->Py_DecRef(weakref);
}

PyObject* OnModuleDeath(PyObject*, PyObject* weakref) {
  try {
    auto found = g_state->by_weakref.find(weakref);
    if (found != g_state->by_weakref.end()) Forget(found->second);
  } catch (...) {
    // Nothing above allocates; a hash table's find cannot throw with these keys.
  }
  auto* none = static_cast<PyObject*>(g_python->_Py_NoneStruct);
  g_python->Py_IncRef(none);
  return none;
}

PyMethodDef g_death_method = {"rfinject_forget", &OnModuleDeath, kMethO, nullptr};

// Remembers the module's layer for as long as the module lives.
void Remember(PyObject* module, uint32_t layer) {
  State& s = *g_state;
  const ModuleEntry entry{layer, s.layers[layer].shape_attempts > 0, false};
  if (ModuleEntry* known = s.modules.Find(module)) {
    *known = entry;
    return;
  }
  PyObject* weakref = g_python->PyWeakref_NewRef(module, s.weakref_callback.get());
  if (weakref == nullptr) {  // no __weakref__ slot: the address may be reused unseen, so it is not kept
    DropError(*g_python);
    return;
  }
  Ref hooks = Own(module, "_forward_hooks");
  s.lives[module] = ModuleLife{weakref, hooks.get()};
  s.by_weakref[weakref] = module;
  if (hooks) s.by_hooks.emplace(hooks.get(), module);
  s.modules.Insert(module, entry);
}

uint32_t DefineLayer(uint32_t model, const std::string& path, PyObject* module, uint32_t parent, Seen& parameters) {
  State& s = *g_state;
  auto known = s.models[model].layers.find(path);
  if (known != s.models[model].layers.end()) return known->second;
  LayerDefinition definition;
  definition.model = s.models[model].id;
  definition.parent = parent;
  definition.path = path;
  definition.class_name = ClassName(module);
  ParameterCount own;
  CountOwnParameters(module, parameters, own);
  definition.parameters = own.elements;
  definition.parameter_bytes = own.bytes;
  definition.training = Own(module, "training").IsTrue();
  const uint32_t layer = g_recorder->DefineLayer(definition);
  if (layer == 0) return 0;
  s.models[model].layers.emplace(path, layer);
  s.layers[layer] = LayerInfo{model, path, kShapeAttempts};
  return layer;
}

constexpr uint32_t kNoModel = ~uint32_t{0};

struct Walk {
  uint32_t model;
  uint32_t absorbed;  // a model whose modules turn out to be part of this one; or kNoModel
  Seen modules;
  Seen parameters;
};

// Gives `module` and everything below it layers. What has one keeps it, unless it was called as a root before and
// turns out to be part of a larger model.
void NameTree(Walk& walk, PyObject* module, const std::string& path, uint32_t parent) {
  if (!walk.modules.insert(module).second) return;
  State& s = *g_state;
  uint32_t layer = 0;
  std::string own_path = path;
  const uint32_t absorbed = walk.absorbed;
  if (const ModuleEntry* entry = s.modules.Find(module)) {
    const LayerInfo& info = s.layers[entry->layer];
    if (info.model == walk.model) {
      layer = entry->layer;
      own_path = info.path;
    } else if (info.model != walk.absorbed) {
      if (s.models[info.model].root != module) return;  // part of another model, whose names it keeps
      walk.absorbed = info.model;
    }
  }
  // A wrapper shares the layer of what it wraps.
  Ref inner = Innermost(module);
  if (layer == 0) {
    layer = DefineLayer(walk.model, own_path, inner.get(), parent, walk.parameters);
    if (layer == 0) return;
    Remember(module, layer);
  }
  if (inner.get() != module) {
    walk.modules.insert(inner.get());
    for (Ref wrapped = Wrapped(module); wrapped; wrapped = Wrapped(wrapped.get())) {
      Remember(wrapped.get(), layer);
      if (wrapped.get() == inner.get()) break;
    }
  }
  for (const auto& [name, child] : Children(inner.get())) {
    NameTree(walk, child.get(), own_path.empty() ? name : own_path + "." + name, layer);
  }
  walk.absorbed = absorbed;
}

// What a module is called with, borrowed.
std::vector<PyObject*> Values(const CallArguments& arguments) {
  std::vector<PyObject*> values(arguments.array, arguments.array + arguments.count);
  for (Py_ssize_t i = 0; arguments.tuple != nullptr && i < g_python->PyTuple_Size(arguments.tuple); ++i) {
    values.push_back(g_python->PyTuple_GetItem(arguments.tuple, i));
  }
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0;
       arguments.dict != nullptr && g_python->PyDict_Next(arguments.dict, &position, &key, &value) != 0;) {
    values.push_back(value);
  }
  return values;
}

// --- Finding the layer of a module that is not in the table.

uint32_t NewRoot(PyObject* module) {
  State& s = *g_state;
  QuietTorch quiet;
  Ref inner = Innermost(module);
  if (inner.get() != module) {
    if (const ModuleEntry* entry = s.modules.Find(inner.get())) {
      const uint32_t layer = entry->layer;
      Remember(module, layer);
      return layer;
    }
  }
  const std::string class_name = ClassName(inner.get());
  ParameterCount count;
  {
    Seen modules, parameters;
    CountTree(inner.get(), modules, parameters, count);
  }
  // A loss or a transform that is made anew for each call, and a model made again in place of one that is gone, are
  // the model of before.
  uint32_t model = kNoModel;
  for (uint32_t i = 0; i < s.models.size() && model == kNoModel; ++i) {
    const ModelInfo& candidate = s.models[i];
    if (candidate.class_name != class_name || candidate.has_parameters != count.any) continue;
    const bool same = !count.any || (candidate.root == nullptr && candidate.parameters == count.elements);
    if (same || s.models.size() >= kMaxModels) model = i;
  }
  if (model == kNoModel && s.models.size() >= kMaxModels) return 0;
  if (model == kNoModel) {
    ModelDefinition definition;
    const uint32_t number = ++s.class_counts[class_name];
    definition.class_name = number == 1 ? class_name : class_name + "#" + std::to_string(number);
    definition.parameters = count.elements;
    definition.parameter_bytes = count.bytes;
    definition.trainable_parameters = count.trainable;
    const uint32_t id = g_recorder->DefineModel(definition);
    if (id == 0) return 0;
    ModelInfo info;
    info.id = id;
    info.class_name = class_name;
    info.parameters = count.elements;
    info.has_parameters = count.any;
    model = static_cast<uint32_t>(s.models.size());
    s.models.push_back(std::move(info));
  }
  s.models[model].root = inner.get();
  Walk walk{model, kNoModel, {}, {}};
  NameTree(walk, module, "", 0);
  for (PyObject* one : {module, inner.get()}) {
    if (ModuleEntry* entry = s.modules.Find(one)) entry->lone_root = true;
  }
  auto root = s.models[model].layers.find("");
  return root != s.models[model].layers.end() ? root->second : 0;
}

const ModuleFrame* Believed(const ModuleFrame* frame) {
  return frame != nullptr && frame->self == frame ? frame : nullptr;
}

// nn.DataParallel makes new objects for every call: copies of the modules' __dict__ with children and parameters
// exchanged. What was not exchanged, such as the dict of forward hooks, is still the original's, and names it.
uint32_t ReplicaLayer(PyObject* module) {
  if (!Own(module, "_is_replica").IsTrue()) return 0;
  Ref hooks = Own(module, "_forward_hooks");
  auto original = g_state->by_hooks.find(hooks.get());
  if (!hooks || original == g_state->by_hooks.end()) return 0;
  const ModuleEntry* entry = g_state->modules.Find(original->second);
  return entry != nullptr ? entry->layer : 0;
}

// A module that was registered in a known model after the model was walked.
uint32_t LateLayer(PyObject* module, const ModuleFrame* enclosing) {
  State& s = *g_state;
  QuietTorch quiet;
  for (const ModuleFrame* frame = Believed(enclosing); frame != nullptr; frame = Believed(frame->enclosing)) {
    const ModuleEntry* entry = s.modules.Find(frame->module);
    if (entry == nullptr) continue;
    const LayerInfo info = s.layers[entry->layer];
    Walk walk{info.model, kNoModel, {}, {}};
    NameTree(walk, frame->module, info.path, 0);
    if (const ModuleEntry* found = s.modules.Find(module)) return found->layer;
  }
  return 0;
}

// A module that is in no `_modules` of the running model: "?Linear" under the module that calls it.
uint32_t UnregisteredLayer(PyObject* module, const ModuleFrame* enclosing) {
  State& s = *g_state;
  const uint32_t parent = CurrentLayer().layer;
  auto found = s.layers.find(parent);
  if (found == s.layers.end()) return 0;
  const LayerInfo info = found->second;
  Ref inner = Innermost(module);
  const std::string name = "?" + ClassName(inner.get());
  const std::string path = info.path.empty() ? name : info.path + "." + name;
  if (s.models[info.model].layers.count(path) == 0) {
    // The first of its kind here: perhaps it was only added late.
    if (const uint32_t late = LateLayer(module, enclosing); late != 0) return late;
  }
  QuietTorch quiet;
  Walk walk{info.model, kNoModel, {}, {}};
  NameTree(walk, module, path, parent);
  const ModuleEntry* entry = s.modules.Find(module);
  return entry != nullptr ? entry->layer : parent;
}

// A child that stands in `_modules` of a module being called, found by identity.
uint32_t ChildLayer(PyObject* module, const ModuleFrame* enclosing) {
  State& s = *g_state;
  const ModuleFrame* frame = Believed(enclosing);
  if (frame == nullptr) return 0;
  const ModuleEntry* parent = s.modules.Find(frame->module);
  if (parent == nullptr) return 0;
  const LayerInfo info = s.layers[parent->layer];
  const uint32_t parent_layer = parent->layer;
  Ref dict = DictAttribute(frame->module, "_modules");
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; dict && g_python->PyDict_Next(dict.get(), &position, &key, &value) != 0;) {
    if (value != module) continue;
    const std::string name = Ref::Borrow(*g_python, key).Text();
    QuietTorch quiet;
    Walk walk{info.model, kNoModel, {}, {}};
    NameTree(walk, module, info.path.empty() ? name : info.path + "." + name, parent_layer);
    const ModuleEntry* entry = s.modules.Find(module);
    return entry != nullptr ? entry->layer : 0;
  }
  return 0;
}

// A module that was once called alone is called by another one: perhaps it is a part of that one's model.
const ModuleEntry* Adopt(PyObject* module, const ModuleFrame* enclosing) {
  if (ChildLayer(module, enclosing) == 0) LateLayer(module, enclosing);
  ModuleEntry* entry = g_state->modules.Find(module);
  if (entry != nullptr) entry->lone_root = false;
  return entry;
}

// torch.fx traces what calls the module: it computes nothing, and the modules around it are not called themselves, so
// that what is called would pass for a model.
bool IsTracedByFx(const CallArguments& arguments) {
  Ref proxy = ImportedModule(*g_python, "torch.fx.proxy").Attribute("Proxy");
  if (!proxy) return false;
  const std::vector<PyObject*> values = Values(arguments);
  return std::any_of(values.begin(), values.end(),
                     [&](PyObject* value) { return Ref::Borrow(*g_python, value).IsInstance(proxy.get()); });
}

uint32_t FindLayer(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing) {
  if (TypeSlotsLost()) RepairTypeSlots();
  if (const uint32_t layer = ReplicaLayer(module); layer != 0) return layer;
  if (IsTracedByFx(arguments)) return 0;
  if (enclosing == nullptr) return NewRoot(module);
  if (const uint32_t layer = ChildLayer(module, enclosing); layer != 0) return layer;
  const uint32_t layer = UnregisteredLayer(module, enclosing);
  return layer != 0 ? layer : NewRoot(module);
}

// --- Tensors.

bool IsTensor(const Ref& object) { return object.IsInstance(g_state->tensor_class.get()); }

// The first tensor in a tensor, a tuple, a list or a dict of them, two levels deep.
Ref FirstTensor(PyObject* object, int depth) {
  Ref self = Ref::Borrow(*g_python, object);
  if (!self || self.IsNone()) return {};
  if (IsTensor(self)) return self;
  if (depth == 0) return {};
  if (self.IsInstance(g_python->PyTuple_Type)) {
    for (Py_ssize_t i = 0; i < g_python->PyTuple_Size(object); ++i) {
      if (Ref found = FirstTensor(g_python->PyTuple_GetItem(object, i), depth - 1)) return found;
    }
  } else if (self.IsInstance(g_python->PyList_Type)) {
    for (Py_ssize_t i = 0; i < g_python->PyList_Size(object); ++i) {
      if (Ref found = FirstTensor(g_python->PyList_GetItem(object, i), depth - 1)) return found;
    }
  } else if (self.IsInstance(g_python->PyDict_Type)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; g_python->PyDict_Next(object, &position, &key, &value) != 0;) {
      if (Ref found = FirstTensor(value, depth - 1)) return found;
    }
  }
  return {};
}

Ref FirstArgument(const CallArguments& arguments) {
  for (PyObject* value : Values(arguments)) {
    if (Ref found = FirstTensor(value, 1)) return found;
  }
  return {};
}

// Sizes of a tensor; false when one is not a plain number (a symbolic shape) or there is no shape to be had.
bool ReadShape(const Ref& tensor, std::vector<long long>& shape) {
  Ref size = tensor.Attribute("shape");
  if (!size.IsInstance(g_python->PyTuple_Type)) return false;
  const Py_ssize_t rank = g_python->PyTuple_Size(size.get());
  for (Py_ssize_t i = 0; i < rank; ++i) {
    const long long extent = Ref::Borrow(*g_python, g_python->PyTuple_GetItem(size.get(), i)).Integer(-1);
    if (extent < 0) return false;
    shape.push_back(extent);
  }
  return true;
}

// "f32[8,3,224,224]", or "" when it cannot be told.
std::string Describe(const Ref& tensor) {
  if (!tensor) return {};
  std::vector<long long> shape;
  if (!ReadShape(tensor, shape)) return {};
  std::string dtype = tensor.Attribute("dtype").Text();
  constexpr std::string_view kPrefix = "torch.";
  if (dtype.compare(0, kPrefix.size(), kPrefix) == 0) dtype.erase(0, kPrefix.size());
  for (const auto& [torch_name, name] : {std::pair<std::string_view, std::string_view>{"bfloat", "bf"},
                                         {"float", "f"},
                                         {"uint", "u"},
                                         {"int", "i"},
                                         {"complex", "c"}}) {
    if (dtype.compare(0, torch_name.size(), torch_name) != 0) continue;
    dtype.replace(0, torch_name.size(), name);
    break;
  }
  std::string text = dtype + "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// --- Root calls: activation, samples, steps, policy.

void UpdatePolicy() {
  PolicyFacts policy = ReadPolicy();
  if (g_policy_known && policy == g_state->policy) return;
  g_state->policy = policy;
  g_policy_known = true;
  RunFacts facts;
  facts.policy = policy;
  g_recorder->UpdateFacts(facts);
  if (g_source != nullptr) g_source->OnPolicy(policy);
}

// `first_call`: a root is about to be called; else an optimizer's step is the first that is seen of the training, and
// what led to it is part of it.
bool EnsureActive(bool first_call) {
  if (g_activity_decided) return g_active;
  g_activity_decided = true;
  g_active = !InDataLoaderWorker();
  if (!g_active) return false;
  if (first_call) g_recorder->BeginFirstStep();
  g_recorder->UpdateFacts(ReadVersions());
  g_recorder->Activate();
  if (g_activation != nullptr) g_activation();
  return true;
}

// The end of a step may wait for the GPU, and what it waits for may need the GIL. The caller holds no Python object
// and no place in our tables meanwhile.
void EndInferenceStep() {
  void* thread = g_python->PyEval_SaveThread();
  if (g_source != nullptr) g_source->OnStepEnd(g_recorder->CurrentStep());
  g_recorder->EndStep(TakeSamplesOfStep());
  g_python->PyEval_RestoreThread(thread);
  const Settings& settings = GetSettings();
  if (settings.kill && settings.steps > 0 && !g_recorder->InWindow() &&
      g_recorder->CurrentStep() >= settings.skip + settings.steps) {
    RequestPoliteExit();
  }
}

// A training loop with an optimizer may call the root several times a step (gradient accumulation): while gradients
// are recorded and an optimizer exists, its step is waited for.
bool OptimizerIsComing() {
  if (g_optimizer_seen.load(std::memory_order_relaxed)) return true;
  if (!GradEnabled()) return false;
  if (!g_optimizer_exists) g_optimizer_exists = OptimizerExists();
  return g_optimizer_exists;
}

void OnRootCall(uint32_t layer, const CallArguments& arguments) {
  State& s = *g_state;
  const auto found = s.layers.find(layer);
  if (found == s.layers.end() || !s.models[found->second.model].has_parameters) return;
  const bool is_model = found->second.path.empty();
  if (!EnsureActive(true) || InBackward()) return;
  InsistOnPoliteExit();
  RepairUserScopes();
  if (is_model) {
    if (g_primary_root == 0) {
      g_primary_root = layer;
    } else if (g_primary_root == layer && !OptimizerIsComing()) {
      EndInferenceStep();
    }
  }
  UpdatePolicy();
  if (!is_model || Tracing()) return;
  QuietTorch quiet;
  Ref tensor = FirstArgument(arguments);
  std::vector<long long> shape;
  if (!tensor || !ReadShape(tensor, shape) || shape.empty()) return;
  g_samples.fetch_add(static_cast<uint64_t>(shape[0]), std::memory_order_relaxed);
  if (!g_batch_known && layer == g_primary_root) {
    g_batch_known = true;
    RunFacts facts;
    facts.batch_size = static_cast<uint64_t>(shape[0]);
    g_recorder->UpdateFacts(facts);
  }
}

[[gnu::noinline]] ModuleCall EnterModuleSlowly(PyObject* module, const CallArguments& arguments,
                                               const ModuleFrame* enclosing) {
  ModuleCall call;
  try {
    const ModuleEntry* entry = g_state->modules.Find(module);
    bool replica = false;
    if (entry == nullptr) {
      call.layer = FindLayer(module, arguments, enclosing);
      entry = g_state->modules.Find(module);
      replica = entry == nullptr;  // layers of lasting modules are remembered
    } else {
      if (entry->lone_root && enclosing != nullptr) entry = Adopt(module, enclosing);
      call.layer = entry != nullptr ? entry->layer : 0;
    }
    if (entry != nullptr) call.wants_shapes = entry->wants_shapes;
    if (enclosing == nullptr && !replica && call.layer != 0) OnRootCall(call.layer, arguments);
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_exit, where the interpreter ends while a daemon thread runs
  } catch (...) {
    g_recorder->Disable("out of memory while a module was named");
  }
  DropError(*g_python);
  return call;
}

// On the main thread, GIL held.
int ActivateWithoutModules(void*) {
  try {
    if (EnsureActive(false)) UpdatePolicy();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    g_recorder->Disable("out of memory while the trace was opened");
  }
  DropError(*g_python);
  return 0;
}

}  // namespace

ModuleCall EnterModule(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing) {
  if (enclosing != nullptr) [[likely]] {
    const ModuleEntry* entry = g_state->modules.Find(module);
    if (entry != nullptr && !entry->lone_root) [[likely]] {
      return ModuleCall{entry->layer, entry->wants_shapes};
    }
  }
  return EnterModuleSlowly(module, arguments, enclosing);
}

void RecordShapes(const ModuleCall& call, PyObject* module, const CallArguments& arguments, PyObject* result) {
  try {
    State& s = *g_state;
    auto layer = s.layers.find(call.layer);
    if (layer == s.layers.end()) return;
    if (layer->second.shape_attempts > 0 && !Tracing()) {
      --layer->second.shape_attempts;
      QuietTorch quiet;
      const std::string input = Describe(FirstArgument(arguments));
      const std::string output = Describe(FirstTensor(result, 3));
      layer = s.layers.find(call.layer);
      if (!input.empty() || !output.empty()) {
        g_recorder->SetLayerShapes(call.layer, input, output);
        if (layer != s.layers.end()) layer->second.shape_attempts = 0;
      }
    }
    if (layer != s.layers.end() && layer->second.shape_attempts == 0) {
      if (ModuleEntry* entry = s.modules.Find(module)) entry->wants_shapes = false;
    }
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    g_recorder->Disable("out of memory while a layer's shapes were noted");
  }
  DropError(*g_python);
}

void EndLastInferenceStep() noexcept {
  if (g_primary_root.load(std::memory_order_relaxed) == 0 || g_optimizer_seen.load(std::memory_order_relaxed)) return;
  if (CurrentLayer().depth == 0) g_recorder->EndStep(TakeSamplesOfStep());  // else it is cut short
}

uint64_t TakeSamplesOfStep() noexcept { return g_samples.exchange(0, std::memory_order_relaxed); }

void NoteOptimizerStep() noexcept {
  if (g_optimizer_seen.exchange(true, std::memory_order_relaxed)) return;
  if (g_python == nullptr) {
    Recorder::Get().Activate();
  } else if (g_state != nullptr) {
    g_python->Py_AddPendingCall(&ActivateWithoutModules, nullptr);
  }
}

void SetActivationFunction(ActivationFunction function) noexcept { g_activation = function; }

bool InitModules(const PythonApi& python, Recorder& recorder, Source* source, const char** why) {
  g_python = &python;
  g_recorder = &recorder;
  g_source = source;
  auto* state = new State;
  state->weakref_callback = Ref(python, python.PyCFunction_NewEx(&g_death_method, nullptr, nullptr));
  state->tensor_class = ImportedModule(python, "torch").Attribute("Tensor");
  g_state = state;
  if (!state->weakref_callback || !state->tensor_class.IsInstance(python.PyType_Type)) {
    *why = "torch.Tensor could not be found";
    return false;
  }
  return true;
}

void ResetModulesAfterFork() noexcept {
  g_samples.store(0, std::memory_order_relaxed);
  g_optimizer_seen.store(false, std::memory_order_relaxed);
  g_active = false;
  g_activity_decided = false;
  g_primary_root = 0;
  g_batch_known = false;
  g_policy_known = false;
}

}  // namespace rfinject
