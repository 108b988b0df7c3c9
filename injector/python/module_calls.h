// File: module_calls.h
//
// How a module's call reaches the layer stack. It ends up in the function Module.__call__ and is seen there, except
// where a class has a `__call__` of its own, which need not call Module's, and which Python 3.11 lets enter that past
// us
// (`super().__call__(x)`): such a class is seen by its call slot. Where the function cannot be watched, the call
// slots of all classes are (tier C). GIL held.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_
#define RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_

#include <string>

#include "injector/python/python_api.h"

namespace rfinject {

struct ModuleCalls {
  bool function = false;
  bool slots = false;
  std::string why_no_function, why_no_slots;  // where false
};

// Puts us into both, or only into the slots, each after a trial with a function that only counts. What fails is as
// before.
ModuleCalls WatchModuleCalls(const PythonApi& python, bool with_function);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_
