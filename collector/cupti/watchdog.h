// File: watchdog.h
//
// Watchdog checks once a second, on a thread of its own, whether a step with counters has stopped making progress,
// and reports that at once: if the step never ends, no other code will report it. It stops nothing itself. The thread
// that ends the step, if it gets there, asks stalled() and gives the counters up.
#ifndef RFINJECT_COLLECTOR_CUPTI_WATCHDOG_H_
#define RFINJECT_COLLECTOR_CUPTI_WATCHDOG_H_

#include <atomic>

#include "collector/cupti/step_machine.h"
#include "collector/cupti/step_policy.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class Watchdog {
 public:
  // The arguments must live as long as the process, and so must the object: its thread is never joined.
  Watchdog(const StepMachine& machine, StepPolicy& policy, Recorder& recorder) noexcept
      : machine_(machine), policy_(policy), recorder_(recorder) {}

  // Starts the thread, once; it ends when the machine is off. Called by the thread that ends the steps. If no thread
  // can be created, stalls go unnoticed.
  void Start() noexcept;

  // Whether a step with counters has made no progress. Any thread may ask.
  bool stalled() const noexcept { return stalled_.load(); }

 private:
  static void* Main(void* self) noexcept;
  void Watch() noexcept;

  const StepMachine& machine_;
  StepPolicy& policy_;
  Recorder& recorder_;
  bool started_ = false;
  std::atomic<bool> stalled_{false};
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_WATCHDOG_H_
