#include "injector/python/vectorcall.h"

#include <dlfcn.h>

#include "injector/python/ref.h"
#include "injector/python/type_slots.h"

namespace rfinject {
namespace {

// In PyTypeObject, on 64-bit builds with a GIL, the same from 3.8 to 3.14.
constexpr size_t kBasicSize = 32;         // tp_basicsize, which Python code can read too
constexpr size_t kVectorcallOffset = 56;  // tp_vectorcall_offset
constexpr long long kObjectHead = 16;     // PyObject's reference count and type

size_t g_offset = 0;  // of the field in a function object

template <typename T>
T At(const void* object, size_t offset) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(object) + offset);
}

}  // namespace

Vectorcall FindVectorcall(const PythonApi& python, PyObject* function, PyObject* other, const char** why) {
  Ref type = Ref::Borrow(python, static_cast<PyObject*>(python.PyFunction_Type));
  for (PyObject* one : {function, other}) {
    if (one != nullptr && Ref::Borrow(python, one).Type().get() == type.get()) continue;
    *why = "it is no plain Python function";
    return nullptr;
  }
  const long long size = type.Attribute("__basicsize__").Integer(0);
  if (IsFreeThreaded(python) || size <= kObjectHead || At<Py_ssize_t>(type.get(), kBasicSize) != size) {
    *why = "types have another layout in this Python";
    return nullptr;
  }
  const Py_ssize_t offset = At<Py_ssize_t>(type.get(), kVectorcallOffset);
  if (offset < kObjectHead || offset % 8 != 0 || offset + 8 > size) {
    *why = "this Python's functions have no vectorcall";
    return nullptr;
  }
  // All plain functions share one entry, which is a part of the interpreter.
  void* entry = At<void*>(function, static_cast<size_t>(offset));
  Dl_info info, interpreter;
  if (entry == nullptr || entry != At<void*>(other, static_cast<size_t>(offset)) || dladdr(entry, &info) == 0 ||
      dladdr(reinterpret_cast<void*>(python.Py_GetVersion), &interpreter) == 0 ||
      info.dli_fbase != interpreter.dli_fbase) {
    *why = "its vectorcall is not the interpreter's own";
    return nullptr;
  }
  g_offset = static_cast<size_t>(offset);
  return reinterpret_cast<Vectorcall>(entry);
}

void SetVectorcall(PyObject* function, Vectorcall call) {
  // From 3.12 on the interpreter enters plain functions past the field, where it has seen them before; its own setter
  // makes it forget them.
  using Setter = void (*)(PyObject * function, Vectorcall call);
  static const auto setter = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall"));
  if (setter != nullptr) {
    setter(function, call);
  } else {
    __atomic_store_n(reinterpret_cast<Vectorcall*>(reinterpret_cast<char*>(function) + g_offset), call,
                     __ATOMIC_RELAXED);
  }
}

}  // namespace rfinject
