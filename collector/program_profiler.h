// File: program_profiler.h
//
// What the injector knows of the program's own profilers. Most share CUPTI's activity records with us, which have one
// owner, so we keep off them while such a one runs (torch.profiler).
#ifndef RFINJECT_COLLECTOR_PROGRAM_PROFILER_H_
#define RFINJECT_COLLECTOR_PROGRAM_PROFILER_H_

#include <atomic>

namespace rfinject {

// Asked between steps, on the thread that ends them. Takes no GIL and calls nothing of CUDA.
using ProgramProfilesFunction = bool (*)() noexcept;

// Null until the injector has bound to a libtorch that can tell.
inline std::atomic<ProgramProfilesFunction> g_program_profiles{nullptr};

// Whether the program has a profiler of its own running.
inline bool ProgramProfiles() noexcept {
  ProgramProfilesFunction function = g_program_profiles.load(std::memory_order_acquire);
  return function != nullptr && function();
}

// Whether the program may have a profiler that subscribes to CUPTI beside others and fails where it cannot: PyTorch's
// newer engine, which needs the package cupti-python. Set by the injector before the first launch.
inline std::atomic<bool> g_program_subscribes{false};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PROGRAM_PROFILER_H_
