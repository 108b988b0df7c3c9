#include "collector/estimate/work.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "collector/launch_origin.h"
#include "collector/step_end.h"
#include "collector/virtual_gpu.h"

namespace rfinject::estimate {
namespace {

constexpr size_t kMaxCaptured = 1 << 17;  // operators, about 70 MB
constexpr int64_t kLockWaitNs = 1'000'000'000;

// The graph that this thread launches has held an optimizer's step so far.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_optimizer_stepped = false;

bool IsOptimizer(std::span<const Launches> work) { return work[0].record.identity.site.phase == Phase::kOptimizer; }

}  // namespace

void Work::Happen(std::span<const Launches> work, uint64_t ns) noexcept {
  if (VirtualGpuCaptured()) {
    Keep(work, ns);
    return;
  }
  if (IsOptimizer(work)) optimizer_captured_.store(false, std::memory_order_relaxed);
  TellVirtualGpu(ns);
  for (const Launches& launches : work) Record(launches);
  recorder_.MayWrite();
}

void Work::Record(const Launches& launches) noexcept {
  if (launches.times == 0) return;
  NoteOriginOnce(launches.record.identity, recorder_);
  // A long sequence makes more launches than a ring holds.
  constexpr uint64_t kBetweenTurns = 1024;
  for (uint64_t i = 0; i < launches.times; ++i) {
    recorder_.Record(launches.record);
    if (i % kBetweenTurns != kBetweenTurns - 1) continue;
    recorder_.MayWrite();
    recorder_.WaitForRoom();
  }
}

void Work::Keep(std::span<const Launches> work, uint64_t ns) noexcept try {
  if (IsOptimizer(work)) optimizer_captured_.store(true, std::memory_order_relaxed);
  OfOperator kept;
  std::ranges::copy(work, kept.begin());
  uint64_t what = 0;
  {
    if (!lock_.LockFor(kLockWaitNs)) return recorder_.CountDrop("operators in a CUDA graph");
    const HeldLock held(lock_);
    // The limit keeps a program that captures again and again from filling our memory.
    if (captured_.size() >= kMaxCaptured) return recorder_.CountDrop("operators in CUDA graphs beyond the first");
    captured_.push_back(kept);
    what = captured_.size();
  }
  for (const Launches& launches : work) NoteOriginOnce(launches.record.identity, recorder_);
  TellVirtualGpuCaptured(ns, what);
} catch (const std::exception&) {
  recorder_.CountDrop("operators in a CUDA graph");
}

void Work::OnReplay(uint64_t what) noexcept {
  if (what == 0) {
    if (std::exchange(t_optimizer_stepped, false)) EndStepOfProgram();
    return;
  }
  OfOperator work;
  {
    if (!lock_.LockFor(kLockWaitNs)) return recorder_.CountDrop("launches of CUDA graphs");
    const HeldLock held(lock_);
    if (what > captured_.size()) return;
    work = captured_[what - 1];
  }
  t_optimizer_stepped |= IsOptimizer(work);
  for (const Launches& launches : work) Record(launches);
  recorder_.MayWrite();
  // A graph is launched faster than its launches are written.
  recorder_.WaitForRoom();
}

}  // namespace rfinject::estimate
