// File: optimizers.h
//
// Tells the program's optimizer objects apart, by numbers from 1 in the order of their first steps. A number is an
// object's for as long as it lives (a weak reference tells when it ends) and is not given again.
//
// The parameters of an optimizer are known from its first step on.
//
// The GIL is held throughout. Nothing here runs code of the program's, keeps an optimizer alive or can be seen in
// Python.
#ifndef RFINJECT_INJECTOR_PYTHON_OPTIMIZERS_H_
#define RFINJECT_INJECTOR_PYTHON_OPTIMIZERS_H_

#include <cstdint>

#include "injector/python/python_api.h"

namespace rfinject {

// Must be called once, when torch has been imported. Without that, or where torch has no such class, all numbers are
// 0.
void InitOptimizers(const PythonApi& python);

// Whether an optimizer that has stepped has this parameter: an address that is only compared.
bool OptimizerOwns(const PyObject* parameter) noexcept;
// Grows with each optimizer that is seen for the first time, and with each group of parameters that one gets later.
uint32_t OptimizersKnown() noexcept;

// The number of the optimizer whose step opens a scope: the first argument of the calling thread's innermost Python
// function, which is torch's wrapper around `step`. Returns 0 where that is no optimizer, or cannot be told. Leaves
// no exception behind.
uint32_t SteppingOptimizer();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_OPTIMIZERS_H_
