// File: work.h
//
// Work is what the program does on the GPU: launches that happen now, and those that are captured into a CUDA graph
// and happen whenever the graph is launched.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_WORK_H_
#define RFINJECT_COLLECTOR_ESTIMATE_WORK_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <span>

#include "collector/recorder.h"
#include "collector/sync.h"

namespace rfinject::estimate {

// `times` launches that are alike.
struct Launches {
  LaunchRecord record;
  uint64_t times = 0;
};

class Work {
 public:
  explicit Work(Recorder& recorder) : recorder_(recorder) {}

  // Records the launches of one operator, at most three kinds, which take `ns` of the GPU's time; what is captured is
  // kept, and recorded whenever the graph is launched.
  void Happen(std::span<const Launches> launches, uint64_t ns) noexcept;
  // Records captured work, by the number that the virtual GPU was told; 0 ends the graph's launch.
  void OnReplay(uint64_t what) noexcept;
  // Whether an optimizer's step was captured and neither it nor another one has run since. Asking forgets it.
  bool TakeOptimizerCaptured() noexcept { return optimizer_captured_.exchange(false, std::memory_order_relaxed); }

 private:
  // The launches of one operator: those of itself, and those that it repeats.
  using OfOperator = std::array<Launches, 3>;

  void Record(const Launches& launches) noexcept;
  void Keep(std::span<const Launches> launches, uint64_t ns) noexcept;

  Recorder& recorder_;
  // The thread that captures or launches an optimizer's step writes it, the one that ends the step takes it, mostly
  // the same thread. Relaxed: nothing is handed over with it.
  std::atomic<bool> optimizer_captured_{false};
  Mutex lock_;
  std::deque<OfOperator> captured_ RFINJECT_GUARDED_BY(lock_);
};

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_WORK_H_
