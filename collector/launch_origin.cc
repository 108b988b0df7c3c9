#include "collector/launch_origin.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collector/native_stack.h"
#include "collector/recorder.h"
#include "collector/source_line.h"

namespace rfinject {
namespace {

// The hashes of the identities that were seen; the lowest bits say what is known of them. Nothing is ever removed. A
// look-up comes with every launch, amid the program's own work, which leaves little of ours in the caches: so a
// bucket is a cache line, and one table is filled after the other, because the few keys that most programs have shall
// lie close together. There is room for as many keys as a trace has (LaunchTable::kMaxKeys); for keys beyond that
// nothing is found out.
struct alignas(64) Bucket {
  std::array<std::atomic<uint64_t>, 8> slots;
};
constexpr std::array<size_t, 3> kTableBuckets = {size_t{1} << 9, size_t{1} << 12, size_t{1} << 14};
constexpr size_t kBuckets = kTableBuckets[0] + kTableBuckets[1] + kTableBuckets[2];
constexpr uint64_t kStackKnown = 1, kLineKnown = 2, kAllKnown = kStackKnown | kLineKnown;
constinit std::array<Bucket, kBuckets> g_seen{};

// The slot of `hash`: its own, or a free one; null when there is no room.
std::atomic<uint64_t>* SlotOf(uint64_t hash) noexcept {
  size_t begin = 0;
  for (const size_t buckets : kTableBuckets) {
    for (std::atomic<uint64_t>& slot : g_seen[begin + (hash >> 2) % buckets].slots) {
      const uint64_t now = slot.load(std::memory_order_relaxed);
      if ((now & ~kAllKnown) == hash || now == 0) return &slot;
    }
    begin += buckets;
  }
  return nullptr;
}

// Takes and notes the stack. Returns false when it must be asked for again.
bool NoteStack(NativeStackFunction take, const LaunchIdentity& identity, Recorder& recorder) noexcept {
  std::array<NativeFrame, kMaxNativeFrames> frames;
  const size_t count = take(frames);
  if (count == 0) return false;  // the stack cannot be taken now
  recorder.NoteStack(identity, std::span(frames).first(count));
  return true;
}

bool NoteLine(SourceLineFunction find, const LaunchIdentity& identity, Recorder& recorder) noexcept {
  uint32_t line = 0;
  if (!find(identity.site, recorder, &line)) return false;
  if (line != 0) recorder.NoteSourceLine(identity, line);
  return true;
}

}  // namespace

void NoteOriginOnce(const LaunchIdentity& identity, Recorder& recorder) noexcept {
  const NativeStackFunction take =
      identity.site.layer == 0 ? g_native_stack.load(std::memory_order_acquire) : nullptr;
  const SourceLineFunction find = g_source_line.load(std::memory_order_acquire);
  if (take == nullptr && find == nullptr) return;
  const uint64_t hash = HashOf(identity) & ~kAllKnown;
  std::atomic<uint64_t>* slot = SlotOf(hash);
  if (slot == nullptr) return;
  const uint64_t now = slot->load(std::memory_order_relaxed);
  const uint64_t wanted = (take != nullptr ? kStackKnown : 0) | (find != nullptr ? kLineKnown : 0);
  const uint64_t missing = wanted & ~((now & ~kAllKnown) == hash ? now : 0);
  if (missing == 0) [[likely]]
    return;
  uint64_t known = wanted & ~missing;
  if ((missing & kStackKnown) != 0 && NoteStack(take, identity, recorder)) known |= kStackKnown;
  if ((missing & kLineKnown) != 0 && NoteLine(find, identity, recorder)) known |= kLineKnown;
  // Two threads may both have asked: the recorder keeps what came first.
  slot->store(hash | known, std::memory_order_relaxed);
}

}  // namespace rfinject
