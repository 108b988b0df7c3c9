// File: launch_keys.h
//
// LaunchKeys turns what identifies a launch into a small number. Launch callbacks ask it, on the program's threads:
// each thread has a cache of its own, and only a launch that the cache does not know takes the table's lock and may
// allocate. The thread that ends the steps asks it which launch a number stands for.
#ifndef RFINJECT_COLLECTOR_CUPTI_LAUNCH_KEYS_H_
#define RFINJECT_COLLECTOR_CUPTI_LAUNCH_KEYS_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/recorder.h"
#include "collector/sync.h"

namespace rfinject::cupti {

// What the driver call says about a launch, and where it came from.
struct LaunchCall {
  const void* function = nullptr;  // CUfunction or CUgraphExec; identity only
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> block{};
  uint32_t dynamic_shared_bytes = 0;
  uint32_t device = 0;
  bool transfer = false;  // a copy or a memory set, which has no counters; its function says so, too
  Site site;
};

class LaunchKeys {
 public:
  static constexpr uint32_t kNoKey = UINT32_MAX;
  static constexpr LaunchIdentity kNothing{};

  // Returns the number of `call`, and where its identity is, until the calling thread asks again. `name` is the
  // kernel's, and is read only when the call is new. Returns kNoKey and leaves `*identity` when memory ran out. This
  // is on the path of every launch.
  uint32_t Find(const LaunchCall& call, const char* name, Recorder& recorder,
                const LaunchIdentity** identity) noexcept;

  // Whether a kernel of NCCL's, by the name that CUPTI gives, is part of what all ranks do together, in one order.
  static bool IsCollective(const char* name) noexcept;

  // Whether a launch is a loss scaler's update of its scale (step_end.h). This is on the path of every launch.
  bool IsScaleUpdate(const LaunchIdentity& identity) const noexcept {
    return identity.kernel == scale_update_.load(std::memory_order_relaxed);
  }

  // What a key's launches are that do not all do the same: in each step the first does what `works` says first, and
  // so on. From now on each kind has a key of its own, whose identity has the work's operator and signature. Returns
  // the key of each launch; nothing when memory ran out. For the thread that ends the steps.
  struct WorkName {
    uint32_t op = 0, signature = 0;  // Intern()
    friend auto operator<=>(const WorkName&, const WorkName&) = default;
  };
  std::vector<uint32_t> Split(uint32_t key, std::span<const WorkName> works) noexcept;
  // A step begins. A key whose launches in the last one were more or fewer than it was split into is one again.
  void BeginStep() noexcept;

  // The number of keys so far; it only grows.
  uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  LaunchIdentity Identity(uint32_t key) noexcept;
  // Whether launches of `key` may have counters: copies and memory sets have none.
  bool HasCounters(uint32_t key) noexcept;
  // The recorder's id of the kernel that CUPTI calls `name`; 0 where no key has one.
  uint32_t FindKernel(const char* name) noexcept;

  // Tells whether FLOP are counted in this process, and that all of `key` are known; whether they are, or none are
  // counted at all.
  void SetCounting(bool counting) noexcept { counting_.store(counting, std::memory_order_relaxed); }
  void NoteCounted(uint32_t key) noexcept;
  bool IsCounted(uint32_t key) noexcept;

  void ResetLockInForkedChild() noexcept { lock_.ResetInForkedChild(); }

 private:
  // A key that was split. It is never removed.
  struct Pieces {
    std::vector<uint32_t> keys;  // by launch in the step
    std::vector<LaunchIdentity> identities;
    std::atomic<uint32_t> launched{0};  // in the step
    std::atomic<bool> whole{false};     // it is one again
  };
  struct Entry {
    uint64_t hash = 0;  // 0: empty
    LaunchCall call;
    LaunchIdentity identity;
    uint32_t key = kNoKey;
    uint32_t epoch = 0;
    Pieces* pieces = nullptr;
  };
  struct Known {
    LaunchIdentity identity;
    bool transfer = false, counted = false;
  };
  static constexpr size_t kCacheSize = 1024;  // of a thread, a power of two; 120 KiB

  uint32_t FindSlow(const LaunchCall& call, uint64_t hash, const char* name, Recorder& recorder,
                    Entry* slot) noexcept;
  [[gnu::noinline, gnu::cold]] static Entry* MakeThreadCache() noexcept;
  // The key and the identity of a launch of a key that was split.
  static uint32_t NextPiece(Entry* entry, const LaunchIdentity** identity) noexcept;
  // The recorder's id of a kernel's readable name. May throw std::bad_alloc.
  uint32_t KernelId(const char* name, Recorder& recorder) RFINJECT_EXCLUDES(lock_);

  Mutex lock_;
  std::unordered_multimap<uint64_t, Entry> table_ RFINJECT_GUARDED_BY(lock_);
  // The kernels' ids, by the name that CUPTI gives.
  std::map<std::string, uint32_t, std::less<>> kernels_ RFINJECT_GUARDED_BY(lock_);
  std::vector<Known> known_ RFINJECT_GUARDED_BY(lock_);  // by key
  std::deque<Pieces> pieces_ RFINJECT_GUARDED_BY(lock_);
  std::atomic<bool> counting_{false};
  std::atomic<uint32_t> size_{0};
  std::atomic<uint32_t> scale_update_{UINT32_MAX};  // the id of the scaler's kernel, once it was launched
  // Caches outlive a table in tests, and a key that is split is to be looked up again; an epoch tells whose entries
  // they hold.
  static std::atomic<uint32_t> next_epoch_;
  std::atomic<uint32_t> epoch_ = ++next_epoch_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_KEYS_H_
