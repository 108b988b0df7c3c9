#include "collector/cupti/launch_keys.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "collector/cupti/lock_waits.h"
#include "collector/hash.h"
#include "collector/kernel_name.h"
#include "collector/launch_origin.h"
#include "gpus/kernel_names.h"

namespace rfinject::cupti {
namespace {

// Products that do not wait for each other, since this is on the path of every launch. The constants are digits of
// pi: without them a zero would hide what it is multiplied with.
uint64_t HashOf(const LaunchCall& call) noexcept {
  const auto pair = [](uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; };
  const auto both = [](uint64_t a, uint64_t b) { return HashFold(a ^ 0x243F6A8885A308D3u, b ^ 0x13198A2E03707344u); };
  const uint64_t node = uint64_t{call.site.node} << 8 | static_cast<uint8_t>(call.site.phase);
  const uint64_t sizes = pair(call.dynamic_shared_bytes, call.device);
  const uint64_t hash = both(reinterpret_cast<uintptr_t>(call.function), pair(call.site.layer, call.site.op)) ^
                        both(pair(call.grid[0], call.grid[1]), pair(call.grid[2], call.block[0])) ^
                        both(pair(call.block[1], call.block[2]), HashMix(node, sizes));
  return hash | 1;  // 0 is an empty slot
}

// std::array's own comparison is a call of memcmp; one of a fixed size is a few instructions.
bool Same(const LaunchCall& a, const LaunchCall& b) noexcept {
  return a.function == b.function && std::memcmp(a.grid.data(), b.grid.data(), sizeof a.grid) == 0 &&
         std::memcmp(a.block.data(), b.block.data(), sizeof a.block) == 0 &&
         a.dynamic_shared_bytes == b.dynamic_shared_bytes && a.device == b.device && a.site == b.site;
}

constexpr const char* kCollectives[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"};

pthread_once_t g_once = PTHREAD_ONCE_INIT;
pthread_key_t g_cache_key;
[[gnu::tls_model("initial-exec")]] constinit thread_local void* t_cache = nullptr;
// The destructors of other libraries' thread data may launch after this one has run: they get a cache of their own.
void FreeCache(void* cache) noexcept {
  t_cache = nullptr;
  free(cache);
}
void MakeCacheKey() noexcept { pthread_key_create(&g_cache_key, &FreeCache); }

}  // namespace

std::atomic<uint32_t> LaunchKeys::next_epoch_{0};

bool LaunchKeys::IsCollective(const char* name) noexcept {
  for (const char* const collective : kCollectives) {
    if (name != nullptr && std::strstr(name, collective) != nullptr) return true;
  }
  return false;
}

LaunchKeys::Entry* LaunchKeys::MakeThreadCache() noexcept {
  pthread_once(&g_once, &MakeCacheKey);
  t_cache = calloc(kCacheSize, sizeof(Entry));  // all zero is an empty Entry
  if (t_cache != nullptr) pthread_setspecific(g_cache_key, t_cache);
  return static_cast<Entry*>(t_cache);
}

uint32_t LaunchKeys::Find(const LaunchCall& call, const char* name, Recorder& recorder,
                          const LaunchIdentity** identity) noexcept {
  Entry* cache = static_cast<Entry*>(t_cache);
  if (cache == nullptr) [[unlikely]] {
    cache = MakeThreadCache();
    if (cache == nullptr) return kNoKey;
  }
  const uint64_t hash = HashOf(call);
  const uint32_t epoch = epoch_.load(std::memory_order_acquire);
  // A call may be in one of two neighbouring slots, which are fetched together.
  Entry* slot = nullptr;
  for (size_t probe = 0; probe < 2; ++probe) {
    Entry& entry = cache[(hash + probe) & (kCacheSize - 1)];
    if (entry.hash == hash && entry.epoch == epoch && Same(entry.call, call)) {
      if (entry.pieces != nullptr) [[unlikely]] {
        const uint32_t key = NextPiece(&entry, identity);
        NoteOriginOnce(**identity, recorder);
        return key;
      }
      *identity = &entry.identity;
      return entry.key;
    }
    if (slot == nullptr || entry.hash == 0 || entry.epoch != epoch) slot = &entry;
  }
  const uint32_t key = FindSlow(call, hash, name, recorder, slot);
  if (key == kNoKey) return key;
  slot->epoch = epoch;
  const uint32_t piece = NextPiece(slot, identity);
  NoteOriginOnce(**identity, recorder);
  return piece;
}

uint32_t LaunchKeys::NextPiece(Entry* entry, const LaunchIdentity** identity) noexcept {
  *identity = &entry->identity;
  Pieces* const pieces = entry->pieces;
  if (pieces == nullptr || pieces->whole.load(std::memory_order_relaxed)) return entry->key;
  const uint32_t place = pieces->launched.fetch_add(1, std::memory_order_relaxed);
  if (place >= pieces->keys.size()) return entry->key;
  *identity = &pieces->identities[place];
  return pieces->keys[place];
}

std::vector<uint32_t> LaunchKeys::Split(uint32_t key, std::span<const WorkName> works) noexcept try {
  if (!lock_.LockFor(kStepLockWaitNs)) return {};
  const HeldLock held(lock_);
  if (key >= known_.size()) return {};
  std::map<WorkName, uint32_t> keys;
  Pieces& pieces = pieces_.emplace_back();
  for (const WorkName& work : works) {
    const auto [piece, is_new] = keys.try_emplace(work, static_cast<uint32_t>(known_.size()));
    if (is_new) {
      Known known = known_[key];
      known.counted = false;
      known.identity.site.op = work.op;
      known.identity.signature = work.signature;
      known_.push_back(known);
    }
    pieces.keys.push_back(piece->second);
    pieces.identities.push_back(known_[piece->second].identity);
  }
  for (auto& [hash, entry] : table_) {
    if (entry.key == key) entry.pieces = &pieces;
  }
  size_.store(static_cast<uint32_t>(known_.size()), std::memory_order_release);
  epoch_.store(++next_epoch_, std::memory_order_release);
  return pieces.keys;
} catch (...) {
  return {};
}

void LaunchKeys::BeginStep() noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  for (Pieces& pieces : pieces_) {
    const uint32_t launched = pieces.launched.exchange(0, std::memory_order_relaxed);
    if (launched != pieces.keys.size() && launched != 0) pieces.whole.store(true, std::memory_order_relaxed);
  }
}

uint32_t LaunchKeys::FindSlow(const LaunchCall& call, uint64_t hash, const char* name, Recorder& recorder,
                              Entry* slot) noexcept try {
  const uint32_t kernel = KernelId(name, recorder);
  // A program's launch must not wait for long. A launch whose key could not be had is not attributed.
  if (!lock_.LockFor(kLaunchLockWaitNs)) return kNoKey;
  const HeldLock held(lock_);
  auto [at, end] = table_.equal_range(hash);
  for (; at != end; ++at) {
    // A module that was unloaded may have given its address to another kernel.
    if (Same(at->second.call, call) && at->second.identity.kernel == kernel) {
      *slot = at->second;
      return slot->key;
    }
  }
  Entry entry;
  entry.hash = hash;
  entry.call = call;
  entry.key = static_cast<uint32_t>(known_.size());
  entry.identity.kernel = kernel;
  entry.identity.site = call.site;
  // NCCL's kernels are communication, whichever layer they are launched from (DistributedDataParallel launches them
  // in the backward).
  if (name != nullptr && IsCommunicationKernel(name)) entry.identity.site.phase = Phase::kCommunication;
  entry.identity.grid = call.grid;
  entry.identity.block = call.block;
  entry.identity.dynamic_shared_bytes = call.dynamic_shared_bytes;
  entry.identity.device = call.device;
  known_.push_back({.identity = entry.identity, .transfer = call.transfer});
  table_.emplace(hash, entry);
  *slot = entry;
  size_.store(static_cast<uint32_t>(known_.size()), std::memory_order_release);
  return entry.key;
} catch (...) {
  return kNoKey;
}

// A launch that the thread's cache has lost comes here again, and must not pay for making its kernel's name readable
// every time.
uint32_t LaunchKeys::KernelId(const char* name, Recorder& recorder) {
  if (name == nullptr) return recorder.Intern("(unnamed kernel)");
  if (lock_.LockFor(kLaunchLockWaitNs)) {
    const HeldLock held(lock_);
    if (const auto at = kernels_.find(std::string_view(name)); at != kernels_.end()) return at->second;
  }
  // The name is interned outside of the lock, because the recorder has one of its own.
  const uint32_t id = recorder.Intern(ReadableKernelName(name));
  if (lock_.LockFor(kLaunchLockWaitNs)) {
    const HeldLock held(lock_);
    kernels_.emplace(name, id);
  }
  if (std::strstr(name, "amp_update_scale_cuda_kernel") != nullptr) {
    scale_update_.store(id, std::memory_order_relaxed);
  }
  return id;
}

uint32_t LaunchKeys::FindKernel(const char* name) noexcept {
  if (name == nullptr || !lock_.LockFor(kStepLockWaitNs)) return 0;
  const HeldLock held(lock_);
  const auto at = kernels_.find(std::string_view(name));
  return at != kernels_.end() ? at->second : 0;
}

void LaunchKeys::NoteCounted(uint32_t key) noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  if (key < known_.size()) known_[key].counted = true;
}

bool LaunchKeys::IsCounted(uint32_t key) noexcept {
  if (!counting_.load(std::memory_order_relaxed)) return true;
  if (!lock_.LockFor(kLaunchLockWaitNs)) return false;
  const HeldLock held(lock_);
  return key < known_.size() && known_[key].counted;
}

bool LaunchKeys::HasCounters(uint32_t key) noexcept {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return false;
  const HeldLock held(lock_);
  return key < known_.size() && !known_[key].transfer;
}

LaunchIdentity LaunchKeys::Identity(uint32_t key) noexcept {
  if (!lock_.LockFor(kLaunchLockWaitNs)) return {};
  const HeldLock held(lock_);
  return key < known_.size() ? known_[key].identity : LaunchIdentity{};
}

}  // namespace rfinject::cupti
