// File: step_end.h
//
// Ends the training step that runs. The injector does that when an optimizer has stepped. A source that sees an
// optimizer's step that the program's Python does not make (one that was captured into a CUDA graph) asks the
// injector to do it, through one function pointer.
//
// A loss scaler (torch.amp.GradScaler) leaves the optimizer's step out where a gradient has overflowed, so nothing
// ends such a step. But it updates its scale at the end of every step, by a kernel of its own. A source counts these.
#ifndef RFINJECT_COLLECTOR_STEP_END_H_
#define RFINJECT_COLLECTOR_STEP_END_H_

#include <atomic>
#include <cstdint>

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

// As EndStepOfProgram, but from inside a call of the driver, where nothing of CUDA may be called: the step ends when
// the program goes on. Null where nothing can do that.
inline std::atomic<EndStepFunction> g_end_step_soon{nullptr};
inline bool CanEndStepSoon() noexcept { return g_end_step_soon.load(std::memory_order_acquire) != nullptr; }
inline void EndStepSoon() noexcept {
  if (EndStepFunction function = g_end_step_soon.load(std::memory_order_acquire); function != nullptr) function();
}

inline std::atomic<uint64_t> g_scale_updates{0};

// Tells that a loss scaler updates its scale, on the thread that launches it.
inline void NoteScaleUpdate() noexcept { g_scale_updates.fetch_add(1, std::memory_order_relaxed); }
// How many scale updates there were.
inline uint64_t ScaleUpdates() noexcept { return g_scale_updates.load(std::memory_order_relaxed); }

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_STEP_END_H_
