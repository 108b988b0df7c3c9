// File: step_machine.h
//
// StepMachine is the state that the hardware source is in: what it does in the step that runs now.
//
//   kWaiting   the program has no CUDA context yet; the end of each step looks for one
//   kPlain     nothing is collected in this step beyond its launches
//   kCounters  the step's kernels are counted, on every device that can be
//   kTimes     the step's kernels, copies and memory sets are timed
//   kSampling  the whole device is sampled over time (PM sampling)
//   kOff       nothing is measured any more, and nothing leads out of here
//
//              ┌──────────► kCounters ──┐
//   kWaiting ─► kPlain ───► kTimes ─────┼─► kPlain …       from everywhere: kOff
//              └──────────► kSampling ──┘
//
// The thread that ends a step moves it, between two steps. Two other moves may come from any thread: a destroyed
// context ends kSampling, and the process's end or a fork leads to kOff. Every move is one atomic exchange, so that a
// move that came too late is refused.
#ifndef RFINJECT_COLLECTOR_CUPTI_STEP_MACHINE_H_
#define RFINJECT_COLLECTOR_CUPTI_STEP_MACHINE_H_

#include <atomic>
#include <cstdint>

namespace rfinject::cupti {

enum class StepState : uint8_t { kWaiting, kPlain, kCounters, kTimes, kSampling, kOff };

// Whether the picture above has an arrow from one to the other.
constexpr bool MayMove(StepState from, StepState to) noexcept {
  switch (to) {
    case StepState::kWaiting:
      return false;
    case StepState::kPlain:
      return from != StepState::kPlain && from != StepState::kOff;
    case StepState::kCounters:
    case StepState::kTimes:
    case StepState::kSampling:
      return from == StepState::kPlain;
    case StepState::kOff:
      return true;
  }
  return false;
}

class StepMachine {
 public:
  StepState state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool off() const noexcept { return state() == StepState::kOff; }
  // A step with counters or times, whose launches are logged.
  bool armed() const noexcept {
    const StepState now = state();
    return now == StepState::kCounters || now == StepState::kTimes;
  }

  // Moves to `to`. Returns false, and changes nothing, when no arrow leads there.
  bool Enter(StepState to) noexcept {
    StepState from = state();
    while (MayMove(from, to)) {
      if (state_.compare_exchange_weak(from, to, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
    }
    return false;
  }

  // Ends the step: returns the state that it was in and moves to kPlain. In kWaiting and kOff nothing changes.
  StepState EndStep() noexcept {
    StepState ran = state();
    while (ran != StepState::kWaiting && MayMove(ran, StepState::kPlain)) {
      if (state_.compare_exchange_weak(ran, StepState::kPlain, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
        break;
      }
    }
    return ran;
  }

  // Ends kSampling if that is the state; returns true for the one caller that ended it.
  bool EndSampling() noexcept {
    StepState sampling = StepState::kSampling;
    return state_.compare_exchange_strong(sampling, StepState::kPlain, std::memory_order_acq_rel,
                                          std::memory_order_acquire);
  }

 private:
  std::atomic<StepState> state_{StepState::kWaiting};
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_STEP_MACHINE_H_
