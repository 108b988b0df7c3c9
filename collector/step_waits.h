// File: step_waits.h
//
// Adds up what a thread of the program waits for while a step runs: a batch of its data loader, or the GPU. What
// sees the wait begin and end (injector/torch/scopes, the hardware source) calls this on the waiting thread; the
// Recorder takes the sums when that thread ends the step. Waits of other threads are not taken: they hold up no step.
//
// A wait costs two reads of the clock; nothing is allocated, locked or called. Launches wait where the queue of the
// GPU is full, which the hardware source finds by their duration (cupti/launch_waits.h).
#ifndef RFINJECT_COLLECTOR_STEP_WAITS_H_
#define RFINJECT_COLLECTOR_STEP_WAITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/wire/step_times.h"

namespace rfinject {

// Bits of Step.watched, and one that no step says.
enum Watched : uint32_t {
  kDataWaits = wire::kWatchedDataWaits,
  kGpuWaits = wire::kWatchedGpuWaits,
  kGpuBusy = wire::kWatchedGpuBusy,
  kLaunchWaits = wire::kWatchedLaunchWaits,
  kOurOwn = 16
};

// Tells that waits of this kind are seen from now on, so that no wait means that nothing was waited for; or, with
// `seen` false, that they are not seen any more.
void WatchWaits(Watched kind, bool seen = true) noexcept;
uint32_t WatchedWaits() noexcept;

// --- For the calling thread. A wait inside another one is part of that one; an end without a beginning is ignored.
// kOurOwn stands for what this library waits for, which the program does not wait for.
void BeginWait(Watched kind) noexcept;
void EndWait(Watched kind) noexcept;

// A launch of the calling thread took `ns` longer than a usual one, or was quicker (below 0): where the queue of the
// GPU is full, the call that launches waits. `of_backward`: the thread that ends the steps waits for the calling one,
// which is autograd's, so that the wait is its own.
void AddLaunchWait(int64_t ns, bool of_backward) noexcept;

struct StepWaits {
  uint64_t data_ns = 0;
  uint64_t gpu_ns = 0;  // in calls that wait for the GPU, and in launches
};
// When a thread waited for a batch, monotonic.
struct BatchWait {
  int64_t began_ns = 0, ended_ns = 0;
};
// The calling thread's waits for batches that TakeWaits has not taken, at most the last few: what the step that runs
// has waited for. Returns how many it has written into `waits`, the oldest first.
inline constexpr size_t kBatchWaitsKept = 8;
size_t CopyBatchWaits(std::span<BatchWait, kBatchWaitsKept> waits) noexcept;

// Takes the calling thread's waits since the last call. No step ends in the middle of a wait, so one whose end was
// not seen is forgotten.
StepWaits TakeWaits() noexcept;
// Forgets the calling thread's waits but the last one for a batch, if it ended within the last second: a step that
// begins now has been given that batch already. Returns when the step begins (monotonic, ns): with that wait, or now.
int64_t KeepWaitForBatch() noexcept;

// A GPU with a clock of its own, which jumps where a real GPU would have the host wait (docs/use/VIRTUAL_GPU.md).
struct GpuClock {
  uint64_t skipped_ns = 0;  // that it has jumped since its beginning
  uint64_t busy_ns = 0;     // that its streams were given to do
};
// Fills `clock`; false while the program uses no such GPU. Null where there can be none.
using GpuClockFunction = bool (*)(GpuClock* clock) noexcept;
inline constinit std::atomic<GpuClockFunction> g_gpu_clock{nullptr};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_STEP_WAITS_H_
