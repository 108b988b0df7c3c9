#include "collector/step_waits.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collector/sync.h"

namespace rfinject {
namespace {

constinit std::atomic<uint32_t> g_watched{0};
// How much longer launches of backward passes took than usual ones, which single ones may be quicker than.
constinit std::atomic<int64_t> g_backward_ns{0};

struct Waits {
  StepWaits sums;
  int64_t launches_ns = 0;                         // how much longer launches took than usual ones
  int64_t began_ns = 0;                            // monotonic, of the outermost wait that lasts
  uint32_t outer = 0;                              // its kind; 0: nothing is waited for
  std::array<BatchWait, kBatchWaitsKept> batches;  // that were not taken, in a ring
  size_t batch_count = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Waits t_waits{};

}  // namespace

void WatchWaits(Watched kind, bool seen) noexcept {
  if (seen) {
    g_watched.fetch_or(kind, std::memory_order_relaxed);
  } else {
    g_watched.fetch_and(~static_cast<uint32_t>(kind), std::memory_order_relaxed);
  }
}

uint32_t WatchedWaits() noexcept { return g_watched.load(std::memory_order_relaxed); }

void BeginWait(Watched kind) noexcept {
  Waits& waits = t_waits;
  if (waits.outer != 0) return;
  waits.outer = kind;
  waits.began_ns = MonotonicNs();
}

void EndWait(Watched kind) noexcept {
  Waits& waits = t_waits;
  if (waits.outer != kind) return;
  waits.outer = 0;
  const int64_t now = MonotonicNs();
  const uint64_t ns = now > waits.began_ns ? static_cast<uint64_t>(now - waits.began_ns) : 0;
  if (kind == kDataWaits) {
    waits.sums.data_ns += ns;
    waits.batches[waits.batch_count++ % kBatchWaitsKept] = {waits.began_ns, now};
  }
  if (kind == kGpuWaits) waits.sums.gpu_ns += ns;
}

void AddLaunchWait(int64_t ns, bool of_backward) noexcept {
  if (of_backward) {
    g_backward_ns.fetch_add(ns, std::memory_order_relaxed);
  } else {
    t_waits.launches_ns += ns;
  }
}

StepWaits TakeWaits() noexcept {
  Waits& waits = t_waits;
  StepWaits taken = std::exchange(waits.sums, {});
  const int64_t launches_ns =
      std::exchange(waits.launches_ns, 0) + g_backward_ns.exchange(0, std::memory_order_relaxed);
  taken.gpu_ns += static_cast<uint64_t>(std::max<int64_t>(0, launches_ns));
  waits.outer = 0;
  waits.batch_count = 0;
  return taken;
}

int64_t KeepWaitForBatch() noexcept {
  constexpr int64_t kAtHand = 1'000'000'000;  // a batch that was waited for longer ago is another step's
  const int64_t now = MonotonicNs();
  Waits& waits = t_waits;
  BatchWait last;
  if (waits.batch_count > 0) last = waits.batches[(waits.batch_count - 1) % kBatchWaitsKept];
  const auto [began, ended] = last;
  (void)TakeWaits();
  if (ended == 0 || now - ended > kAtHand || ended < began) return now;
  waits.sums.data_ns = static_cast<uint64_t>(ended - began);
  waits.batches[waits.batch_count++] = last;
  return began;
}

size_t CopyBatchWaits(std::span<BatchWait, kBatchWaitsKept> waits) noexcept {
  const size_t count = std::min(t_waits.batch_count, kBatchWaitsKept);
  for (size_t i = 0; i < count; ++i) {
    waits[i] = t_waits.batches[(t_waits.batch_count - count + i) % kBatchWaitsKept];
  }
  return count;
}

}  // namespace rfinject
