// File: graph_breaks.h
//
// Tells the recorder where torch.compile ended a graph and let Python go on, with torch's reason. Dynamo keeps a list
// of these places (torch._dynamo.utils.graph_break_reasons); we read what is new in it. Nothing of torch's is
// changed.
#ifndef RFINJECT_INJECTOR_PYTHON_GRAPH_BREAKS_H_
#define RFINJECT_INJECTOR_PYTHON_GRAPH_BREAKS_H_

#include "collector/recorder.h"
#include "injector/python/python_api.h"

namespace rfinject {

// Which Recorder is told. Called once, with the GIL held.
void WatchGraphBreaks(Recorder& recorder) noexcept;

// Both read what is new in Dynamo's list, with the GIL held, and leave no exception behind. They run no Python code,
// but for the second one where a graph has just been ended: it asks Inductor's objects what the graph hands on. So
// they are not noexcept: a daemon thread may be ended from there.
//
// The program has made a code object (the audit event "code.__new__"). Dynamo does that whenever it has compiled a
// part of a function, so that the reason why the part ended is in the list by then.
void OnCodeObject(const PythonApi& python);
// Inductor's code for a graph is loaded. If the list has grown since the last code object, the graph ends there.
void OnGraphLoaded(const PythonApi& python);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_GRAPH_BREAKS_H_
