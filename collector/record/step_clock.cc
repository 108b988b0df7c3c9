#include "collector/record/step_clock.h"

#include <algorithm>

#include "collector/step_waits.h"
#include "collector/sync.h"

namespace rfinject {

void StepClock::Start() noexcept {
  int64_t unset = 0;
  if (start_ns_.load(std::memory_order_relaxed) == 0) {
    if (start_ns_.compare_exchange_strong(unset, MonotonicNs(), std::memory_order_relaxed)) (void)TakeGpuClock();
  }
}

void StepClock::Restart() noexcept {
  // The batch that the step computes with was waited for before anything of the step ran.
  start_ns_.store(KeepWaitForBatch(), std::memory_order_relaxed);
  (void)TakeGpuClock();
}

int64_t StepClock::EndStep(StepRecord* step) noexcept {
  Start();
  const int64_t now = MonotonicNs();
  const int64_t start = start_ns_.exchange(now, std::memory_order_relaxed);
  step->duration_ns = start < now ? static_cast<uint64_t>(now - start) : 0;
  step->start_unix_ns = UnixNs() - static_cast<int64_t>(step->duration_ns);
  return now;
}

StepClock::GpuTimes StepClock::TakeGpuClock() noexcept {
  GpuClock now;
  const GpuClockFunction read = g_gpu_clock.load(std::memory_order_relaxed);
  if (read == nullptr || !read(&now)) return {};
  const uint64_t skipped = gpu_skipped_ns_.exchange(now.skipped_ns, std::memory_order_relaxed);
  const uint64_t busy = gpu_busy_ns_.exchange(now.busy_ns, std::memory_order_relaxed);
  return {.known = true,
          .skipped_ns = now.skipped_ns - std::min(skipped, now.skipped_ns),
          .busy_ns = now.busy_ns - std::min(busy, now.busy_ns)};
}

void StepClock::AddWaits(StepRecord* step) noexcept {
  const StepWaits waits = TakeWaits();
  step->watched = WatchedWaits();
  step->data_wait_ns = waits.data_ns;
  step->gpu_wait_ns = waits.gpu_ns;
  const GpuTimes gpu = TakeGpuClock();
  if (!gpu.known) return;
  step->duration_ns += gpu.skipped_ns;
  step->gpu_wait_ns += gpu.skipped_ns;
  step->gpu_busy_ns = gpu.busy_ns;
  step->watched |= kGpuWaits | kGpuBusy;
}

void StepClock::ResetInForkedChild() noexcept { start_ns_.store(0, std::memory_order_relaxed); }

}  // namespace rfinject
