// File: launch_table.h
//
// LaunchTable holds statistics for each launch key, as increments since they were last taken. It is an
// open-addressing table, and is not thread-safe: the recorder's lock is held around every call.
#ifndef RFINJECT_COLLECTOR_RECORD_LAUNCH_TABLE_H_
#define RFINJECT_COLLECTOR_RECORD_LAUNCH_TABLE_H_

#include <array>
#include <cstdint>

#include "collector/recorder.h"
#include "proto/wire/stat.h"

namespace rfinject {

using wire::Uint128;

// Exact sums over the samples of one metric of a key.
struct MetricSum : wire::Stat {
  uint32_t metric = 0;
  uint32_t next = 0;  // index + 1 of the key's next metric; 0: none
  // The one value that all samples had that were taken from the table before.
  static constexpr uint64_t kNoneTaken = UINT64_MAX, kSeveral = UINT64_MAX - 1;
  uint64_t taken_value = kNoneTaken;
};

class LaunchTable {
 public:
  // A program that makes new shapes in every step would make new keys without end. From this number on a new key is
  // kept under its layer, phase and operator only (no signature, no grid); from twice this number on it is dropped.
  static constexpr uint32_t kMaxKeys = 100'000;

  struct Key {
    LaunchIdentity identity;
    uint64_t launches = 0;  // since the last Take
    // Records with the samples of `last` and no others, which are in no MetricSum yet. A key's launches are mostly
    // alike, as an estimate's always are, and to count one costs less than to add its samples up.
    uint64_t alike = 0;
    uint32_t first_metric = 0;  // index + 1
    uint32_t next_changed = 0;  // index + 1; kLast ends the list; 0: unchanged
    bool defined = false;       // its LaunchKey message was written
    // What is taken repeats what was taken before: each launch has one sample of every metric, of the one value that
    // all had before. Set by TakeOne.
    bool repeats = false;
    uint8_t last_count = 0;
    std::array<Sample, kMaxSamplesPerRecord> last;  // of the key's last record; their metrics have sums
  };

  enum class AddResult : uint8_t { kOk, kCoarsened, kOutOfMemory, kTooMany };
  LaunchTable() = default;
  ~LaunchTable();
  LaunchTable(const LaunchTable&) = delete;
  LaunchTable& operator=(const LaunchTable&) = delete;

  // Adds a launch. `*id` receives the number by which the file knows the key, from 1; 0 when it was not added.
  AddResult Add(const LaunchRecord& record, uint32_t* id = nullptr) noexcept;

  // Adds all increments of `other`, which has none afterwards. Returns kOk, or what happened to some of them. Calls
  // each(uint32_t id, const LaunchIdentity&, uint64_t launches) for every key that was added to.
  template <typename Each>
  AddResult TakeAllOf(LaunchTable* other, Each each) {
    AddResult result = AddResult::kOk;
    while (other->TakeOne([this, &result, &each](uint32_t, const Key& from, auto metrics) {
      uint32_t index = 0;
      AddResult added = AddResult::kOk;
      Key* key = ChangedKey(from.identity, &index, &added);
      if (added != AddResult::kOk) result = added;
      if (key == nullptr) return;
      key->launches += from.launches;
      metrics([&](const MetricSum& samples) {
        MetricSum* sum = SumOf(key, samples.metric);
        if (sum == nullptr) {
          result = AddResult::kOutOfMemory;
        } else {
          sum->Merge(samples);
        }
      });
      each(index + 1, from.identity, from.launches);
    })) {
    }
    return result;
  }

  // Gives new numbers to all keys that come from now on, also to those that are known. What the others have waits to
  // be taken, as before.
  void BeginAnew() noexcept;

  // The number by which the file knows the key; 0 where its definition was not written.
  uint32_t NumberOf(const LaunchIdentity& identity) noexcept;

  // How many numbers were given.
  uint32_t size() const noexcept { return keys_.size; }
  bool HasChanges() const noexcept { return changed_ != kLast; }

  // Calls visit(const Key&) for every key that has increments.
  template <typename Visit>
  void ForEachChanged(Visit visit) noexcept {
    for (uint32_t at = changed_; at != kLast; at = keys_[at - 1].next_changed) {
      visit(static_cast<const Key&>(keys_[at - 1]));
    }
  }

  // Calls define(uint32_t id, const LaunchIdentity&) for every key that has increments and is not defined, until that
  // returns false; keys for which it returned true are defined. Returns whether all are.
  template <typename Define>
  bool DefineChanged(Define define) noexcept {
    for (uint32_t at = changed_; at != kLast; at = keys_[at - 1].next_changed) {
      Key& key = keys_[at - 1];
      if (!key.defined) key.defined = define(at, static_cast<const LaunchIdentity&>(key.identity));
      if (!key.defined) return false;
    }
    return true;
  }

  // Takes one key with increments: calls visit(uint32_t id, const Key& key, metrics), and then sets the increments
  // to zero. `metrics` takes a function(const MetricSum&) and calls it for every metric that has samples. Returns
  // false when no key has increments.
  template <typename Visit>
  bool TakeOne(Visit visit) {
    if (changed_ == kLast) return false;
    const uint32_t index = changed_ - 1;
    Key& key = keys_[index];
    changed_ = key.next_changed;
    key.next_changed = 0;
    AddAlike(&key);
    key.repeats = Repeats(key);
    visit(index + 1, static_cast<const Key&>(key), [this, &key](auto&& each) {
      for (uint32_t m = key.first_metric; m != 0; m = sums_[m - 1].next) {
        if (sums_[m - 1].n != 0) each(static_cast<const MetricSum&>(sums_[m - 1]));
      }
    });
    key.launches = 0;
    for (uint32_t m = key.first_metric; m != 0; m = sums_[m - 1].next) {
      const MetricSum& sum = sums_[m - 1];
      sums_[m - 1] = MetricSum{{}, sum.metric, sum.next, TakenValue(sum)};
    }
    return true;
  }

 private:
  static constexpr uint32_t kLast = UINT32_MAX;

  // Grows in blocks, so that nothing is moved and no step of growing takes long.
  template <typename T>
  struct Blocks {
    static constexpr uint32_t kBlock = 1024;
    T** blocks = nullptr;
    uint32_t block_count = 0;
    uint32_t size = 0;
    T& operator[](uint32_t i) noexcept { return blocks[i / kBlock][i % kBlock]; }
    // A new element at the end; null when memory ran out.
    T* Append() noexcept;
  };

  bool Repeats(const Key& key) noexcept {
    for (uint32_t m = key.first_metric; m != 0; m = sums_[m - 1].next) {
      const MetricSum& sum = sums_[m - 1];
      if (sum.n != key.launches || sum.min != sum.max || sum.min != sum.taken_value ||
          sum.taken_value >= MetricSum::kSeveral) {
        return false;
      }
    }
    return key.first_metric != 0;
  }
  static uint64_t TakenValue(const MetricSum& sum) noexcept {
    if (sum.n == 0) return sum.taken_value;
    const bool same = sum.min == sum.max && (sum.taken_value == MetricSum::kNoneTaken || sum.taken_value == sum.min);
    return same && sum.min < MetricSum::kSeveral ? sum.min : MetricSum::kSeveral;
  }

  static bool IsLikeLast(const LaunchRecord& record, const Key& key) noexcept;
  // Adds the samples of the records that were only counted.
  void AddAlike(Key* key) noexcept;
  bool GrowSlots() noexcept;
  // The key that increments of `identity` count for, coarsened where there are too many; null with the reason in
  // *why.
  Key* ChangedKey(const LaunchIdentity& identity, uint32_t* index, AddResult* why) noexcept;
  // The key's sum of `metric`, made if it is new; null when memory ran out.
  MetricSum* SumOf(Key* key, uint32_t metric) noexcept;
  // The key of `identity`, made if it is new and fewer than `limit` are there; null otherwise.
  Key* FindOrMake(const LaunchIdentity& identity, uint32_t limit, uint32_t* index, AddResult* why) noexcept;

  uint32_t* slots_ = nullptr;  // index + 1 into keys_; 0: free
  uint32_t slot_count_ = 0;    // a power of two
  uint32_t first_ = 0;         // index of the first key that is in a slot
  Blocks<Key> keys_;
  Blocks<MetricSum> sums_;
  uint32_t changed_ = kLast;  // head of the list of changed keys, index + 1
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_LAUNCH_TABLE_H_
