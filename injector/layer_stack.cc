#include "injector/layer_stack.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "collector/sync.h"
#include "collector/thread_block.h"

namespace rfinject {
namespace {

// These bound the memory that threads leave behind when they end. Their rings must outlive them, because a backward
// pass may still hold their nodes (DataParallel starts new threads for every forward); the oldest is given to a new
// thread only when the ended ones together pass one of these.
constexpr size_t kMaxEndedRings = 1024;
constexpr size_t kMaxEndedBytes = size_t{64} << 20;

// How long a thread that starts or ends waits for the queue of ended rings, ns. The lock is held for the few loads
// and stores of a push or a pop, so that a second passes only where its holder is gone. The ring of a thread that
// ends is then leaked, and a thread that starts gets a new one.
constexpr int64_t kPoolLockWaitNs = 1'000'000'000;

constexpr size_t kIndexSize = 4096;  // power of two; torch numbers its threads 1, 2, 3, …

struct Entry {
  std::atomic<uint64_t> sequence;
  std::atomic<uint32_t> layer;
};
constexpr size_t kRingBytes = kRingEntries * sizeof(Entry);

// Written by its thread only. Readers take `head` with acquire, search, and then check that neither the owner nor the
// part that they looked at has changed: every store of an entry is a release after the store of the previous head, so
// whoever sees a newer entry also sees the newer head.
struct Ring {
  std::atomic<uint64_t> thread_id{0};  // torch's number of the owner; 0: the ring has none
  std::atomic<uint64_t> head{0};       // entries ever appended; the last is head - 1
  Entry* entries = nullptr;            // kRingEntries of them, set before the ring is published
  Ring* next = nullptr;                // in g_rings; never changes after publication
  Ring* next_ended = nullptr;          // in the queue of ended rings, under g_pool_lock
  size_t touched = 0;                  // entries that ever had memory, under g_pool_lock
};

struct Frame {
  uint64_t entered;
  uint64_t node;
  uint32_t layer;
};

struct ThreadState {
  Ring* ring;
  uint64_t enters;
  uint64_t last_sequence;  // of the ring's last entry
  uint32_t last_layer;
  uint32_t depth;  // may be above kMaxDepth
  bool ring_failed;
  Frame frames[kMaxDepth];

  ~ThreadState();  // when the thread ends
};

std::atomic<uint64_t (*)()> g_peek{nullptr};
std::atomic<uint64_t (*)()> g_thread_id{nullptr};
std::atomic<uint64_t (*)()> g_running_node{nullptr};

std::atomic<Ring*> g_rings{nullptr};
std::atomic<Ring*> g_index[kIndexSize];  // by thread number, the newest wins; g_rings has those that lost
std::atomic<bool> g_any_evicted{false};

constinit Mutex g_pool_lock;
Ring* g_ended_first RFINJECT_GUARDED_BY(g_pool_lock) = nullptr;
Ring* g_ended_last RFINJECT_GUARDED_BY(g_pool_lock) = nullptr;
size_t g_ended_count RFINJECT_GUARDED_BY(g_pool_lock) = 0;
size_t g_ended_bytes RFINJECT_GUARDED_BY(g_pool_lock) = 0;

ThreadBlock<ThreadState> g_states;
// Initial-exec: the library is loaded at program start, and a dynamic TLS access could allocate.
__attribute__((tls_model("initial-exec"))) thread_local ThreadState* t_state = nullptr;

size_t TouchedBytes(const Ring& ring) { return ring.touched * sizeof(Entry); }

void PushEnded(Ring* ring) RFINJECT_REQUIRES(g_pool_lock) {
  ring->touched =
      std::max<size_t>(ring->touched, std::min<uint64_t>(ring->head.load(std::memory_order_relaxed), kRingEntries));
  ring->next_ended = nullptr;
  (g_ended_last != nullptr ? g_ended_last->next_ended : g_ended_first) = ring;
  g_ended_last = ring;
  ++g_ended_count;
  g_ended_bytes += TouchedBytes(*ring);
}

Ring* PopEnded() RFINJECT_REQUIRES(g_pool_lock) {
  Ring* ring = g_ended_first;
  g_ended_first = ring->next_ended;
  if (g_ended_first == nullptr) g_ended_last = nullptr;
  --g_ended_count;
  g_ended_bytes -= TouchedBytes(*ring);
  return ring;
}

ThreadState::~ThreadState() {
  if (ring == nullptr || !g_pool_lock.LockFor(kPoolLockWaitNs)) return;
  const HeldLock held(g_pool_lock);
  PushEnded(ring);
}

Ring* NewRing() {
  auto* ring = new (std::nothrow) Ring;
  if (ring == nullptr) return nullptr;
  void* memory =
      mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    delete ring;
    return nullptr;
  }
  ring->entries = static_cast<Entry*>(memory);
  Ring* first = g_rings.load(std::memory_order_relaxed);
  do {
    ring->next = first;
  } while (!g_rings.compare_exchange_weak(first, ring, std::memory_order_release, std::memory_order_relaxed));
  return ring;
}

__attribute__((noinline)) void CreateRing(ThreadState* state) {
  auto* thread_id = g_thread_id.load(std::memory_order_relaxed);
  const uint64_t id = thread_id != nullptr ? thread_id() : 0;
  Ring* ring = nullptr;
  if (id != 0 && g_pool_lock.LockFor(kPoolLockWaitNs)) {
    const HeldLock held(g_pool_lock);
    if (g_ended_count >= kMaxEndedRings || g_ended_bytes >= kMaxEndedBytes) {
      ring = PopEnded();
      // A reader that looked for the former owner sees the id change before it sees a new entry, and drops what it
      // found.
      if (ring->thread_id.load(std::memory_order_relaxed) != 0) g_any_evicted.store(true, std::memory_order_relaxed);
      ring->thread_id.store(0, std::memory_order_relaxed);
      ring->head.store(0, std::memory_order_release);
    }
  }
  if (id != 0 && ring == nullptr) ring = NewRing();
  if (ring == nullptr) {
    state->ring_failed = true;
    return;
  }
  state->last_sequence = 0;
  state->last_layer = 0;
  state->ring = ring;
  ring->thread_id.store(id, std::memory_order_release);
  g_index[id % kIndexSize].store(ring, std::memory_order_release);
}

void Append(ThreadState* state, uint64_t sequence, uint32_t layer) {
  if (state->ring == nullptr) {
    if (state->ring_failed) return;
    CreateRing(state);
    if (state->ring == nullptr) return;
  }
  if (state->last_layer == layer) return;  // a fresh ring's nodes belong to layer 0 as well
  Ring* ring = state->ring;
  const uint64_t head = ring->head.load(std::memory_order_relaxed);
  state->last_layer = layer;
  if (head != 0 && state->last_sequence == sequence) {
    // No node was created since the last entry, so no reader can need that entry: the later layer replaces it. A
    // forward under no_grad, which creates no nodes, adds no entry to the ring.
    ring->entries[(head - 1) % kRingEntries].layer.store(layer, std::memory_order_release);
    return;
  }
  state->last_sequence = sequence;
  Entry& entry = ring->entries[head % kRingEntries];
  entry.sequence.store(sequence, std::memory_order_release);
  entry.layer.store(layer, std::memory_order_release);
  ring->head.store(head + 1, std::memory_order_release);
}

Ring* FindRing(uint64_t thread_id) {
  Ring* ring = g_index[thread_id % kIndexSize].load(std::memory_order_acquire);
  if (ring != nullptr && ring->thread_id.load(std::memory_order_acquire) == thread_id) return ring;
  for (ring = g_rings.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    if (ring->thread_id.load(std::memory_order_acquire) == thread_id) return ring;
  }
  return nullptr;
}

uint32_t InnermostLayer(const ThreadState& state) {
  return state.depth == 0 ? 0 : state.frames[std::min<size_t>(state.depth, kMaxDepth) - 1].layer;
}

}  // namespace

void SetSequenceFunctions(const SequenceFunctions& functions) noexcept {
  g_thread_id.store(functions.thread_id, std::memory_order_relaxed);
  g_running_node.store(functions.running_node, std::memory_order_relaxed);
  g_peek.store(functions.peek, std::memory_order_release);
}

void EnterLayer(uint32_t layer) noexcept {
  ThreadState* state = g_states.Get(&t_state);
  if (state == nullptr) [[unlikely]] {
    return;
  }
  ++state->enters;
  if (state->depth++ >= kMaxDepth) return;
  Frame& frame = state->frames[state->depth - 1];
  frame.layer = layer;
  frame.entered = state->enters;
  auto* running_node = g_running_node.load(std::memory_order_relaxed);
  frame.node = running_node != nullptr ? running_node() : 0;
  auto* peek = g_peek.load(std::memory_order_acquire);
  if (peek != nullptr) Append(state, peek(), layer);
}

void LeaveLayer() noexcept {
  ThreadState* state = t_state;
  if (state == nullptr || state->depth == 0) return;
  if (--state->depth >= kMaxDepth) return;
  auto* peek = g_peek.load(std::memory_order_acquire);
  if (peek != nullptr) Append(state, peek(), InnermostLayer(*state));
}

LayerTop CurrentLayer() noexcept {
  const ThreadState* state = t_state;
  if (state == nullptr || state->depth == 0) return {};
  const Frame& frame = state->frames[std::min<size_t>(state->depth, kMaxDepth) - 1];
  return {.layer = frame.layer, .depth = state->depth, .entered = frame.entered, .node = frame.node};
}

uint64_t EnterCount() noexcept { return t_state != nullptr ? t_state->enters : 0; }

uint32_t OwnerOf(uint64_t thread_id, uint64_t sequence, bool* forgotten) noexcept {
  if (forgotten != nullptr) *forgotten = false;
  Ring* ring = thread_id != 0 ? FindRing(thread_id) : nullptr;
  if (ring == nullptr) {
    // Either the thread never ran a module, or its ring was given to another.
    if (forgotten != nullptr) *forgotten = thread_id != 0 && g_any_evicted.load(std::memory_order_relaxed);
    return 0;
  }
  const uint64_t head = ring->head.load(std::memory_order_acquire);
  // The writer may be writing into the oldest slot: it does that before it moves the head.
  const uint64_t first = head < kRingEntries ? 0 : head - kRingEntries + 1;
  uint64_t low = first;  // first entry above `sequence` lies in [low, high]
  uint64_t high = head;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (ring->entries[middle % kRingEntries].sequence.load(std::memory_order_acquire) <= sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const bool found = low != first;
  const uint32_t layer =
      found ? ring->entries[(low - 1) % kRingEntries].layer.load(std::memory_order_acquire) : uint32_t{0};
  const uint64_t head_now = ring->head.load(std::memory_order_acquire);
  const bool overwritten = found ? low - 1 + kRingEntries <= head_now : head_now >= kRingEntries;
  if (overwritten || ring->thread_id.load(std::memory_order_acquire) != thread_id) {
    if (forgotten != nullptr) *forgotten = true;
    return 0;
  }
  return layer;
}

void MarkNodeInterval(uint32_t layer, uint64_t from) noexcept {
  auto* peek = g_peek.load(std::memory_order_acquire);
  if (peek == nullptr) return;
  ThreadState* state = g_states.Get(&t_state);
  if (state == nullptr) return;
  if (from == kFromNow) from = peek();
  if (state->ring != nullptr) from = std::max(from, state->last_sequence);
  Append(state, from, layer);
}

uint32_t LayerOfNextNode() noexcept { return t_state != nullptr ? t_state->last_layer : 0; }

bool NextNodeOfThread(NextNode* next) noexcept {
  auto* peek = g_peek.load(std::memory_order_acquire);
  auto* thread_id = g_thread_id.load(std::memory_order_relaxed);
  if (peek == nullptr || thread_id == nullptr) return false;
  *next = {.thread = thread_id(), .sequence = peek()};
  return true;
}

void ResetLayerStackAfterFork() noexcept {
  // Only the calling thread exists in a forked child; another one may have held the lock in the parent.
  g_pool_lock.ResetInForkedChild();
  if (!g_pool_lock.TryLock()) return;
  const HeldLock held(g_pool_lock);
  g_ended_first = g_ended_last = nullptr;
  g_ended_count = g_ended_bytes = 0;
  for (auto& slot : g_index) slot.store(nullptr, std::memory_order_relaxed);
  Ring* mine = t_state != nullptr ? t_state->ring : nullptr;
  for (Ring* ring = g_rings.load(std::memory_order_relaxed); ring != nullptr; ring = ring->next) {
    if (ring == mine) {
      g_index[ring->thread_id.load(std::memory_order_relaxed) % kIndexSize].store(ring, std::memory_order_relaxed);
      continue;
    }
    ring->thread_id.store(0, std::memory_order_relaxed);
    PushEnded(ring);
  }
}

}  // namespace rfinject
