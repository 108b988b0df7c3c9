// File: user_scopes.h
//
// Tells injector/torch/scopes of the scopes that torch's Python code opens, by the type slots of the class that opens
// them, torch.autograd.profiler.record_function: tp_init (its constructor has run, with the scope's name) and
// tp_finalize (it is about to go away, right after its __exit__: torch's own are temporaries of a `with` statement).
// Python code cannot notice this, and nothing else pays for it.
#ifndef RFINJECT_INJECTOR_PYTHON_USER_SCOPES_H_
#define RFINJECT_INJECTOR_PYTHON_USER_SCOPES_H_

#include <string>

#include "injector/python/python_api.h"

namespace rfinject {

// Must be called once, after InitScopes(), with the GIL held. Returns false, with one line in `*why`, when the layout
// of types could not be verified or a trial failed; nothing is changed then.
bool WatchUserScopes(const PythonApi& python, std::string* why);

// Gives back what WatchUserScopes has put in. A scope that is open is not seen to end.
void StopWatchingUserScopes();

// Watches again if the program has assigned an `__init__` or a `__del__` to the class. The GIL must be held. It costs
// two comparisons.
void RepairUserScopes() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_USER_SCOPES_H_
