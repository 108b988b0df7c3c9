// File: modules.h
//
// The calls of nn.Modules: which layer each is, with which shapes, and what happens when a root module (one that is
// called while no other module runs on the thread) is entered. It is the interface of the parts that do it:
//
//   module_reader.h    reads module objects: children, class, wrappers, parameters
//   module_registry.h  which layer a module is, and the names of models and layers
//   tensor_reader.h    the shapes that a module is called with
//   module_steps.h     what a root's call means: activation, samples, steps, precision policy
//
// It also defines what training.h asks of this folder.
//
// The interpreter calls this on the program's threads, with the GIL held, unless a function says otherwise.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULES_H_
#define RFINJECT_INJECTOR_PYTHON_MODULES_H_

#include <cstdint>

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/python/call_frame.h"
#include "injector/python/module_steps.h"
#include "injector/python/python_api.h"

namespace rfinject {

// --- For module_calls.

// What the caller needs to know of the module that is being called.
struct ModuleCall {
  uint32_t layer = 0;
  bool wants_shapes = false;  // RecordShapes is to be called when the call has returned
};

// Enters a module. For a module that is known and not called as a root this takes constant time and no allocation. It
// may run Python code otherwise, but never leaves an exception set. `enclosing` lists the modules being called on
// this thread, innermost first.
ModuleCall EnterModule(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing);

// Called when a call for which EnterModule set wants_shapes has returned `result`.
void RecordShapes(const ModuleCall& call, PyObject* module, const CallArguments& arguments, PyObject* result);

// --- For compiled_code.

// Tells parameter_layers.h what the modules' parameters are at this moment.
void TellParameterLayers();

// --- For attach.

// Called when the process ends: without an optimizer the model's last call is the last step, which no other call ends
// any more. Any thread may call this, without the GIL.
void EndLastInferenceStep() noexcept;

// Must be called after `import torch`, and once for each attachment: modules keep their names. `source` may be null.
// `activation` is called when the process turns out
// to be a training process: what would be noise in one that never trains is kept until then. Returns false, with one
// line in `*why`, when this torch lacks what is needed; then EnterModule and RecordShapes may not be called.
bool InitModules(const PythonApi& python, Recorder& recorder, Source* source, ActivationFunction activation,
                 const char** why);

// Called in a forked child, before any thread exists.
void ResetModulesAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULES_H_
