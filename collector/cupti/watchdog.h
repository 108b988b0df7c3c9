// File: watchdog.h
//
// Watchdog looks once a second, from a thread of its own, whether a step with counters has come to a stand, and says
// so at once: if the step never ends, nobody will say it later. It stops nothing itself. The thread that ends the
// step, if it gets there, asks stalled() and gives the counters up.
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
  // can be had, nobody watches.
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
