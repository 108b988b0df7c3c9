#include "collector/cupti/allocator_memory.h"

#include <algorithm>

#include "collector/memory_report.h"
#include "collector/site.h"

namespace rfinject::cupti {
namespace {

constinit std::atomic<AllocatorMemory*> g_memory{nullptr};

void Raise(std::atomic<uint64_t>* most, uint64_t value) noexcept {
  uint64_t known = most->load(std::memory_order_relaxed);
  while (value > known && !most->compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

void AllocatorMemory::Listen() noexcept {
  g_memory.store(this, std::memory_order_release);
  g_memory_listener.store(&OnEvent, std::memory_order_release);
}

void AllocatorMemory::OnEvent(const MemoryEvent& event) noexcept {
  AllocatorMemory* const memory = g_memory.load(std::memory_order_acquire);
  if (memory->following_.load(std::memory_order_relaxed) || event.refused) return memory->Follow(event);
  if (event.allocated > memory->most_.load(std::memory_order_relaxed)) Raise(&memory->later_, event.allocated);
}

void AllocatorMemory::Follow(const MemoryEvent& event) noexcept {
  if (event.refused) {
    watch_.OnRefused(event.device, static_cast<uint64_t>(event.bytes), CurrentSite());
    return ReportMemory(&watch_, recorder_);
  }
  const Site site = event.bytes > 0 ? CurrentSite() : Site{};
  watch_.OnMemory(event.device, event.address, event.bytes, event.reserved, site, recorder_.CurrentStep());
  Raise(&most_, event.allocated);
}

void AllocatorMemory::OnStepEnd(uint64_t step) noexcept {
  if (following_.load(std::memory_order_relaxed)) {
    if (watch_.TakePeak(&told_)) {
      recorder_.NoteMemoryPeak(told_);
      told_step_ = step;
    } else if (step >= told_step_ + kQuietSteps) {
      following_.store(false, std::memory_order_relaxed);
    }
    return;
  }
  const uint64_t later = later_.load(std::memory_order_relaxed);
  if (later <= told_.later_bytes) return;
  told_.later_bytes = later;
  recorder_.NoteMemoryPeak(told_);
}

}  // namespace rfinject::cupti
