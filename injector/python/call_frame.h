// File: call_frame.h
//
// A module's call, as the interpreter hands it over: its arguments, and the modules that are being called around it.
// All references here are borrowed for as long as the call lasts. The GIL is held.
#ifndef RFINJECT_INJECTOR_PYTHON_CALL_FRAME_H_
#define RFINJECT_INJECTOR_PYTHON_CALL_FRAME_H_

#include <vector>

#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {

// The arguments of a call without the module itself, borrowed: a tuple and a dict (either may be null), or an array.
struct CallArguments {
  PyObject* tuple;
  PyObject* dict;
  PyObject* const* array;
  Py_ssize_t count;  // of the array
};

// All values of `arguments`, those by name last. The references are borrowed.
inline std::vector<PyObject*> Values(const PythonApi& python, const CallArguments& arguments) {
  std::vector<PyObject*> values(arguments.array, arguments.array + arguments.count);
  for (PyObject* container : {arguments.tuple, arguments.dict}) {
    for (const Ref& value : Ref::Borrow(python, container).Parts()) values.push_back(value.get());
  }
  return values;
}

// The modules that are being called on a thread, innermost first. The frames lie on the C stack. A program that
// copies stacks (greenlet) may put something else into an enclosing frame's place, so a frame is believed only while
// it points to itself.
struct ModuleFrame {
  ModuleFrame(const ModuleFrame* outer, PyObject* called) : enclosing(outer), module(called), self(this) {}
  const ModuleFrame* enclosing;
  PyObject* module;
  const ModuleFrame* self;
};

// Returns `frame`, or null when it is not to be believed.
inline const ModuleFrame* Believed(const ModuleFrame* frame) {
  return frame != nullptr && frame->self == frame ? frame : nullptr;
}

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_CALL_FRAME_H_
