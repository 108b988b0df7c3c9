#include "collector/cupti/launch_waits.h"

#include <array>
#include <atomic>
#include <utility>

#include "collector/step_waits.h"
#include "collector/sync.h"

namespace rfinject::cupti {
namespace {

// A queue of 1,024 launches is not full so soon after it was empty, also where several threads launch.
constexpr uint32_t kFreeLaunches = 256;
// How fast a usual call follows those that nothing kept, and quicker ones of which that is not known.
constexpr double kFollows = 1.0 / 64, kFollowsDown = 1.0 / 1024;
// A call this much longer than usual, as a rule the first of a kernel, is not one to learn from, though many are.
constexpr double kMuchLonger = 2;

constinit std::atomic<uint32_t> g_emptied{0};  // how often the queue was empty
constinit std::atomic<bool> g_short{false};    // the GPU keeps up

struct Launching {
  int64_t began_ns = 0;  // 0: in no launch
  CallKind kind{};
  bool of_backward = false;
  uint32_t emptied = 0;            // g_emptied, when the thread last saw it
  uint32_t launches = 0;           // since then
  std::array<UsualCall, 4> usual;  // by kind
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Launching t_launching;

}  // namespace

int64_t UsualCall::Add(int64_t ns, bool free) noexcept {
  const auto took = static_cast<double>(ns);
  // The first may load a library.
  if (usual_ns_ == 0 || kMuchLonger * took < usual_ns_) usual_ns_ = took;
  const double more = took - usual_ns_;
  if (took < kMuchLonger * usual_ns_) {
    if (free || more < 0) usual_ns_ += more * (free ? kFollows : kFollowsDown);
  } else if (free) {
    usual_ns_ += usual_ns_ * kFollows;
  }
  return static_cast<int64_t>(more);
}

void BeginLaunchWait(CallKind kind, bool of_backward) noexcept {
  Launching& launching = t_launching;
  launching.kind = kind;
  launching.of_backward = of_backward;
  launching.began_ns = MonotonicNs();
}

void EndLaunchWait(bool done) noexcept {
  Launching& launching = t_launching;
  const int64_t began_ns = std::exchange(launching.began_ns, 0);
  if (began_ns == 0 || !done) return;
  const int64_t ns = MonotonicNs() - began_ns;
  const uint32_t emptied = g_emptied.load(std::memory_order_relaxed);
  if (std::exchange(launching.emptied, emptied) != emptied) launching.launches = 0;
  const bool free = g_short.load(std::memory_order_relaxed) || launching.launches++ < kFreeLaunches;
  AddLaunchWait(launching.usual[static_cast<size_t>(launching.kind)].Add(ns, free), launching.of_backward);
}

void NoteEmptyQueue() noexcept { g_emptied.fetch_add(1, std::memory_order_relaxed); }
void NoteLaunchesBehind(size_t launches) noexcept {
  g_short.store(launches < kFreeLaunches, std::memory_order_relaxed);
}

}  // namespace rfinject::cupti
