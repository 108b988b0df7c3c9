// File: module_calls.h
//
// Brings the calls of modules to the layer stack. A call ends up in the function Module.__call__ and is seen there,
// except where a class has a `__call__` of its own. That need not call Module's, and if it does
// (`super().__call__(x)`), Python 3.11 enters Module's without passing through us. The calls of such a class are seen
// by its call slot. Where the function cannot be watched, the call slots of all classes are (tier C). The GIL is
// held.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_
#define RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_

#include <string>

#include "injector/python/python_api.h"

namespace rfinject {

struct ModuleCalls {
  bool function = false;
  bool slots = false;
  std::string why_no_function, why_no_slots;  // the reason, for what is false
};

// Puts our functions into both, or only into the slots, each after a trial with a function that only counts. Where
// that fails, everything is left as it was.
ModuleCalls WatchModuleCalls(const PythonApi& python, bool with_function);

// Gives back what WatchModuleCalls has put in. Calls that are running end as they would have.
void StopWatchingModuleCalls();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_
