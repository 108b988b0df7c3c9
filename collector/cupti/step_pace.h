// File: step_pace.h
//
// StepPace knows how long the program's steps take, and what counting has made them longer by. The host's clock tells
// both, and it needs care: the host runs ahead of the GPU until the queue of launches is full, and what was launched
// in a step that was counted may run some steps later.
#ifndef RFINJECT_COLLECTOR_CUPTI_STEP_PACE_H_
#define RFINJECT_COLLECTOR_CUPTI_STEP_PACE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rfinject::cupti {

class StepPace {
 public:
  // --- For the thread that ends the steps.

  // The first step begins now.
  void Begin() noexcept;
  // A step has ended and the next one begins.
  struct Ours {
    bool counted = false;    // something of ours made it longer, or may have
    bool called = false;     // launches may have waited for a call of our thread's
    uint64_t ranges_ns = 0;  // what its ranges are expected to cost
  };
  void EndStep(const Ours& ours) noexcept;

  // --- For any thread.

  // A step took so long on the GPU.
  void NoteOnGpu(uint64_t ns) noexcept { gpu_step_ns_.store(ns, std::memory_order_relaxed); }
  // What a step takes by the host's clock; 0: not known.
  uint64_t step_ns() const noexcept { return step_ns_.load(std::memory_order_relaxed); }
  // What steps were longer by so far, together.
  uint64_t longer_ns() const noexcept { return longer_ns_.load(std::memory_order_relaxed); }
  // Of steps with ranges, in which nothing else made a difference: what the ranges were expected to cost, and what
  // the steps were longer by. Both grow.
  uint64_t ranges_expected_ns() const noexcept { return ranges_expected_ns_.load(std::memory_order_relaxed); }
  int64_t ranges_longer_ns() const noexcept { return ranges_longer_ns_.load(std::memory_order_relaxed); }

 private:
  // The median is of so many durations of steps in which nothing was counted.
  static constexpr size_t kDurations = 32;

  std::array<uint64_t, kDurations> durations_{};
  uint64_t duration_count_ = 0, steps_ = 0;
  uint32_t since_call_ = 0;  // steps
  int64_t step_began_ns_ = 0;
  uint32_t steps_behind_ = 0;  // that may still be longer by what was counted
  int64_t stretch_ns_ = 0;     // what the steps since were longer by
  std::atomic<uint64_t> step_ns_{0}, gpu_step_ns_{0}, longer_ns_{0}, ranges_expected_ns_{0};
  std::atomic<int64_t> ranges_longer_ns_{0};
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_STEP_PACE_H_
