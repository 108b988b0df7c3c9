// File: memory_events.h
//
// What PyTorch's caching allocator does with a GPU's memory. The library is preloaded, so torch finds a function of
// ours where it reports each piece to profilers (injector/torch/memory_exports.cc); a source may listen.
#ifndef RFINJECT_COLLECTOR_MEMORY_EVENTS_H_
#define RFINJECT_COLLECTOR_MEMORY_EVENTS_H_

#include <atomic>
#include <cstdint>

namespace rfinject {

// `bytes` at `address` were given out, or taken back (negative), or refused because the memory is full (then there is
// no address). `allocated` and `reserved` are what the allocator has given out and holds of the device then; bytes.
struct MemoryEvent {
  uint32_t device = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  uint64_t allocated = 0, reserved = 0;
  bool refused = false;
};

// Called on the thread that allocates, inside of the allocator: it must not allocate memory of the GPU.
using MemoryListener = void (*)(const MemoryEvent& event) noexcept;

// Null while nobody listens.
inline std::atomic<MemoryListener> g_memory_listener{nullptr};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_MEMORY_EVENTS_H_
