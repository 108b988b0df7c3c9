// File: python_api.h
//
// The part of CPython's stable C API that we use, looked up at run time in whatever interpreter the process is
// (nothing of Python is compiled in or linked: one library serves 3.8 to 3.14, static and shared builds).
// Objects are opaque here.
#ifndef RFINJECT_INJECTOR_PYTHON_PYTHON_API_H_
#define RFINJECT_INJECTOR_PYTHON_PYTHON_API_H_

#include <cstddef>
#include <cstdint>

extern "C" {
struct _object;  // CPython's own name, so that mangled signatures agree
struct _typeobject;
}

namespace rfinject {

using PyObject = _object;
using PyTypeObject = _typeobject;
using Py_ssize_t = intptr_t;
using PyCFunction = PyObject* (*)(PyObject* self, PyObject* args);
using PyAuditHook = int (*)(const char* event, PyObject* args, void* data);

struct PyMethodDef {  // CPython's layout, unchanged since 2.x
  const char* name;
  PyCFunction function;
  int flags;
  const char* doc;
};
inline constexpr int kMethNoArgs = 0x0004;
inline constexpr int kMethO = 0x0008;

// name, return type, arguments. The required ones come first; a process that lacks one of these has no Python that we
// can use.
#define RFINJECT_PYTHON_REQUIRED(X)                                                             \
  X(PySys_AddAuditHook, int, (PyAuditHook, void*))                                              \
  X(Py_IsInitialized, int, ())                                                                  \
  X(Py_GetVersion, const char*, ())                                                             \
  X(Py_AddPendingCall, int, (int (*)(void*), void*))                                            \
  X(PyGILState_GetThisThreadState, void*, ())                                                   \
  X(PyEval_GetFrame, PyObject*, ())                                                             \
  X(PyCode_Addr2Line, int, (PyObject*, int))                                                    \
  X(PyImport_ImportModule, PyObject*, (const char*))                                            \
  X(PyImport_ImportModuleLevel, PyObject*, (const char*, PyObject*, PyObject*, PyObject*, int)) \
  X(PyImport_GetModuleDict, PyObject*, ())                                                      \
  X(PyDict_New, PyObject*, ())                                                                  \
  X(PyDict_GetItemString, PyObject*, (PyObject*, const char*))                                  \
  X(PyDict_SetItemString, int, (PyObject*, const char*, PyObject*))                             \
  X(PyDict_Next, int, (PyObject*, Py_ssize_t*, PyObject**, PyObject**))                         \
  X(PyEval_GetBuiltins, PyObject*, ())                                                          \
  X(PyEval_SaveThread, void*, ())                                                               \
  X(PyEval_RestoreThread, void, (void*))                                                        \
  X(PyEval_EvalCode, PyObject*, (PyObject*, PyObject*, PyObject*))                              \
  X(Py_CompileString, PyObject*, (const char*, const char*, int))                               \
  X(PyObject_GetAttrString, PyObject*, (PyObject*, const char*))                                \
  X(PyObject_GenericGetDict, PyObject*, (PyObject*, void*))                                     \
  X(PyObject_CallObject, PyObject*, (PyObject*, PyObject*))                                     \
  X(PyObject_Type, PyObject*, (PyObject*))                                                      \
  X(PyObject_GetIter, PyObject*, (PyObject*))                                                   \
  X(PyIter_Next, PyObject*, (PyObject*))                                                        \
  X(PyObject_IsTrue, int, (PyObject*))                                                          \
  X(PyObject_Str, PyObject*, (PyObject*))                                                       \
  X(PyTuple_New, PyObject*, (Py_ssize_t))                                                       \
  X(PyTuple_SetItem, int, (PyObject*, Py_ssize_t, PyObject*))                                   \
  X(PyTuple_GetItem, PyObject*, (PyObject*, Py_ssize_t))                                        \
  X(PyTuple_Size, Py_ssize_t, (PyObject*))                                                      \
  X(PyList_Size, Py_ssize_t, (PyObject*))                                                       \
  X(PyList_GetItem, PyObject*, (PyObject*, Py_ssize_t))                                         \
  X(PyLong_FromLong, PyObject*, (long))                                                         \
  X(PyLong_FromUnsignedLongLong, PyObject*, (unsigned long long))                               \
  X(PyLong_AsLongLong, long long, (PyObject*))                                                  \
  X(PyUnicode_FromString, PyObject*, (const char*))                                             \
  X(PyUnicode_AsUTF8, const char*, (PyObject*))                                                 \
  X(PyUnicode_GetLength, Py_ssize_t, (PyObject*))                                               \
  X(PyUnicode_ReadChar, uint32_t, (PyObject*, Py_ssize_t))                                      \
  X(PyCFunction_NewEx, PyObject*, (PyMethodDef*, PyObject*, PyObject*))                         \
  X(PyCell_Get, PyObject*, (PyObject*))                                                         \
  X(PyWeakref_NewRef, PyObject*, (PyObject*, PyObject*))                                        \
  X(PyType_GetSlot, void*, (PyTypeObject*, int))                                                \
  X(PyType_IsSubtype, int, (PyTypeObject*, PyTypeObject*))                                      \
  X(PyType_GenericAlloc, PyObject*, (PyTypeObject*, Py_ssize_t))                                \
  X(PyType_Modified, void, (PyTypeObject*))                                                     \
  X(PyErr_Occurred, PyObject*, ())                                                              \
  X(PyErr_ExceptionMatches, int, (PyObject*))                                                   \
  X(PyErr_SetInterrupt, void, ())                                                               \
  X(PyErr_Clear, void, ())                                                                      \
  X(PyErr_Fetch, void, (PyObject**, PyObject**, PyObject**))                                    \
  X(PyErr_Restore, void, (PyObject*, PyObject*, PyObject*))                                     \
  X(PyErr_SetNone, void, (PyObject*))                                                           \
  X(Py_IncRef, void, (PyObject*))                                                               \
  X(Py_DecRef, void, (PyObject*))
// Objects that the interpreter exports as data.
#define RFINJECT_PYTHON_DATA(X) \
  X(_Py_NoneStruct)             \
  X(PyType_Type)                \
  X(PyDict_Type)                \
  X(PyLong_Type)                \
  X(PyTuple_Type)               \
  X(PyList_Type)                \
  X(PyFunction_Type)            \
  X(PyCode_Type)                \
  X(PyCell_Type)                \
  X(PyUnicode_Type)             \
  X(PyExc_Exception)            \
  X(PyExc_SystemExit)

struct PythonApi {
#define RFINJECT_DECLARE(name, result, arguments) result(*name) arguments = nullptr;
  RFINJECT_PYTHON_REQUIRED(RFINJECT_DECLARE)
#undef RFINJECT_DECLARE
#define RFINJECT_DECLARE(name) void* name = nullptr;
  RFINJECT_PYTHON_DATA(RFINJECT_DECLARE)
#undef RFINJECT_DECLARE
};

// The process's interpreter, or nullptr when there is none (looked up again until found; cheap). To use another
// function, add it to the lists above; python_api.cc fills the table.
const PythonApi* GetPython() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_PYTHON_API_H_
