// File: operator_slices.h
//
// A source that hears of operators in slices of a step (Source::wants_slices_of_ops) says here where a slice begins.
// The injector knows how; the collector asks through one function pointer, as for the site (site.h).
#ifndef RFINJECT_COLLECTOR_OPERATOR_SLICES_H_
#define RFINJECT_COLLECTOR_OPERATOR_SLICES_H_

#include <atomic>

namespace rfinject {

using LaunchOfSlicesFunction = void (*)(bool hear) noexcept;

// Null until the injector observes operators.
inline std::atomic<LaunchOfSlicesFunction> g_launch_of_slices{nullptr};

// Tells of each launch in a step of which slices are heard, on its thread, inside the launch callback. With `hear`
// operators are handed to the source from here on. Each thread begins where it gets to another place in the program
// than that of its last launch, because the operator around that was not heard. Then it takes a lock of torch's that
// nobody holds while it launches, and may allocate.
inline void TellLaunchOfSlices(bool hear) noexcept {
  const LaunchOfSlicesFunction function = g_launch_of_slices.load(std::memory_order_acquire);
  if (function != nullptr) function(hear);
}

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_OPERATOR_SLICES_H_
