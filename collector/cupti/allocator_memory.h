// File: allocator_memory.h
//
// AllocatorMemory follows what PyTorch's allocator gives out and takes back on all GPUs of the process, so that the
// trace says which layers and phases had the memory when the most was allocated. To note a piece costs the program a
// tenth of a microsecond or two, so it ends when no step of a long row has had more than those before; later pieces
// cost two loads, and only how much more they became is known.
#ifndef RFINJECT_COLLECTOR_CUPTI_ALLOCATOR_MEMORY_H_
#define RFINJECT_COLLECTOR_CUPTI_ALLOCATOR_MEMORY_H_

#include <atomic>
#include <cstdint>

#include "collector/memory_events.h"
#include "collector/memory_peak.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class AllocatorMemory {
 public:
  explicit AllocatorMemory(Recorder& recorder) noexcept : recorder_(recorder) {}

  // Begins to listen (memory_events.h). Once in a process; the object is never destroyed.
  void Listen() noexcept;
  // Tells the recorder of what was more than before. For the thread that ends the steps.
  void OnStepEnd(uint64_t step) noexcept;
  // Listens no more. Any thread may call this.
  static void Stop() noexcept { g_memory_listener.store(nullptr, std::memory_order_release); }

 private:
  static constexpr uint64_t kQuietSteps = 256;  // after which nothing is followed any more

  static void OnEvent(const MemoryEvent& event) noexcept;
  void Follow(const MemoryEvent& event) noexcept;

  Recorder& recorder_;
  MemoryWatch watch_;
  // Threads that allocate read it; the thread that ends the steps writes it.
  std::atomic<bool> following_{true};
  // The most that a device had so far, and afterwards when nothing was followed. Relaxed: a late value counts later.
  std::atomic<uint64_t> most_{0}, later_{0};
  // Of the thread that ends the steps.
  MemoryPeak told_;
  uint64_t told_step_ = 0;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_ALLOCATOR_MEMORY_H_
