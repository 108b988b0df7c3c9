// File: profilers.h
//
// Sees that the program makes a profiler of torch's (torch.profiler.profile and torch.autograd.profiler.profile),
// before that asks CUPTI for anything. The GIL is held.
#ifndef RFINJECT_INJECTOR_PYTHON_PROFILERS_H_
#define RFINJECT_INJECTOR_PYTHON_PROFILERS_H_

#include "injector/python/python_api.h"

namespace rfinject {

class Source;

// Tells the source of each (Source::OnProfilerComes). Where torch's class cannot be watched, nothing changes.
void WatchProfilers(const PythonApi& python, Source& source);

// Gives back what WatchProfilers has put in.
void StopWatchingProfilers();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_PROFILERS_H_
