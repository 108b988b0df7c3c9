// File: vectorcall.h
//
// Puts a C function into the vectorcall field of one Python function (PEP 590): whoever calls the function from C,
// the call slot of a class with a `__call__` among them, then calls ours. The function object stays the same one,
// with the same code, and nothing in Python shows the field.
//
// The GIL must be held.
#ifndef RFINJECT_INJECTOR_PYTHON_VECTORCALL_H_
#define RFINJECT_INJECTOR_PYTHON_VECTORCALL_H_

#include <cstddef>

#include "injector/python/python_api.h"

namespace rfinject {

// `arguments` holds VectorcallCount(flagged_count) positional arguments, then one for each of `names` (a tuple, or
// null).
using Vectorcall = PyObject* (*)(PyObject* callable, PyObject* const* arguments, size_t flagged_count,
                                 PyObject* names);

inline Py_ssize_t VectorcallCount(size_t flagged_count) {
  return static_cast<Py_ssize_t>(flagged_count & ~(size_t{1} << 63));  // PY_VECTORCALL_ARGUMENTS_OFFSET
}

// Returns what the field of `function` holds. Returns null, with one line in `*why`, where the field could not be
// verified: `function` is no plain Python function, this Python's types lie elsewhere, or `other`, a function too,
// holds another value.
Vectorcall FindVectorcall(const PythonApi& python, PyObject* function, PyObject* other, const char** why);

// Replaces the field's value; FindVectorcall must have found the field before.
void SetVectorcall(PyObject* function, Vectorcall call);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_VECTORCALL_H_
