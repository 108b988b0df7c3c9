// Which parts of the devices' memory hold what a GPU would have there: what the host has copied, what was filled with
// a value, and what was computed from such (injector/torch/values.h). Everything else is zeros, or what was there
// before a kernel that was not run would have changed it.
#include "virtual_gpu/driver/known.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>

namespace rfinject::virtual_gpu {
namespace {

// Ranges that neither overlap nor touch, by their begins.
std::map<uintptr_t, uintptr_t>& Ends() {
  static auto* const ends = new std::map<uintptr_t, uintptr_t>;
  return *ends;
}

// Whether something was ever known in a stretch of 2 MiB, which is what PyTorch's allocator gives its small tensors.
// Stretches that are 128 GiB apart share a place.
constexpr unsigned kStretchBits = 21;
std::array<std::atomic<bool>, size_t{1} << 16>& Stretches() {
  static constinit std::array<std::atomic<bool>, size_t{1} << 16> stretches{};
  return stretches;
}

}  // namespace

bool MayBeKnown(uintptr_t begin, size_t bytes) {
  if (bytes == 0) return false;
  auto& stretches = Stretches();
  const uintptr_t first = begin >> kStretchBits;
  const uintptr_t count = ((begin + bytes - 1) >> kStretchBits) - first + 1;
  for (uintptr_t i = 0; i < std::min<uintptr_t>(count, stretches.size()); ++i) {
    if (stretches[(first + i) % stretches.size()].load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void ForgetKnown(uintptr_t begin, size_t bytes) {
  if (!MayBeKnown(begin, bytes)) return;
  auto& ends = Ends();
  const uintptr_t end = begin + bytes;
  auto at = ends.lower_bound(begin);
  if (at != ends.begin()) --at;
  while (at != ends.end() && at->first < end) {
    const auto [first, last] = *at;
    if (last <= begin) {
      ++at;
      continue;
    }
    at = ends.erase(at);
    if (first < begin) ends[first] = begin;
    if (last > end) ends[end] = last;
  }
}

void NoteKnown(uintptr_t begin, size_t bytes) {
  if (bytes == 0) return;
  auto& stretches = Stretches();
  const uintptr_t last = (begin + bytes - 1) >> kStretchBits;
  for (uintptr_t i = begin >> kStretchBits; i <= last; ++i) {
    stretches[i % stretches.size()].store(true, std::memory_order_relaxed);
  }
  auto& ends = Ends();
  uintptr_t end = begin + bytes;
  auto at = ends.upper_bound(begin);
  if (at != ends.begin() && std::prev(at)->second >= begin) --at;
  while (at != ends.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ends.erase(at);
  }
  ends[begin] = end;
}

bool IsKnown(uintptr_t begin, size_t bytes) {
  if (bytes == 0) return true;
  const auto& ends = Ends();
  const auto after = ends.upper_bound(begin);
  return after != ends.begin() && std::prev(after)->second >= begin + bytes;
}

void CopyKnown(uintptr_t to, uintptr_t from, size_t bytes) {
  std::map<uintptr_t, uintptr_t> parts;  // a copy: the two ranges may overlap
  const auto& ends = Ends();
  auto at = ends.upper_bound(from);
  if (at != ends.begin()) --at;
  for (; at != ends.end() && at->first < from + bytes; ++at) {
    const uintptr_t begin = std::max(at->first, from);
    const uintptr_t end = std::min(at->second, from + bytes);
    if (begin < end) parts[begin] = end;
  }
  ForgetKnown(to, bytes);
  for (const auto& [begin, end] : parts) NoteKnown(to + (begin - from), end - begin);
}

}  // namespace rfinject::virtual_gpu
