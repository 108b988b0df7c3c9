// File: step_notes.h
//
// StepNotes holds what others say of the step that runs, until it ends.
#ifndef RFINJECT_COLLECTOR_RECORD_STEP_NOTES_H_
#define RFINJECT_COLLECTOR_RECORD_STEP_NOTES_H_

#include <atomic>
#include <cstdint>

#include "collector/record/launch_ring.h"

namespace rfinject {

class StepNotes {
 public:
  void MarkArmed(uint32_t group) noexcept { armed_group_.store(group, std::memory_order_relaxed); }
  void NoteMemory(uint64_t in_use, uint64_t peak) noexcept {
    memory_.store(in_use, std::memory_order_relaxed);
    memory_peak_.store(peak, std::memory_order_relaxed);
  }
  void NoteCalls(uint32_t calls, uint32_t kind, uint32_t optimizer) noexcept {
    calls_.store(calls, std::memory_order_relaxed);
    kind_.store(kind, std::memory_order_relaxed);
    optimizer_.store(optimizer, std::memory_order_relaxed);
  }
  void LeaveOut() noexcept { left_out_.store(true, std::memory_order_relaxed); }

  void NoteFailure() noexcept { failed_.store(true, std::memory_order_relaxed); }
  void NoteCompilation() noexcept { compiled_.store(true, std::memory_order_relaxed); }

  // Whether the step that ends is left out, whether it has failed, and whether code was compiled in it. Taking it
  // forgets it.
  bool TakeLeftOut() noexcept { return left_out_.exchange(false, std::memory_order_relaxed); }
  bool TakeFailed() noexcept { return failed_.exchange(false, std::memory_order_relaxed); }
  bool TakeCompiled() noexcept { return compiled_.exchange(false, std::memory_order_relaxed); }
  // Forgets what was said of a step that will not end.
  void Forget() noexcept {
    StepRecord none;
    TakeInto(&none);
    (void)TakeLeftOut(), (void)TakeFailed(), (void)TakeCompiled();
  }
  // Moves everything else into the step that ends.
  void TakeInto(StepRecord* step) noexcept {
    step->armed_group = armed_group_.exchange(0, std::memory_order_relaxed);
    step->memory_bytes = memory_.exchange(0, std::memory_order_relaxed);
    step->memory_peak_bytes = memory_peak_.exchange(0, std::memory_order_relaxed);
    step->calls = calls_.exchange(0, std::memory_order_relaxed);
    step->kind = kind_.exchange(0, std::memory_order_relaxed);
    step->optimizer = optimizer_.exchange(0, std::memory_order_relaxed);
  }

 private:
  // A source writes these before the EndStep of their step, and the thread that ends the step takes them. Relaxed:
  // the caller orders its note before EndStep, mostly because one thread does both, and each is a number by itself.
  std::atomic<uint32_t> armed_group_{0};                     // 0: no counters were armed
  std::atomic<uint64_t> memory_{0}, memory_peak_{0};         // bytes; 0: unknown
  std::atomic<uint32_t> calls_{0}, kind_{0}, optimizer_{0};  // as in Step
  std::atomic<bool> left_out_{false}, failed_{false}, compiled_{false};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_STEP_NOTES_H_
