// File: module_registry.h
//
// ModuleRegistry knows which layer an nn.Module object is. A name belongs to the object for as long as it lives; a
// weak reference tells when it ends. A root (a module that is called while no other runs on the thread) is walked at
// its first call, as named_modules() would; what is added later is found at its own first call.
//
// Everything here is called with the GIL held, which is the registry's lock. A function that may run Python code says
// so, because that code may call the registry again: no entry is held across such a call.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULE_REGISTRY_H_
#define RFINJECT_INJECTOR_PYTHON_MODULE_REGISTRY_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/recorder.h"
#include "injector/python/call_frame.h"
#include "injector/python/module_reader.h"
#include "injector/python/parameter_layers.h"
#include "injector/python/pointer_table.h"
#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {

class ModuleRegistry {
 public:
  struct Entry {
    uint32_t layer = 0;
    bool wants_shapes = false;
    bool lone_root = false;  // was first seen as a root, and not inside another module since
  };

  // `on_death` is what Python calls with the weak reference of a module that is gone; it must hand that to
  // OnDeath. The object is never destroyed, since Python may call for as long as the process lives.
  ModuleRegistry(const PythonApi& python, Recorder& recorder, PyCFunction on_death);
  // False when the constructor could not make the function that Python is to call; no other function may be called
  // then.
  bool ready() const noexcept { return static_cast<bool>(weakref_callback_); }

  // The module's entry, or null. Allocates nothing and runs no Python code.
  const Entry* Find(const PyObject* module) noexcept { return modules_.Find(module); }

  // The layer of a module that Find does not know; 0 when it has none. `enclosing` lists the modules that are being
  // called around it. Runs Python code.
  uint32_t FindLayer(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing);

  // Called when a module that was once called alone (Entry::lone_root) is called by another one, and may be a part of
  // that one's model. Returns its entry as it is then. Runs Python code.
  const Entry* Adopt(PyObject* module, const ModuleFrame* enclosing);

  // Whether `module`, which is layer `layer`, or a module below it has parameters. Runs Python code.
  bool HasParameters(uint32_t layer, PyObject* module);
  // Whether an optimizer that has stepped has a parameter of `module`, which is layer `layer`, or of a module below
  // it. Runs Python code.
  bool IsOwned(uint32_t layer, PyObject* module);
  // Whether the root of the model that `layer` belongs to is in eval mode; false where it is gone.
  bool RootIsInEvalMode(uint32_t layer) const;
  // Whether the model that `layer` belongs to has a layer of torch's whose inputs begin with the sequence and not
  // with the batch.
  bool IsSequenceFirst(uint32_t layer) const;
  // The layer of the root of the model that `layer` belongs to; 0 when it has none.
  uint32_t RootOf(uint32_t layer) const;
  // module.training; true where it cannot be read without running code of the program's (TorchScript).
  bool IsTraining(PyObject* module) const {
    const Ref own = reader_.Own(module, "training");
    return !own || own.IsTrue();
  }

  // The parameters of all modules that are known.
  std::vector<ParameterLayer> ParameterLayers();

  // The shapes of a layer are looked for a few times. Returns whether this call shall be one of these.
  bool TakeShapeAttempt(uint32_t layer);
  // Tells that a call of `module`, which is layer `layer`, is over, and whether the shapes were found in it: when
  // they were, or no attempt is left, the module's calls are not looked at any more.
  void EndShapeAttempt(const PyObject* module, uint32_t layer, bool found);

  // Called by `on_death`. Allocates nothing.
  void OnDeath(const PyObject* weakref) noexcept;

 private:
  // How often the shapes are looked for, where a call's tensors cannot be read (symbolic shapes, tensors inside
  // objects).
  static constexpr uint8_t kShapeAttempts = 3;
  // The most models that are told apart. Further ones share the last one's name, so that the trace of a program that
  // keeps making models stays small.
  static constexpr size_t kMaxModels = 1024;
  static constexpr uint32_t kNoModel = ~uint32_t{0};

  struct LayerInfo {
    uint32_t model = 0;  // index into models_
    std::string path;
    uint8_t shape_attempts = kShapeAttempts;  // attempts that are left
    std::optional<bool> has_parameters;       // the layer or one below it; empty until it is asked for
    bool owned = false;                       // an optimizer has a parameter of it
    uint32_t optimizers_known = 0;            // OptimizersKnown() when that was looked at
  };
  struct ModelInfo {
    uint32_t id = 0;  // Recorder::DefineModel
    std::string class_name;
    uint64_t parameters = 0;
    bool has_parameters = false;
    bool sequence_first = false;                       // IsSequenceFirst
    PyObject* root = nullptr;                          // not owned; null once the module is gone
    std::unordered_map<std::string, uint32_t> layers;  // path to Recorder::DefineLayer's id
  };
  // What is kept of a module in the table for the time when it dies or is replicated.
  struct Life {
    PyObject* weakref = nullptr;  // owned
    const PyObject* hooks = nullptr;
  };
  // One pass through a module and everything below it.
  struct Walk {
    uint32_t model;
    uint32_t absorbed;  // a model whose modules turn out to be part of this one; or kNoModel
    ModuleReader::Seen modules;
    ModuleReader::Seen parameters;
  };

  void Forget(const PyObject* module);
  void Remember(PyObject* module, uint32_t layer);
  uint32_t DefineLayer(uint32_t model, const std::string& path, PyObject* module, uint32_t parent,
                       ModuleReader::Seen& parameters);
  void NameTree(Walk& walk, PyObject* module, const std::string& path, uint32_t parent);
  // The layer of a module that is known; 0 where it is not.
  uint32_t LayerOf(const PyObject* module) noexcept;
  // Names `top` and everything below it; returns the layer that `module` then has.
  uint32_t LayerBelow(PyObject* top, uint32_t model, const std::string& path, uint32_t parent,
                      const PyObject* module);
  const ModelInfo* ModelOf(uint32_t layer) const;
  static uint32_t RootOf(const ModelInfo& model);
  uint32_t NewRoot(PyObject* module);
  bool IsBelow(PyObject* module, PyObject* owner, ModuleReader::Seen& seen) const;
  Ref OwnerInFrames(PyObject* module) const;
  uint32_t OwnedLayer(PyObject* module);
  uint32_t ReplicaLayer(PyObject* module);
  uint32_t LateLayer(PyObject* module, const ModuleFrame* enclosing);
  uint32_t UnregisteredLayer(PyObject* module, const ModuleFrame* enclosing);
  uint32_t ChildLayer(PyObject* module, const ModuleFrame* enclosing);
  bool IsTracedByFx(const CallArguments& arguments) const;

  PointerTable<Entry> modules_;
  const PythonApi& python_;
  Recorder& recorder_;
  ModuleReader reader_;
  Ref module_class_;          // torch.nn.Module
  PyMethodDef death_method_;  // Python keeps its address
  Ref weakref_callback_;
  std::unordered_map<const PyObject*, Life> lives_;
  std::unordered_map<const PyObject*, PyObject*> by_weakref_;
  std::unordered_map<const PyObject*, PyObject*> by_hooks_;  // a module by its `_forward_hooks` object
  std::unordered_map<uint32_t, LayerInfo> layers_;
  std::deque<ModelInfo> models_;
  std::unordered_map<std::string, uint32_t> class_counts_;  // models so far with this class name
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULE_REGISTRY_H_
