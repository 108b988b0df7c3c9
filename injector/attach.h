// File: attach.h
//
// Joins the parts once there is something to join them to: settings, source, libtorch's binding, and the modules of a
// Python process. Decides the tier (docs/ARCHITECTURE.md, "Attribution").
#ifndef RFINJECT_INJECTOR_ATTACH_H_
#define RFINJECT_INJECTOR_ATTACH_H_

#include <string_view>

namespace rfinject {

struct PythonApi;

// After `import torch`, GIL held, once. Never throws, never leaves an exception set; what fails lowers the tier.
void AttachPython(const PythonApi& python);

// In a process without Python that has libtorch loaded and initialised.
void AttachLibtorch() noexcept;

// The process ends in a way that still runs code: lets the source stop and closes the trace. Nothing happens in a
// process that never attached, or in a vfork child. Bounded in time; may be called more than once.
void FinishProcess(std::string_view reason) noexcept;

// A root module was called. If the program was asked to end and goes on, it is asked again, a few times: a bare
// `except:` may have caught the first one.
void InsistOnPoliteExit() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_ATTACH_H_
