// File: program_profiler.h
//
// Whether the program profiles itself at this moment (torch.profiler). CUPTI's activity records have one owner a
// process, so we keep off them meanwhile. The injector knows; the collector asks through one function pointer.
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

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_PROGRAM_PROFILER_H_
