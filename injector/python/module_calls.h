// File: module_calls.h
//
// The two ways in which a module's call reaches the layer stack: the call slot of the classes (tiers A and B), and
// torch's global module hooks (tier C), which Python code can notice. GIL held.
#ifndef RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_
#define RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_

#include <string>

#include "injector/python/python_api.h"

namespace rfinject {

// Patches the call slots after a trial with a function that only counts. False, with the reason, if that fails; then
// the slots are as before.
bool WatchCallSlots(const PythonApi& python, std::string* why);

// Registers global forward hooks that do nothing while torch.compile looks on. False, with the reason, where they
// could not be guarded in that way.
bool WatchModuleHooks(const PythonApi& python, std::string* why);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_MODULE_CALLS_H_
