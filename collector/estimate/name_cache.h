// File: name_cache.h
//
// Names that were interned, found again without a lock.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_NAME_CACHE_H_
#define RFINJECT_COLLECTOR_ESTIMATE_NAME_CACHE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rfinject::estimate {

// Interned names by the hash of (operator, signature), shared by all threads without a lock. An entry is two words,
// written and read one at a time; the first is the hash XORed with the second, so an entry whose two words
// are of two threads does not match any hash and reads as a miss (Hyatt's transposition table).
class NameCache {
 public:
  struct Ids {
    uint32_t kernel = 0;
    uint32_t signature = 0;
  };

  bool Find(uint64_t hash, Ids& ids) const {
    const Entry& entry = entries_[PlaceOf(hash)];
    const uint64_t packed = entry.ids.load(std::memory_order_relaxed);
    if (packed == 0 || (entry.check.load(std::memory_order_relaxed) ^ packed) != hash) return false;
    ids = {static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
    return true;
  }

  void Store(uint64_t hash, Ids ids) {
    const uint64_t packed = static_cast<uint64_t>(ids.kernel) << 32 | ids.signature;
    Entry& entry = entries_[PlaceOf(hash)];
    entry.ids.store(packed, std::memory_order_relaxed);
    entry.check.store(hash ^ packed, std::memory_order_relaxed);
  }

 private:
  // A training step of the larger torchvision models has some hundred different signatures.
  static constexpr size_t kEntries = 8192;
  // The low bits of a product, which some hashes are, depend on the low bits of its factors alone. Addresses have
  // mostly zeros there.
  static size_t PlaceOf(uint64_t hash) { return (hash ^ hash >> 32) % kEntries; }
  struct Entry {
    std::atomic<uint64_t> ids{0};
    std::atomic<uint64_t> check{0};
  };
  std::array<Entry, kEntries> entries_;
};

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_NAME_CACHE_H_
