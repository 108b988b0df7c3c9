// File: type_slots.h
//
// Puts a C function into the call slot (tp_call) of subclasses of nn.Module, so that module calls are seen without
// anything that Python code can notice: no hook, no attribute, no wrapper; `Module.__call__` stays what it is.
//
// New classes get the generic slot from the interpreter. They are caught where classes are made: type.tp_init, and
// the same slot of every metaclass in use that inherited it (`class` statements and type(name, bases, dict) alike).
// An assignment to `__call__` of a class puts the generic slot back there and below it; RepairTypeSlots() finds and
// mends that.
//
// GIL held, except where it says otherwise. Builds of Python without a GIL are refused.
#ifndef RFINJECT_INJECTOR_PYTHON_TYPE_SLOTS_H_
#define RFINJECT_INJECTOR_PYTHON_TYPE_SLOTS_H_

#include <cstddef>

#include "injector/python/python_api.h"

namespace rfinject {

using CallFunction = PyObject* (*)(PyObject* self, PyObject* args, PyObject* kwargs);
using InitFunction = int (*)(PyObject* self, PyObject* args, PyObject* kwargs);

// Whether this is a build without a GIL: there types lie elsewhere, and our tables would need locks.
bool IsFreeThreaded(const PythonApi& python);

// A function pointer in PyTypeObject.
struct TypeSlot {
  size_t offset;  // on 64-bit builds with a GIL, the same from 3.8 to 3.14; to be compared with PyType_GetSlot
  int number;     // of the stable ABI, for PyType_GetSlot
};
inline constexpr TypeSlot kTypeCall = {128, 50};
inline constexpr TypeSlot kTypeInit = {296, 60};
inline constexpr TypeSlot kTypeAlloc = {304, 47};
inline constexpr TypeSlot kTypeFinalize = {392, 80};

// A function as what a slot holds.
template <typename Function>
void* Address(Function function) {
  return reinterpret_cast<void*>(function);
}

// Atomic, since other threads may look without the GIL.
void* LoadTypeSlot(const PyTypeObject* type, TypeSlot slot) noexcept;
void StoreTypeSlot(PyTypeObject* type, TypeSlot slot, void* value) noexcept;

// Patches `module_class` and its subclasses, except those whose `__call__` is `seen_function` (may be null; kept).
// `call` receives every call and must pass it on to g_generic_call. Returns false, with one line in `*why`, when the
// layout of types could not be verified; nothing is changed then.
bool InstallTypeSlots(const PythonApi& python, PyTypeObject* module_class, PyObject* seen_function, CallFunction call,
                      const char** why);

// Puts the generic slot back everywhere. New classes go on passing through us, which costs them a look at a variable.
void RemoveTypeSlots();
// Puts back what sees new classes, too. Called after RemoveTypeSlots.
void RemoveInitSlots();

// What the slot held before.
extern CallFunction g_generic_call;

// True if the base class was patched and is not any more. Any thread may call this, without the GIL.
bool TypeSlotsLost() noexcept;

// Patches every class that should be patched and is not.
void RepairTypeSlots();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_TYPE_SLOTS_H_
