// Which parts of the devices' memory hold what a GPU would have there: what the host has copied, what was filled with
// a value, and what was computed from such (virtual_gpu/values/values.h). Everything else is zeros, or what was there
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

// Whether something was ever known in a stretch of so much memory: a bit for each. Stretches that are as many apart
// as there are bits share one.
template <unsigned kBits, size_t kStretches>
class Stretches {
 public:
  bool Has(uintptr_t begin, size_t bytes) const {
    return !ForWords(begin, bytes, [this](size_t word, uint64_t bits) {
      return (words_[word].load(std::memory_order_relaxed) & bits) == 0;
    });
  }
  void Add(uintptr_t begin, size_t bytes) {
    ForWords(begin, bytes, [this](size_t word, uint64_t bits) {
      words_[word].fetch_or(bits, std::memory_order_relaxed);
      return true;
    });
  }

 private:
  static constexpr size_t kWordBits = 64;

  // Calls `visit(word, bits)` for the words that the stretches' bits lie in, until it returns false. Returns whether
  // it never did.
  template <typename Visit>
  static bool ForWords(uintptr_t begin, size_t bytes, const Visit& visit) {
    const uintptr_t last = (begin + bytes - 1) >> kBits;
    uintptr_t at = begin >> kBits;
    if (last - at >= kStretches) at = last - (kStretches - 1);
    while (at <= last) {
      const uintptr_t bit = at % kWordBits;
      const uintptr_t count = std::min<uintptr_t>(last - at + 1, kWordBits - bit);
      if (!visit(at / kWordBits % (kStretches / kWordBits), ~uint64_t{0} >> (kWordBits - count) << bit)) return false;
      at += count;
    }
    return true;
  }

  std::array<std::atomic<uint64_t>, kStretches / kWordBits> words_{};
};

// PyTorch's allocator gives its small tensors 2 MiB at a time, so that a large tensor is told by few of them. In what
// small tensors share, most are unknown.
constexpr size_t kLarge = size_t{2} << 20;
constinit Stretches<21, size_t{1} << 16> g_large;
constinit Stretches<12, size_t{1} << 20> g_small;

}  // namespace

bool MayBeKnown(uintptr_t begin, size_t bytes) {
  return bytes != 0 && g_large.Has(begin, bytes) && (bytes >= kLarge || g_small.Has(begin, bytes));
}

void ForgetKnown(uintptr_t begin, size_t bytes) {
  if (bytes == 0) return;
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
  g_large.Add(begin, bytes);
  g_small.Add(begin, bytes);
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
