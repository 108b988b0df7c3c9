// File: optimizers.h
//
// Tells the program's optimizer objects apart, by numbers from 1 in the order of their first steps. A number is an
// object's for as long as it lives (a weak reference tells when it ends) and is not given again.
//
// GIL held throughout. Nothing here runs code of the program's, keeps an optimizer alive or shows in Python.
#ifndef RFINJECT_INJECTOR_PYTHON_OPTIMIZERS_H_
#define RFINJECT_INJECTOR_PYTHON_OPTIMIZERS_H_

#include <cstdint>

#include "injector/python/python_api.h"

namespace rfinject {

// Once, when torch has been imported. Without it, or where torch has no such class, all numbers are 0.
void InitOptimizers(const PythonApi& python);

// The number of the optimizer whose step opens a scope: what the calling thread's innermost function of Python's,
// torch's wrapper around `step`, was called with. 0 where that is none, or cannot be told. Leaves no exception
// behind.
uint32_t SteppingOptimizer();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_OPTIMIZERS_H_
