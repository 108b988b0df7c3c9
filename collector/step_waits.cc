#include "collector/step_waits.h"

#include "collector/sync.h"

namespace rfinject {
namespace {

constinit std::atomic<uint32_t> g_watched{0};

struct Waits {
  StepWaits sums;
  int64_t began_ns = 0;                            // monotonic, of the outermost wait that lasts
  uint32_t outer = 0;                              // its kind; 0: nothing is waited for
  int64_t batch_began_ns = 0, batch_ended_ns = 0;  // the last wait for a batch that was not taken
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
    waits.batch_began_ns = waits.began_ns;
    waits.batch_ended_ns = now;
  }
  if (kind == kGpuWaits) waits.sums.gpu_ns += ns;
}

StepWaits TakeWaits() noexcept {
  Waits& waits = t_waits;
  const StepWaits taken = waits.sums;
  waits.sums = {};
  waits.outer = 0;
  waits.batch_ended_ns = 0;
  return taken;
}

int64_t KeepWaitForBatch() noexcept {
  constexpr int64_t kAtHand = 1'000'000'000;  // a batch that was waited for longer ago is another step's
  const int64_t now = MonotonicNs();
  Waits& waits = t_waits;
  const int64_t began = waits.batch_began_ns, ended = waits.batch_ended_ns;
  (void)TakeWaits();
  if (ended == 0 || now - ended > kAtHand || ended < began) return now;
  waits.sums.data_ns = static_cast<uint64_t>(ended - began);
  return began;
}

}  // namespace rfinject
