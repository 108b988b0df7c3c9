#include "injector/torch/fused_calls.h"

#include <array>
#include <atomic>

#include "collector/sync.h"

namespace rfinject {
namespace {

// How many calls are kept between a forward and its backward: the number of layers, times the forwards that a loop
// runs before it goes backward.
constexpr size_t kMostCalls = 512;
// How long a caller waits for the lock, ns. The lock is held for a look-up only. A forked child may inherit it
// locked; its callers then go on without the kept calls.
constexpr int64_t kLockWaitNs = 10'000'000;

struct Kept {
  FusedCall call;
  bool ran = false;             // a node of it, in whichever pass
  uint64_t last = 0, pass = 0;  // of the node that ran last
};

Mutex g_lock;
std::array<Kept*, kMostCalls> g_kept RFINJECT_GUARDED_BY(g_lock) = {};
size_t g_next RFINJECT_GUARDED_BY(g_lock) = 0;
std::atomic<bool> g_any{false};

}  // namespace

void RememberFusedCall(const FusedCall& call) {
  if (!g_lock.LockFor(kLockWaitNs)) return;
  const HeldLock held(g_lock);
  Kept*& kept = g_kept[g_next];
  if (kept == nullptr) kept = new Kept;  // used again and again, never freed: the process may end at any time
  kept->call = call;
  kept->ran = false;
  g_next = (g_next + 1) % kMostCalls;
  g_any.store(true, std::memory_order_release);
}

bool HasFusedCalls() noexcept { return g_any.load(std::memory_order_acquire); }

FusedNode FindFusedCall(const NodeNumber& node, FusedCall* call) {
  if (!g_lock.LockFor(kLockWaitNs)) return FusedNode::kNone;
  const HeldLock held(g_lock);
  for (size_t i = 1; i <= kMostCalls; ++i) {
    Kept* const kept = g_kept[(g_next + kMostCalls - i) % kMostCalls];
    if (kept == nullptr) break;
    const FusedCall& of = kept->call;
    if (of.thread != node.thread || node.sequence < of.from || node.sequence >= of.to) continue;
    const bool first = !kept->ran || node.pass != kept->pass || node.sequence > kept->last;
    kept->ran = true;
    kept->last = node.sequence;
    kept->pass = node.pass;
    if (!first) return FusedNode::kInside;
    *call = kept->call;
    return FusedNode::kFirst;
  }
  return FusedNode::kNone;
}

}  // namespace rfinject
