// File: step_end.h
//
// Ends the training step that runs. The injector does that when an optimizer has stepped. A source that sees an
// optimizer's step that the program's Python does not make (one that was captured into a CUDA graph) asks the
// injector to do it, through one function pointer.
#ifndef RFINJECT_COLLECTOR_STEP_END_H_
#define RFINJECT_COLLECTOR_STEP_END_H_

#include <atomic>

namespace rfinject {

// Called on the thread that launches the optimizer's step. It takes no GIL and calls nothing of CUDA; it calls
// Source::OnStepEnd.
using EndStepFunction = void (*)() noexcept;

// Null until the injector watches steps.
inline std::atomic<EndStepFunction> g_end_step{nullptr};

// Ends the step that runs, if the injector watches steps.
inline void EndStepOfProgram() noexcept {
  if (EndStepFunction function = g_end_step.load(std::memory_order_acquire); function != nullptr) function();
}

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_STEP_END_H_
