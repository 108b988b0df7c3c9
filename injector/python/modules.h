// File: modules.h
//
// Which layer an nn.Module object is: names, models, parameters and shapes, and what happens when a root module (one
// that is called while no other module runs on the thread) is entered.
//
// Names persist per module object. A root is walked at its first call, through `_modules`, as named_modules() would;
// what is added later is found at its first call. Wrappers (DataParallel, torch.compile, …) share the layer of what
// they wrap. Everything here is called with the GIL held unless it says otherwise.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULES_H_
#define RFINJECT_INJECTOR_PYTHON_MODULES_H_

#include <cstdint>

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/python/python_api.h"

namespace rfinject {

// --- For injector/torch, which sees the steps end.

// Samples (leading dimension of the first tensor input, summed over the calls of root modules with parameters) since
// the previous call of this function. Any thread, no GIL. Meant for Recorder::EndStep.
uint64_t TakeSamplesOfStep() noexcept;

// An optimizer's step runs or ran: from now on the optimizer ends the steps, not the root module's next call; and the
// process is a training process, even if it has no modules. Any thread, no GIL; cheap after the first time.
void NoteOptimizerStep() noexcept;

// --- For module_calls.

// The arguments of a call without the module itself, borrowed: a tuple and a dict (either may be null), or an array.
struct CallArguments {
  PyObject* tuple;
  PyObject* dict;
  PyObject* const* array;
  Py_ssize_t count;  // of the array
};

// What the caller needs to know of the module that is being called.
struct ModuleCall {
  uint32_t layer = 0;
  bool wants_shapes = false;  // RecordShapes is to be called when the call has returned
};

// O(1) and without allocation for a module that is known and not called as a root. May run Python code otherwise, but
// never leaves an exception set. `enclosing` lists the modules being called on this thread, innermost first.
struct ModuleFrame {
  ModuleFrame(const ModuleFrame* outer, PyObject* called) : enclosing(outer), module(called), self(this) {}
  const ModuleFrame* enclosing;
  PyObject* module;
  // The frames lie on the C stack. A program that copies stacks about (greenlet) may leave an enclosing frame's
  // place to something else; a frame is believed only while it points to itself.
  const ModuleFrame* self;
};
ModuleCall EnterModule(PyObject* module, const CallArguments& arguments, const ModuleFrame* enclosing);

// A call for which EnterModule said wants_shapes has returned `result`.
void RecordShapes(const ModuleCall& call, PyObject* module, const CallArguments& arguments, PyObject* result);

// --- For attach.

// The process ends: without an optimizer the model's last call is the last step, which no other call ends any more.
// Any thread, no GIL.
void EndLastInferenceStep() noexcept;

// Once, after `import torch`. `source` may be null. False, with one line in `*why`, when this torch lacks what is
// needed; then nothing of the above may be called.
bool InitModules(const PythonApi& python, Recorder& recorder, Source* source, const char** why);

// Diagnostics and facts that would be noise in a process that never trains are kept until the recorder is activated.
using ActivationFunction = void (*)();
void SetActivationFunction(ActivationFunction function) noexcept;

// In a forked child, before any thread exists.
void ResetModulesAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULES_H_
