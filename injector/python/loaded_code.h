// File: loaded_code.h
//
// Code of torch.compile's in a process that was attached to while it ran. No audit hook tells of it there, since
// Python has no function to remove one; so Inductor's list of the modules that it has loaded is looked at, once a
// step.
#ifndef RFINJECT_INJECTOR_PYTHON_LOADED_CODE_H_
#define RFINJECT_INJECTOR_PYTHON_LOADED_CODE_H_

#include "injector/python/python_api.h"

namespace rfinject {

// Before anything of this attachment is recorded, with the GIL held. From now on LookForLoadedCode looks.
void WatchLoadedCode(const PythonApi& python) noexcept;

// Reads the modules and the graph breaks that are new; the first time all that there are. Called where a step calls
// its model and where its optimizer begins, with the GIL held. Costs a load where nothing is watched. Not noexcept:
// it asks Python for attributes, from which a daemon thread may be ended.
void LookForLoadedCode();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_LOADED_CODE_H_
