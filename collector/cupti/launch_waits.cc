#include "collector/cupti/launch_waits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "collector/cupti/tick_clock.h"
#include "collector/step_waits.h"

namespace rfinject::cupti {
namespace {

// A queue of 1,024 launches is not full so soon after it was empty, also where several threads launch.
constexpr uint32_t kFreeLaunches = 256;
// A usual call is the mean of those that nothing kept; of so many, where there were more.
constexpr double kMeanOf = 256;
// One call in kQuickOnes that nothing keeps is quicker than `quick_`: a quantile that each call moves by a step, of
// so much of a usual call (Robbins and Monro 1951).
constexpr double kQuickOnes = 20, kStep = 1.0 / 1024, kUnknownStep = 1.0 / 16'384;
// A call this much longer than usual, as a rule the first of a kernel, is not one to learn from, though many are.
constexpr double kMuchLonger = 2;
// While the GPU keeps up one call in so many is looked at, until so many of these in a row took much longer.
constexpr uint32_t kLooksAt = 16, kKeptInARow = 8;
// No call that returns takes longer; the clock has jumped.
constexpr double kLongestNs = 1e11;

constinit std::atomic<uint32_t> g_emptied{0};  // how often the queue was empty
constinit std::atomic<bool> g_short{false};    // the GPU keeps up

struct Launching {
  int64_t began = 0;  // TickClock; 0: in no launch
  CallKind kind{};
  bool of_backward = false;
  uint32_t emptied = 0;            // g_emptied, when the thread last saw it
  uint32_t launches = 0;           // since then
  uint32_t begun = 0;              // in all
  uint32_t kept = 0;               // of those that were looked at, the last ones that took much longer
  std::array<UsualCall, 4> usual;  // by kind
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Launching t_launching;

}  // namespace

double UsualCall::Add(int64_t ticks, bool free) noexcept {
  const auto took = static_cast<double>(ticks);
  // The first may load a library.
  if (usual_ == 0 || kMuchLonger * took < usual_) {
    usual_ = quick_ = free_ = took;
    calls_ = 0;
  }
  const double more = took - usual_, step = took < quick_ ? 1 - kQuickOnes : 1;
  if (free) {
    calls_ = std::min(calls_ + 1, kMeanOf);
    usual_ += (took < kMuchLonger * usual_ ? more : usual_) / calls_;
    quick_ += step * kStep * usual_;
    free_ = usual_;
  } else if (step < 0 || usual_ < free_) {
    const double times = 1 + step * kUnknownStep;
    usual_ *= times;
    quick_ *= times;
  }
  return more;
}

void BeginLaunchWait(CallKind kind, bool of_backward) noexcept {
  Launching& launching = t_launching;
  if (launching.begun++ % kLooksAt != 0 && g_short.load(std::memory_order_relaxed)) return;
  launching.kind = kind;
  launching.of_backward = of_backward;
  launching.began = TickClock::Now();
}

void EndLaunchWait(bool done) noexcept {
  Launching& launching = t_launching;
  const int64_t began = std::exchange(launching.began, 0);
  if (began == 0 || !done) return;
  const int64_t ticks = TickClock::Now() - began;
  const double tick_ns = TickClock::TickNs();
  if (ticks < 0 || static_cast<double>(ticks) * tick_ns > kLongestNs) return;
  const uint32_t emptied = g_emptied.load(std::memory_order_relaxed);
  if (std::exchange(launching.emptied, emptied) != emptied) launching.launches = 0;
  const bool keeps_up = g_short.load(std::memory_order_relaxed);
  const bool free = keeps_up || launching.launches++ < kFreeLaunches;
  const double more = launching.usual[static_cast<size_t>(launching.kind)].Add(ticks, free);
  launching.kept = 2 * more > static_cast<double>(ticks) ? launching.kept + 1 : 0;
  if (keeps_up && launching.kept >= kKeptInARow) g_short.store(false, std::memory_order_relaxed);
  AddLaunchWait(static_cast<int64_t>(more * tick_ns), launching.of_backward);
}

void NoteEmptyQueue() noexcept { g_emptied.fetch_add(1, std::memory_order_relaxed); }
void NoteLaunchesBehind(size_t launches) noexcept {
  TickClock::Compare();
  g_short.store(launches < kFreeLaunches, std::memory_order_relaxed);
}

}  // namespace rfinject::cupti
