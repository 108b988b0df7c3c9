// File: engine_threads.h
//
// torch runs the backward of a GPU's tensors on a thread of its own. That thread tells the program that the backward
// is done, and only then lets go of the graph. Where that is the last owner of a Python object, it needs the GIL. If
// the interpreter is being finalised by then, CPython ends the thread through a noexcept function of torch's, and the
// process aborts ("terminate called without an active exception").
#ifndef RFINJECT_INJECTOR_TORCH_ENGINE_THREADS_H_
#define RFINJECT_INJECTOR_TORCH_ENGINE_THREADS_H_

#include <string>

namespace rfinject {

// Waits until torch's autograd threads of this process have nothing to do, for 100 ms at most. Called before the
// interpreter is finalised, without the GIL, which these threads may need. Returns at once where there are none.
void WaitForEngineThreads() noexcept;

// The same for a folder that has what /proc/self/task has. Returns how often it looked. For tests.
int WaitForEngineThreadsIn(const std::string& tasks) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_ENGINE_THREADS_H_
