// File: change.h
//
// Runs what `rfinject try` wants changed in the program: a file of Python that the command made of injector/changes/.
// It is the only code of ours that the program's interpreter goes on running, and only where RFINJECT_TRY names it.
#ifndef RFINJECT_INJECTOR_PYTHON_CHANGE_H_
#define RFINJECT_INJECTOR_PYTHON_CHANGE_H_

#include "injector/python/python_api.h"

namespace rfinject {

// Does nothing unless RFINJECT_TRY is set. It is called once, with the GIL held, when torch is imported. A file that
// cannot be read or that raises is named on standard error and in the trace, and the program goes on. It may throw
// bad_alloc.
void RunChange(const PythonApi& python);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_CHANGE_H_
