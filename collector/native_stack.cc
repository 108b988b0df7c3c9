#include "collector/native_stack.h"

#include <array>

#include "collector/recorder.h"

namespace rfinject {
namespace {

// Hashes of the identities that have a stack, insert only. Beyond what fits no stacks are taken: a program with that
// many keys in no layer makes new ones all the time.
constexpr size_t kSlots = 16384;
constexpr size_t kProbes = 8;
std::array<std::atomic<uint64_t>, kSlots> g_taken;

// The slot of `hash`: its own, or the free one that it can have; null when there is no room.
std::atomic<uint64_t>* SlotOf(uint64_t hash) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    std::atomic<uint64_t>& slot = g_taken[(hash + probe) % kSlots];
    const uint64_t now = slot.load(std::memory_order_relaxed);
    if (now == hash || now == 0) return &slot;
  }
  return nullptr;
}

}  // namespace

void TakeStackOnce(const LaunchIdentity& identity, Recorder& recorder) noexcept {
  if (identity.site.layer != 0) return;
  const NativeStackFunction take = g_native_stack.load(std::memory_order_acquire);
  if (take == nullptr) return;
  const uint64_t hash = HashOf(identity) | 1;
  std::atomic<uint64_t>* slot = SlotOf(hash);
  if (slot == nullptr || slot->load(std::memory_order_relaxed) == hash) return;
  std::array<NativeFrame, kMaxNativeFrames> frames;
  const size_t count = take(frames);
  if (count == 0) return;  // another thread was at it: the next launch will do
  slot->store(hash, std::memory_order_relaxed);
  recorder.NoteStack(identity, std::span(frames).first(count));
}

}  // namespace rfinject
