#include "collector/memory_peak.h"

#include <exception>

namespace rfinject {
namespace {

// A thread that allocates waits no longer than this for the few look-ups of another.
constexpr int64_t kLockWaitNs = 1'000'000'000;

}  // namespace

void MemoryWatch::KeepIfPeak(uint32_t index, Device* device) {
  if (device->allocated <= device->peak.allocated_bytes) return;
  MemoryPeak& peak = device->peak;
  peak.device = index;
  peak.step = device->step;
  peak.allocated_bytes = device->allocated;
  peak.reserved_bytes = device->reserved;
  peak.parts.clear();
  for (const auto& [place, number] : device->place_of) {
    if (device->bytes[number] != 0) peak.parts.push_back({place.first, place.second, device->bytes[number]});
  }
}

size_t MemoryWatch::PlaceOf(const Site& site, Device* device) {
  const std::pair key(site.layer, site.phase);
  if (device->bytes.empty() || key != device->latest.first) {
    const auto [place, is_new] = device->place_of.try_emplace(key, device->bytes.size());
    if (is_new) {
      device->phases.push_back(site.phase);
      device->bytes.push_back(0);
    }
    device->latest = *place;
  }
  return device->latest.second;
}

void MemoryWatch::Count(int64_t bytes, size_t place, Device* device) {
  const auto change = static_cast<uint64_t>(bytes);  // of a return it wraps around, and so does the sum
  device->bytes[place] += change;
  device->bytes_by_phase[static_cast<size_t>(device->phases[place])] += change;
  device->allocated += change;
}

void MemoryWatch::OnMemory(uint32_t index, uint64_t address, int64_t bytes, uint64_t reserved, const Site& site,
                           uint64_t step) noexcept {
  if (bytes == 0) return;
  if (!lock_.LockFor(kLockWaitNs)) {
    missed_.store(true, std::memory_order_relaxed);
    return;
  }
  const HeldLock held(lock_);
  if (lost_) return;
  try {
    Device& device = devices_[index];
    auto next = device.pieces.lower_bound(address);
    if (const auto known = next; known != device.pieces.end() && known->first == address) {
      // The piece was taken back, or is given out again although its return was not told.
      KeepIfPeak(index, &device);
      Count(-static_cast<int64_t>(known->second.bytes), known->second.place, &device);
      next = device.pieces.erase(known);
    }
    if (bytes > 0) {
      const size_t place = PlaceOf(site, &device);
      device.pieces.emplace_hint(next, address, Piece{static_cast<uint64_t>(bytes), place});
      Count(bytes, place, &device);
      device.reserved = reserved;
      device.step = step;
      device.phase = site.phase;
    }
    device.curve.Note(step, device.phase, device.bytes_by_phase);
  } catch (const std::exception&) {
    lost_ = true;
    devices_.clear();
  }
}

void MemoryWatch::OnRefused(uint32_t index, uint64_t bytes, const Site& site) noexcept {
  if (!lock_.LockFor(kLockWaitNs)) return;
  const HeldLock held(lock_);
  const auto device = devices_.find(index);
  if (device == devices_.end()) return;  // nothing was ever given out there
  MemoryPart& refused = device->second.refused;
  if (bytes > refused.bytes) refused = {.layer = site.layer, .phase = site.phase, .bytes = bytes};
}

uint64_t MemoryWatch::BytesAt(uint32_t index, uint64_t address) noexcept {
  if (!lock_.LockFor(kLockWaitNs)) return 0;
  const HeldLock held(lock_);
  const auto device = devices_.find(index);
  if (device == devices_.end()) return 0;
  auto piece = device->second.pieces.upper_bound(address);
  if (piece == device->second.pieces.begin()) return 0;
  --piece;
  const uint64_t offset = address - piece->first;
  return offset < piece->second.bytes ? piece->second.bytes - offset : 0;
}

bool MemoryWatch::TakePeak(MemoryPeak* peak) noexcept try {
  if (missed_.load(std::memory_order_relaxed) || !lock_.LockFor(kLockWaitNs)) return false;
  const HeldLock held(lock_);
  const auto order = [](const Device& device) {
    return std::pair(device.refused.bytes, device.peak.allocated_bytes);
  };
  Device* highest = nullptr;
  for (auto& [index, device] : devices_) {
    KeepIfPeak(index, &device);
    if (highest == nullptr || order(device) > order(*highest)) highest = &device;
  }
  if (highest == nullptr) return false;
  const bool other_curve = highest->curve.Take(&highest->peak);
  if (order(*highest) <= taken_ && !other_curve) return false;
  *peak = highest->peak;
  peak->refused_bytes = highest->refused.bytes;
  peak->refused_layer = highest->refused.layer;
  peak->refused_phase = highest->refused.phase;
  taken_ = order(*highest);
  return true;
} catch (const std::exception&) {
  return false;
}

}  // namespace rfinject
