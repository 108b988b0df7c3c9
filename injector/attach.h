// File: attach.h
//
// Connects settings, source, libtorch's binding and the modules of a Python process, once there is a torch to connect
// to. Decides the tier (docs/method/ATTRIBUTION.md).
#ifndef RFINJECT_INJECTOR_ATTACH_H_
#define RFINJECT_INJECTOR_ATTACH_H_

#include <string_view>

namespace rfinject {

struct PythonApi;

// Called after `import torch`, with the GIL held. It never throws and never leaves an exception set; what fails
// lowers the tier. It may be called again after DetachPython, when the recorder has begun again.
void AttachPython(const PythonApi& python);

// Gives back what AttachPython has hooked, and closes the trace. Called with the GIL held; it gives that back while
// it waits for the trace. What runs meanwhile goes on and ends as it would have. Returns false, and does nothing,
// where this moment would spoil something of the program's.
bool DetachPython(const PythonApi& python);

// Called in a process without Python that has libtorch loaded and initialised. `running` says that it computes
// already: the step that runs is left out. It may be called again after DetachLibtorch.
void AttachLibtorch(bool running = false) noexcept;

// As DetachPython, where AttachLibtorch was called.
bool DetachLibtorch();

// Whether this process is attached.
bool IsAttached() noexcept;

// Called when the process ends in a way that still runs code: stops the source and closes the trace. Nothing happens
// in a process that never attached, or in a vfork child. Bounded in time; may be called more than once.
void FinishProcess(std::string_view reason) noexcept;

// Called when a root module is called. A program that was asked to end (SystemExit) and goes on is asked again, a few
// times: a bare `except:` may have caught the first exception.
void InsistOnPoliteExit() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_ATTACH_H_
