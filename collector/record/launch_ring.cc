#include "collector/record/launch_ring.h"

#include <sys/mman.h>

#include <new>

namespace rfinject {

LaunchRing* LaunchRing::Create() noexcept {
  // Mapped rather than malloc'ed: pages that are never reached cost nothing, and the program's allocator (which may
  // itself be under test, or be a profiler's) does not see us.
  void* memory =
      mmap(nullptr, sizeof(LaunchRing), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // Default initialisation leaves units_ untouched.
  return memory == MAP_FAILED ? nullptr : new (memory) LaunchRing;
}

LaunchRing::PushResult LaunchRing::Push(const StepRecord& step) noexcept {
  LaunchRecord record;
  record.sample_count = kStepMark;
  std::memcpy(static_cast<void*>(record.samples.data()), &step, sizeof step);
  return PushRecord(record, kHeaderUnits + kStepUnits);
}

bool LaunchRing::PushMark(const RingPosition& position) noexcept {
  LaunchRecord record;
  record.sample_count = kPositionMark;
  std::memcpy(static_cast<void*>(record.samples.data()), &position, sizeof position);
  if (PushRecord(record, kHeaderUnits + kPositionUnits) == PushResult::kDropped) return false;
  position_ = position;
  return true;
}

}  // namespace rfinject
