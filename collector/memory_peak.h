// File: memory_peak.h
//
// MemoryWatch knows what lay in a device's memory when the most was allocated, by the layer and phase of the
// allocation. What watches the program's allocator tells it of each piece that is given out and taken back.
#ifndef RFINJECT_COLLECTOR_MEMORY_PEAK_H_
#define RFINJECT_COLLECTOR_MEMORY_PEAK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collector/memory_curve.h"
#include "collector/site.h"
#include "collector/sync.h"
#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject {

using MemoryPart = trace::MemoryPart;

struct MemoryPeak : trace::MemoryPeak {
  std::vector<MemoryPart> parts;  // in place of the message's own
};

class MemoryWatch {
 public:
  // A piece at `address` was given out at `site`, or taken back (negative bytes; the site says nothing then).
  // `reserved` is what the allocator holds of the device now. Called on the allocating thread.
  void OnMemory(uint32_t device, uint64_t address, int64_t bytes, uint64_t reserved, const Site& site,
                uint64_t step) noexcept;

  // `bytes` more were asked for at `site` in vain. Any thread may call this.
  void OnRefused(uint32_t device, uint64_t bytes, const Site& site) noexcept;

  // The bytes from `address` to the end of the piece that it lies in; 0 when it lies in none. Any thread may call
  // this.
  uint64_t BytesAt(uint32_t device, uint64_t address) noexcept;

  // Takes the highest peak of all devices, or that of the device that was refused most, with how its memory went over
  // a step. Returns false when neither is other than what was taken last. Called when a step has ended, or the
  // program has. May allocate.
  bool TakePeak(MemoryPeak* peak) noexcept;

 private:
  struct Piece {
    uint64_t bytes = 0;
    size_t place = 0;
  };
  struct Device {
    std::map<uint64_t, Piece> pieces;                       // by address
    std::map<std::pair<uint32_t, Phase>, size_t> place_of;  // layer and phase
    std::pair<std::pair<uint32_t, Phase>, size_t> latest;   // of place_of: a layer allocates several pieces in a row
    std::vector<uint64_t> bytes;                            // by place
    std::vector<Phase> phases;                              // by place
    BytesByPhase bytes_by_phase{};
    MemoryCurve curve;
    uint64_t allocated = 0, reserved = 0, step = 0;  // when it grew last
    Phase phase = Phase::kOther;                     // that the program was in, then
    MemoryPeak peak;                                 // what was refused is not in it yet
    MemoryPart refused;                              // the largest piece; 0 bytes: nothing was refused so far
  };

  // Keeps what is allocated now if it is the most so far. This is called before memory is taken back, so that nothing
  // is copied at each allocation on the way up.
  static void KeepIfPeak(uint32_t index, Device* device);
  // So much more, or less, lies in the place now.
  static void Count(int64_t bytes, size_t place, Device* device);
  // The number of the site's layer and phase. May throw std::bad_alloc.
  static size_t PlaceOf(const Site& site, Device* device);

  Mutex lock_;
  std::map<uint32_t, Device> devices_ RFINJECT_GUARDED_BY(lock_);
  // The bytes that were refused, and those that were allocated, of the peak that was taken last.
  std::pair<uint64_t, uint64_t> taken_ RFINJECT_GUARDED_BY(lock_);
  bool lost_ RFINJECT_GUARDED_BY(lock_) = false;  // something was not noted: no number is right any more
  std::atomic<bool> missed_{false};               // a thread did not get the lock, and noted nothing
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_MEMORY_PEAK_H_
